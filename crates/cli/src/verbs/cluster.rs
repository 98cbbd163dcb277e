//! `kunci cluster`: one file for each verb.
//!
//! Owns: what the verbs share: the requests under `/cluster`, and waiting for a new member. Never: whether a change
//! is safe; the leader decides that.

mod add;
mod init;
mod join;
mod remove;
mod replace;
mod status;
mod transfer;
mod voter;

use crate::answer::Answer;
use crate::args::{ClusterArgs, ClusterVerb, Trying};
use crate::client::{Call, Client};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::patience;
use serde_json::Value;
use std::time::Duration;

pub(crate) use voter::{Joined, until_voter};

/// A change of the membership: the leader may first look for the new node, or wait for a follower.
const CHANGE_WITHIN: Duration = Duration::from_secs(15);

/// Does what is asked with a cluster.
pub(crate) async fn run(args: &ClusterArgs, output: &Output) -> Result<Exit, Failure> {
    let client = args.server().door.doors().http("`kunci cluster`")?;
    match &args.verb {
        ClusterVerb::Status(_) => status::run(&client, output).await,
        ClusterVerb::Init(args) => init::run(args, &client, output).await,
        ClusterVerb::Add(args) => add::run(args, &client, output).await,
        ClusterVerb::Join(args) => join::run(args, &client, output).await,
        ClusterVerb::Remove(args) => remove::run(args, &client, output).await,
        ClusterVerb::Replace(args) => replace::run(args, &client, output).await,
        ClusterVerb::Transfer(args) => transfer::run(args, &client, output).await,
    }
}

/// Asks for a change until the cluster decides, or says why it isn't made.
pub(crate) async fn change(
    client: &Client,
    verb: &str,
    body: Value,
    trying: &Trying,
    output: &Output,
) -> Result<Answer, Failure> {
    let call = Call { answer_within: CHANGE_WITHIN, ..Call::post(format!("/cluster/{verb}"), body) };
    let answer = patience::call(client, &call, trying.patience, output).await?;
    if answer.is_success() { Ok(answer) } else { Err(Failure::refusal(&answer)) }
}

/// How the cluster stands, as one node knows.
pub(crate) async fn cluster(client: &Client) -> Result<Answer, Failure> {
    let answer = patience::read(client, &Call::get("/cluster".to_owned())).await?;
    if answer.is_success() { Ok(answer) } else { Err(Failure::refusal(&answer)) }
}

/// The members that a node named.
pub(crate) fn nodes(body: &Value) -> &[Value] {
    body.get("nodes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The id of the new member in an answer; a server that names none isn't one of ours.
fn new_node_id(answer: &Answer) -> Result<u64, Failure> {
    answer.number("nodeId").ok_or_else(|| {
        Failure::new(
            Exit::Unknown,
            "the answer names no nodeId; see `kunci cluster status` for what was done",
        )
    })
}
