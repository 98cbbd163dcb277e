//! From single nodes to a cluster, the way an operator does it.

use super::{PATIENCE, World};
use crate::clock::{pause, wait_for};
use serde_json::{Value, json};

impl World {
    /// Forms a cluster: node 1 founds it, the others are added one after another.
    pub(crate) fn form(&mut self, count: usize) {
        for number in 1..=count {
            self.answers(number);
        }
        let (status, answer) = self.ask(1, "POST", "/cluster/init", Some(json!({}))).unwrap();
        assert!(status == 200, "node 1 doesn't found a cluster: {status} {answer}");
        self.wait_ready(1);
        for number in 2..=count {
            self.add(1, number);
        }
        // Until here node 1 leads: nobody else could.
        (1..=count).for_each(|number| self.wait_ready(number));
    }

    /// Waits until a node's HTTP door is open.
    pub(crate) fn answers(&mut self, number: usize) {
        let answered = wait_for(PATIENCE, || self.ask(number, "GET", "/livez", None));
        assert!(answered.is_some(), "node {number} doesn't answer:\n{}", self.node(number).words());
    }

    /// Waits until a node answers requests about locks.
    pub(crate) fn wait_ready(&mut self, number: usize) {
        let ready = wait_for(PATIENCE, || {
            self.ask(number, "GET", "/readyz", None).filter(|(status, _)| *status == 200)
        });
        assert!(ready.is_some(), "node {number} isn't ready:\n{}", self.node(number).words());
    }

    /// Starts a node that was a member, and waits until it is one again, as the leader sees it.
    pub(crate) fn revive(&mut self, number: usize) {
        self.node(number).start();
        self.wait_ready(number);
        let (leader, id) = (self.leader(), self.id_of(number));
        self.wait_voter(leader, id);
    }

    /// Adds a node through a member, and waits until it is a voter.
    pub(crate) fn add(&mut self, member: usize, number: usize) -> u64 {
        let peer = self.node(number).peer();
        let id = self.change(member, "/cluster/add", &json!({ "peer": peer }))["nodeId"].as_u64().unwrap();
        self.wait_voter(member, id);
        id
    }

    /// Waits until a member's id is that of a voter that is up.
    pub(crate) fn wait_voter(&mut self, member: usize, id: u64) {
        let voter = wait_for(PATIENCE, || {
            self.member(member, id).filter(|node| is_voter(node) && node["healthy"] == true)
        });
        let seen = self.ask(member, "GET", "/cluster", None);
        assert!(voter.is_some(), "member {id} isn't a voter in time: {seen:?}");
    }

    /// What a member says of the member with this id.
    pub(crate) fn member(&self, member: usize, id: u64) -> Option<Value> {
        let (_, cluster) = self.ask(member, "GET", "/cluster", None)?;
        cluster["nodes"].as_array()?.iter().find(|node| node["id"] == id).cloned()
    }

    /// The id that the cluster gave a node.
    pub(crate) fn id_of(&self, number: usize) -> u64 {
        let (_, cluster) = self.ask(number, "GET", "/cluster", None).unwrap();
        cluster["nodeId"].as_u64().unwrap_or_else(|| panic!("node {number} has no id: {cluster}"))
    }

    /// A change of the cluster, asked for until it is taken: another one may be under way.
    pub(crate) fn change(&mut self, member: usize, path: &'static str, body: &Value) -> Value {
        let mut last = None;
        for _ in 0..100 {
            match self.ask(member, "POST", path, Some(body.clone())) {
                Some((200, answer)) => return answer,
                other => last = other,
            }
            pause(100);
        }
        panic!("{path} {body} isn't taken: {last:?}\n{}", self.node(member).words());
    }
}

fn is_voter(node: &Value) -> bool {
    ["leader", "follower", "candidate"].contains(&node["role"].as_str().unwrap_or_default())
}
