//! `kunci release`.

use crate::args::ReleaseArgs;
use crate::client::{Call, Client};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::patience;
use crate::url::lock_path;
use serde_json::Value;

/// Gives the lock back.
pub(crate) async fn run(args: &ReleaseArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let call = Call::post(lock_path(&args.resource, "/release"), args.proof.body());
    let answer = patience::call(client, &call, args.trying.patience, output).await?;
    if !answer.is_success() {
        return Err(Failure::refusal(&answer));
    }
    output.answer(&answer.body, |body| {
        let was_before = body.get("already").and_then(Value::as_bool) == Some(true);
        format!("{} {}", args.resource, if was_before { "was released before" } else { "released" })
    })?;
    Ok(Exit::Done)
}
