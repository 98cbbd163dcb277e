//! `kunci renew`.

use crate::answer::{shown, shown_ms};
use crate::args::RenewArgs;
use crate::door::{Ask, Door, Verb};
use crate::duration::as_ms;
use crate::exit::{Exit, Failure};
use crate::output::{Output, card};
use crate::patience;

/// Gives the lease its full time again.
pub(crate) async fn run(args: &RenewArgs, door: &Door, output: &Output) -> Result<Exit, Failure> {
    let mut body = args.proof.body();
    if let Some(ttl) = args.ttl {
        body["leaseDurationMs"] = as_ms(ttl).into();
    }
    let ask = Ask::new(Verb::Renew, &args.resource, body);
    let answer = patience::ask(door, &ask, args.trying.patience, output).await?;
    if !answer.is_success() {
        return Err(Failure::refusal(&answer));
    }
    let title = format!("{} renewed", args.resource);
    output.answer(&answer.body, |body| {
        let is_final = body.get("final").and_then(serde_json::Value::as_bool) == Some(true);
        let last = is_final.then(|| "no later renewal extends it: the total-hold limit".to_owned());
        let (ends_in, ends_at) = (shown_ms(body, "remainingMs"), shown(body, "newExpiresAt"));
        card(&title, &[("ends in", ends_in), ("ends at", ends_at), ("final", last)])
    })?;
    Ok(Exit::Done)
}
