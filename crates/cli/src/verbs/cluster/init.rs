//! `kunci cluster init`.

use super::change;
use crate::answer::text;
use crate::args::InitArgs;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use serde_json::json;

/// Forms a cluster of one.
pub(super) async fn run(args: &InitArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let body = args.token_floor.map_or_else(|| json!({}), |floor| json!({ "tokenFloor": floor }));
    let answer = change(client, "init", body, &args.trying, output).await?;
    output.answer(&answer.body, |body| {
        format!(
            "formed cluster {}, with this node as its only member",
            text(body, "clusterId").unwrap_or("?")
        )
    })?;
    output.say("add others with `kunci cluster add PEER`; a cluster of three goes on when one node is lost");
    Ok(Exit::Done)
}
