//! `kunci cluster replace`.

use super::voter::report;
use super::{change, new_node_id};
use crate::args::ReplaceArgs;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use serde_json::json;

/// Lets a new node take the place of a member.
pub(super) async fn run(args: &ReplaceArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let body = json!({ "nodeId": args.node_id, "peer": args.peer });
    let answer = change(client, "replace", body, &args.joining.trying, output).await?;
    report(client, &answer, new_node_id(&answer)?, &args.joining, output).await
}
