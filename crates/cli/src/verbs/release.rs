//! `kunci release`.

use crate::args::ReleaseArgs;
use crate::door::{Ask, Door, Verb};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::patience;
use serde_json::Value;

/// Gives the lock back.
pub(crate) async fn run(args: &ReleaseArgs, door: &Door, output: &Output) -> Result<Exit, Failure> {
    let ask = Ask::new(Verb::Release, &args.resource, args.proof.body());
    let answer = patience::ask(door, &ask, args.trying.patience, output).await?;
    if !answer.is_success() {
        return Err(Failure::refusal(&answer));
    }
    output.answer(&answer.body, |body| {
        let was_before = body.get("already").and_then(Value::as_bool) == Some(true);
        format!("{} {}", args.resource, if was_before { "was released before" } else { "released" })
    })?;
    Ok(Exit::Done)
}
