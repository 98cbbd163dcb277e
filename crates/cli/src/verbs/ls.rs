//! `kunci ls`.

use crate::answer::{shown, shown_ms, text};
use crate::args::LsArgs;
use crate::client::{Call, Client};
use crate::exit::{Exit, Failure};
use crate::output::{Output, table};
use crate::patience;
use crate::url::with_query;
use serde_json::Value;

/// Lists one page of resources.
pub(crate) async fn run(args: &LsArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let limit = args.limit.map(|limit| limit.to_string());
    let parameters = [("prefix", args.prefix.clone()), ("after", args.after.clone()), ("limit", limit)];
    let answer = patience::read(client, &Call::get(with_query("/locks", &parameters))).await?;
    if !answer.is_success() {
        return Err(Failure::refusal(&answer));
    }
    output.answer(&answer.body, human)?;
    if let Some(next) = text(&answer.body, "next") {
        output.say(&format!("there are more: repeat with --after {next}"));
    }
    Ok(Exit::Done)
}

fn human(body: &Value) -> String {
    let locks = body.get("locks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let cell = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let row = |lock: &Value| {
        vec![
            cell(shown(lock, "resource")),
            cell(shown(lock, "holder")),
            cell(shown(lock, "fencingToken")),
            cell(shown_ms(lock, "remainingMs")),
            cell(shown(lock, "queueLength")),
        ]
    };
    table(&["RESOURCE", "HOLDER", "TOKEN", "ENDS IN", "WAITING"], &locks.iter().map(row).collect::<Vec<_>>())
}
