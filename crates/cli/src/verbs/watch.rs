//! `kunci watch`.

use crate::answer::{Answer, shown};
use crate::args::WatchArgs;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{Form, Output};
use crate::sse::{Cutter, SentEvent};
use crate::url::with_query;
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use kunci_client::{BootClock, Clock as _};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// From one attempt to connect to the next.
const PAUSE: Duration = Duration::from_millis(500);
/// A stream on which not even a sign of life came for this long is dead.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Prints events until it is stopped; goes on where it was after a broken connection.
pub(crate) async fn run(args: &WatchArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let mut last_seen = args.after;
    let mut failing_since = BootClock.now();
    let mut has_said = false;
    loop {
        let after = last_seen.map(|revision| revision.to_string());
        let path = with_query("/events", &[("prefix", args.prefix.clone()), ("after", after)]);
        let why = match client.stream(path, last_seen).await {
            Ok(Ok(stream)) => {
                has_said = false;
                let why = follow(stream, &mut last_seen, output).await?;
                failing_since = BootClock.now();
                why
            }
            Ok(Err(answer)) if answer.is_passing() => answer.refusal_text(),
            Ok(Err(answer)) => return Err(refusal(&answer, last_seen)),
            Err(error) => error.to_string(),
        };
        if BootClock.now().plus(PAUSE).since(failing_since) >= args.patience {
            let text = format!("{why}; check --url, or start a node with `kunci server`");
            return Err(Failure::new(Exit::Unavailable, text));
        }
        if !has_said {
            has_said = true;
            output.say(&format!("{why} (connecting again)"));
        }
        sleep(PAUSE).await;
    }
}

/// Prints one stream to its end, and says how it ended.
async fn follow(
    mut stream: Incoming,
    last_seen: &mut Option<u64>,
    output: &Output,
) -> Result<String, Failure> {
    let mut cutter = Cutter::default();
    loop {
        let frame = match timeout(SILENCE_MAX, stream.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => return Ok(format!("the stream broke: {error}")),
            Ok(None) => return Ok("the server ended the stream".to_owned()),
            Err(_) => return Ok(format!("the stream was silent for {SILENCE_MAX:?}")),
        };
        let Some(bytes) = frame.data_ref() else { continue };
        let Ok(events) = cutter.push(bytes) else {
            return Ok("the server sends something else than events".to_owned());
        };
        for event in events {
            *last_seen = event.id.or(*last_seen);
            if event.kind.as_deref() == Some("compacted") {
                let body = serde_json::from_str(&event.data).unwrap_or(Value::Null);
                return Err(refusal(&Answer { status: StatusCode::GONE, body }, *last_seen));
            }
            if !event.data.is_empty() {
                print(&event, output)?;
            }
        }
    }
}

fn print(event: &SentEvent, output: &Output) -> Result<(), Failure> {
    match output.form() {
        Form::Json => output.line(&event.data.replace('\n', " ")),
        Form::Human => output.line(&human(event)),
    }
}

fn human(event: &SentEvent) -> String {
    let body: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
    let first = |fields: &[&str]| fields.iter().find_map(|field| shown(&body, field));
    let revision = event.id.map(|id| id.to_string()).unwrap_or_default();
    let kind = first(&["kind", "event", "type"]).or_else(|| event.kind.clone()).unwrap_or_default();
    let resource = shown(&body, "resource").unwrap_or_default();
    let owner = first(&["owner", "holder", "clientId"]).unwrap_or_default();
    let token = shown(&body, "fencingToken").map(|token| format!("  token {token}")).unwrap_or_default();
    format!("{revision:>8}  {kind:14}  {resource}  {owner}{token}")
}

fn refusal(answer: &Answer, after: Option<u64>) -> Failure {
    let failure = Failure::refusal(answer);
    if answer.status != StatusCode::GONE {
        return failure;
    }
    let after = after.map(|revision| format!(" after revision {revision}")).unwrap_or_default();
    let text = format!(
        "events{after} were dropped (compacted) before they were read: leave --after out to follow from now on, \
         and read what is held with `kunci ls`"
    );
    Failure { text, ..failure }
}
