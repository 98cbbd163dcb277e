//! `kunci cluster remove`.

use super::change;
use crate::args::RemoveArgs;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use serde_json::{Value, json};

/// Takes a member out.
pub(super) async fn run(args: &RemoveArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let mut body = json!({ "nodeId": args.node_id });
    if args.force {
        body["force"] = true.into();
    }
    let answer = change(client, "remove", body, &args.trying, output).await?;
    output.answer(&answer.body, |body| match body.get("already").and_then(Value::as_bool) {
        Some(true) => format!("node {} was removed before", args.node_id),
        _ => format!("node {} is removed", args.node_id),
    })?;
    output.say(
        "stop its process if it still runs; before the machine is used for a node again, empty the data folder: \
         the new node gets a new id",
    );
    Ok(Exit::Done)
}
