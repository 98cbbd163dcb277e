//! `kunci queue`.

use crate::answer::{shown, shown_ms};
use crate::args::QueueArgs;
use crate::client::{Call, Client};
use crate::exit::{Exit, Failure};
use crate::output::{Output, table};
use crate::patience;
use crate::url::lock_path;
use serde_json::Value;

/// Shows who waits, in order.
pub(crate) async fn run(args: &QueueArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let answer = patience::read(client, &Call::get(lock_path(&args.resource, "/queue"))).await?;
    if !answer.is_success() {
        return Err(Failure::refusal(&answer));
    }
    output.answer(&answer.body, human)?;
    Ok(Exit::Done)
}

fn human(body: &Value) -> String {
    let waiters = body.get("waiters").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let cell = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let row = |waiter: &Value| {
        let attached = waiter.get("attached").and_then(Value::as_bool);
        vec![
            cell(shown(waiter, "position")),
            cell(shown(waiter, "owner").or_else(|| shown(waiter, "clientId"))),
            cell(shown_ms(waiter, "waitedMs")),
            cell(shown_ms(waiter, "waitRemainingMs")),
            if attached == Some(false) { "no".to_owned() } else { "yes".to_owned() },
        ]
    };
    table(
        &["POSITION", "OWNER", "WAITED", "WAITS FOR", "ATTACHED"],
        &waiters.iter().map(row).collect::<Vec<_>>(),
    )
}
