//! What a person must see at once.

use super::{Model, Reach};
use crate::duration::human;
use kunci_client::Moment;
use std::time::Duration;

/// A change of leader is worth a line for this long.
const CHANGE_SHOWN: Duration = Duration::from_secs(60);

/// The worst first.
pub(super) fn of(model: &Model, now: Moment) -> Vec<String> {
    let mut alarms = Vec::new();
    let rows = model.rows(now);
    let answering = model.answering(now).count();
    let has_asked = model.nodes.iter().any(|node| node.told.is_some() || node.trouble.is_some());
    if has_asked && answering == 0 {
        alarms.push("NO NODE ANSWERS: what is shown is old".to_owned());
    } else if answering > 0 && model.view(now).is_some_and(|view| view.id.is_none()) {
        alarms
            .push("NO CLUSTER: the node belongs to none yet; form one with `kunci cluster init`".to_owned());
    } else if answering > 0 && model.leader(now).is_none() {
        alarms.push("NO LEADER: nothing is granted, renewed or released".to_owned());
    }
    for row in &rows {
        let who = row.id.map_or_else(|| row.http.clone(), |id| format!("node {id} ({})", row.http));
        match &row.reach {
            Reach::No(time, why) => alarms.push(format!("{who} is unreachable for {}: {why}", shown(*time))),
            Reach::Silent(time) => alarms.push(format!("{who} hasn't answered for {}", shown(*time))),
            Reach::Yes | Reach::Unknown => {}
        }
    }
    alarms.extend(disagreement(model, now));
    if model.leader(now).is_some() && model.locks.asked_at.is_some() && model.locks.is_old(now, model.fresh) {
        let age = model.locks.age(now).unwrap_or(model.fresh);
        let why = model.locks.trouble.as_deref().unwrap_or("no answer yet");
        alarms.push(format!("the locks are as of {} ago: {why}", shown(age)));
    }
    if let Some(change) = model.change.filter(|change| now.since(change.at) < CHANGE_SHOWN) {
        let ago = shown(now.since(change.at));
        alarms.push(format!("node {} leads since {ago} ago; before it node {}", change.to, change.from));
    }
    let warnings = model.view(now).map(|view| view.warnings.as_slice()).unwrap_or_default();
    // Those are said above, louder.
    let is_new = |warning: &&String| !warning.contains("knows no leader");
    alarms.extend(warnings.iter().filter(is_new).cloned());
    alarms
}

/// Nodes that answer and don't agree on who leads.
fn disagreement(model: &Model, now: Moment) -> Option<String> {
    let said: Vec<(u64, Option<u64>)> =
        model.answering(now).filter_map(|(_, cluster)| Some((cluster.node_id?, cluster.leader))).collect();
    let (_, first) = said.first()?;
    let known = said.iter().any(|(_, leader)| leader.is_some());
    if !known || said.iter().all(|(_, leader)| leader == first) {
        return None;
    }
    let words = said.iter().map(|(id, leader)| match leader {
        Some(leader) => format!("node {id} says node {leader}"),
        None => format!("node {id} knows none"),
    });
    Some(format!("the nodes disagree on who leads: {}", words.collect::<Vec<_>>().join(", ")))
}

fn shown(time: Duration) -> String {
    human(time.as_secs().saturating_mul(1_000))
}
