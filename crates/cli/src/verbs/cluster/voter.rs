//! From learner to voter: waiting for a new member.
//!
//! Owns: what is said meanwhile, and when the wait is over. Never: makes it a voter; the leader does that by itself.

use super::nodes;
use crate::answer::{Answer, number, text};
use crate::args::Joining;
use crate::client::{Call, Client};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kunci_client::{BootClock, Clock as _};
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;

/// From one look at the cluster to the next.
const PAUSE: Duration = Duration::from_millis(200);
/// From one word about the progress to the next.
const SAY_EVERY: Duration = Duration::from_secs(3);

/// A member that is to become a voter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    /// Its id.
    pub(crate) node_id: u64,
    /// How long to wait for it.
    pub(crate) within: Duration,
}

/// Waits for the new member unless that isn't wanted, then shows the answer that made it one.
pub(super) async fn report(
    client: &Client,
    answer: &Answer,
    node_id: u64,
    joining: &Joining,
    output: &Output,
) -> Result<Exit, Failure> {
    let state = if joining.no_wait {
        "a learner; it becomes a voter by itself once it has caught up"
    } else {
        until_voter(client, Joined { node_id, within: joining.within }, output).await?;
        "a voter"
    };
    output.answer(&answer.body, |body| match number(body, "replaces") {
        Some(old) if joining.no_wait => {
            format!("node {node_id} is a learner; it takes the place of node {old} once it has caught up")
        }
        Some(old) => format!("node {node_id} is a voter, in the place of node {old}"),
        None => format!("node {node_id} is {state}"),
    })?;
    Ok(Exit::Done)
}

/// Waits until a member is a voter, telling the person how far it is.
pub(crate) async fn until_voter(client: &Client, joined: Joined, output: &Output) -> Result<(), Failure> {
    let Joined { node_id, within } = joined;
    let give_up_at = BootClock.now().plus(within);
    let mut say_at = BootClock.now().plus(SAY_EVERY);
    let mut was_there = false;
    loop {
        // A node that can't be asked right now may be back in a moment; the change goes on without us.
        let answer = client.call(&Call::get("/cluster".to_owned())).await.ok().filter(Answer::is_success);
        let seen = answer.as_ref().map(|answer| Seen::of(&answer.body, node_id));
        match seen {
            Some(Seen::Voter) => return Ok(()),
            Some(Seen::Learner { .. }) => was_there = true,
            // Before that, the node that is asked may just not have heard of it.
            Some(Seen::Nothing) if was_there => {
                return Err(Failure::new(
                    Exit::Refused,
                    format!(
                        "node {node_id} was removed before it was a voter; `kunci cluster status` shows who is left"
                    ),
                ));
            }
            Some(Seen::Nothing) | None => {}
        }
        let now = BootClock.now();
        if now >= give_up_at {
            return Err(Failure::new(
                Exit::Unknown,
                format!(
                    "node {node_id} is a member and not yet a voter after {within:?}; it becomes one by itself, and \
                     `kunci cluster status` shows when; repeat the same command to go on waiting"
                ),
            ));
        }
        if now >= say_at {
            say_at = now.plus(SAY_EVERY);
            output.say(&format!("node {node_id} {}", progress(seen)));
        }
        sleep(PAUSE).await;
    }
}

fn progress(seen: Option<Seen>) -> String {
    match seen {
        Some(Seen::Learner { applied, leader }) => {
            format!("is catching up: it has applied {applied} of {leader} log entries")
        }
        Some(Seen::Nothing) => "isn't among the members yet".to_owned(),
        Some(Seen::Voter) => "is a voter".to_owned(),
        None => "can't be looked at: no answer to GET /cluster right now".to_owned(),
    }
}

/// How a member stands in the eyes of the node that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Learner { applied: u64, leader: u64 },
    Voter,
}

impl Seen {
    fn of(body: &Value, node_id: u64) -> Self {
        let applied = |id| {
            let node = nodes(body).iter().find(|node| number(node, "id") == id);
            node.and_then(|node| number(node, "appliedIndex")).unwrap_or(0)
        };
        let node = nodes(body).iter().find(|node| number(node, "id") == Some(node_id));
        match node.and_then(|node| text(node, "role")) {
            None => Self::Nothing,
            Some("learner") => {
                Self::Learner { applied: applied(Some(node_id)), leader: applied(number(body, "leader")) }
            }
            Some(_) => Self::Voter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_member_is_first_unknown_then_a_learner_then_a_voter() {
        let body = |role: &str| {
            json!({ "leader": 1, "nodes": [
                { "id": 1, "role": "leader", "appliedIndex": 90 },
                { "id": 4, "role": role, "appliedIndex": 7 },
            ]})
        };
        assert_eq!(Seen::of(&body("learner"), 3), Seen::Nothing);
        assert_eq!(Seen::of(&body("learner"), 4), Seen::Learner { applied: 7, leader: 90 });
        for role in ["follower", "candidate", "leader"] {
            assert_eq!(Seen::of(&body(role), 4), Seen::Voter, "{role}");
        }
    }
}
