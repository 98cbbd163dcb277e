//! `kunci cluster add`.

use super::voter::report;
use super::{change, new_node_id};
use crate::args::AddArgs;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use serde_json::json;

/// Takes a new node into the cluster.
pub(super) async fn run(args: &AddArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let body = json!({ "peer": args.peer });
    let answer = change(client, "add", body, &args.joining.trying, output).await?;
    report(client, &answer, new_node_id(&answer)?, &args.joining, output).await
}
