//! `kunci cancel`.

use crate::answer::{shown, text};
use crate::args::CancelArgs;
use crate::door::{Ask, Door, Verb};
use crate::exit::{Exit, Failure};
use crate::output::{Output, card};
use crate::patience;
use serde_json::{Value, json};

/// Takes a request out of the queue, or learns that its grant came first.
pub(crate) async fn run(args: &CancelArgs, door: &Door, output: &Output) -> Result<Exit, Failure> {
    let body = json!({ "clientId": args.owner, "requestId": args.request_id });
    let ask = Ask::new(Verb::Cancel, &args.resource, body);
    let answer = patience::ask(door, &ask, args.trying.patience, output).await?;
    if !answer.is_success() {
        return Err(Failure::refusal(&answer));
    }
    output.answer(&answer.body, |body| human(&args.resource, body))?;
    Ok(Exit::Done)
}

fn human(resource: &str, body: &Value) -> String {
    if text(body, "leaseId").is_none() {
        return format!("{resource}: the request is cancelled");
    }
    let title = format!("{resource}: the grant came first; give it back with `kunci release`");
    card(&title, &[("lease", shown(body, "leaseId")), ("token", shown(body, "fencingToken"))])
}
