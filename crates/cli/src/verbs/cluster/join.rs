//! `kunci cluster join`.

use super::voter::report;
use super::{change, cluster, new_node_id, nodes};
use crate::answer::text;
use crate::args::JoinArgs;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use serde_json::json;

/// Reads the new node's peer address from itself, and asks a member to take it in.
pub(super) async fn run(args: &JoinArgs, new: &Client, output: &Output) -> Result<Exit, Failure> {
    // As `kunci cluster status` shows it, or as --url has it.
    let url =
        if args.member.contains("://") { args.member.clone() } else { format!("http://{}", args.member) };
    let member = Client::named("MEMBER", &url)?;
    let from_new = cluster(new).await?;
    let peer = if let Some(own) = text(&from_new.body, "clusterId") {
        // Joined already, perhaps by an earlier try of this command: then there is only the wait to repeat.
        let of_member = cluster(&member).await?;
        if text(&of_member.body, "clusterId") != Some(own) {
            return Err(Failure::new(
                Exit::Refused,
                format!(
                    "the node at {} belongs to cluster {own} already; to join another one, start it with an empty \
                     data folder",
                    new.url()
                ),
            ));
        }
        own_peer(&from_new.body)
    } else {
        nodes(&from_new.body).first().and_then(|node| text(node, "peer")).map(str::to_owned)
    };
    let peer = peer.ok_or_else(|| {
        Failure::new(
            Exit::Refused,
            format!("{} doesn't say its peer address; use `kunci cluster add`", new.url()),
        )
    })?;
    let answer = change(&member, "add", json!({ "peer": peer }), &args.joining.trying, output).await?;
    report(&member, &answer, new_node_id(&answer)?, &args.joining, output).await
}

/// The peer address of the node that told this.
fn own_peer(body: &serde_json::Value) -> Option<String> {
    let own = body.get("nodeId")?;
    let node = nodes(body).iter().find(|node| node.get("id") == Some(own))?;
    text(node, "peer").map(str::to_owned)
}
