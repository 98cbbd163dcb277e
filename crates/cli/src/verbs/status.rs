//! `kunci status`.

use crate::answer::{number, shown, shown_ms};
use crate::args::StatusArgs;
use crate::door::{Ask, Door, Verb};
use crate::exit::{Exit, Failure};
use crate::output::{Output, card};
use crate::patience;
use serde_json::Value;

/// Shows who holds the resource; a free one is an answer.
pub(crate) async fn run(args: &StatusArgs, door: &Door, output: &Output) -> Result<Exit, Failure> {
    let answer = patience::look(door, &Ask::new(Verb::Status, &args.resource, Value::Null)).await?;
    if !answer.is_success() {
        return Err(Failure::refusal(&answer));
    }
    output.answer(&answer.body, |body| human(&args.resource, body))?;
    Ok(Exit::Done)
}

fn human(resource: &str, body: &Value) -> String {
    let waiting = number(body, "queueLength").map(|count| count.to_string());
    if body.get("held").and_then(Value::as_bool) != Some(true) {
        let closed = shown_ms(body, "lockDelayMs");
        let state = if closed.is_some() { "closed" } else { "free" };
        return card(&format!("{resource} is {state}"), &[("opens in", closed), ("waiting", waiting)]);
    }
    card(
        &format!("{resource} is held"),
        &[
            ("holder", shown(body, "holder")),
            ("token", shown(body, "fencingToken")),
            ("ends in", shown_ms(body, "remainingMs")),
            ("held for", shown_ms(body, "heldMs")),
            ("ttl", shown_ms(body, "ttlMs")),
            ("waiting", waiting),
            ("metadata", shown(body, "metadata")),
        ],
    )
}
