//! A cluster of real processes, each on a network of its own, and what can happen to them.
//!
//! Owns: the nodes and their network. Everything that it makes is gone when it is dropped, after a panic too; it
//! signals only what it started itself.

mod disk;
mod false_time;
mod forming;
mod inside;
pub(crate) mod leftovers;
mod network;
mod node;
pub(crate) mod programs;
mod slow_disk;

pub(crate) use false_time::FalseTime;
pub(crate) use network::Way;
pub(crate) use node::Node;
pub(crate) use slow_disk::{DiskFault, SlowDisk};

use crate::client::Caller;
use crate::clock::wait_for;
use crate::run::Run;
use disk::SmallDisk;
use network::Network;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for anything that should take a second or two on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The nodes of one test.
pub(crate) struct World {
    nodes: Vec<Node>,
    /// After the nodes that use them.
    disks: BTreeMap<usize, SmallDisk>,
    network: Network,
}

impl World {
    /// Starts `count` nodes and forms a cluster of them.
    pub(crate) fn start(run: &Run, count: usize) -> Self {
        let mut world = Self::prepare(run, count);
        for number in 1..=count {
            world.node(number).start();
        }
        world.form(count);
        world
    }

    /// Makes the network and the folders for `count` nodes, and starts none.
    pub(crate) fn prepare(run: &Run, count: usize) -> Self {
        let network = Network::make(count);
        let node =
            |number: usize| Node::new(number, network.node(number), network.address(number), run.folder());
        Self { nodes: (1..=count).map(node).collect(), disks: BTreeMap::new(), network }
    }

    /// A node, by its number from 1. The number is the test's; the cluster gives ids of its own.
    pub(crate) fn node(&mut self, number: usize) -> &mut Node {
        &mut self.nodes[number - 1]
    }

    /// Gives a node a disk of so many MiB, before its first start.
    pub(crate) fn give_disk(&mut self, number: usize, mebibytes: u32) {
        let disk = SmallDisk::mount(self.node(number).data(), mebibytes);
        self.disks.insert(number, disk);
    }

    /// The small disk of a node.
    pub(crate) fn disk(&self, number: usize) -> &SmallDisk {
        &self.disks[&number]
    }

    /// How many there are, running or not.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The faults of the network.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// The addresses of all nodes' HTTP doors.
    pub(crate) fn doors(&self) -> Vec<std::net::SocketAddr> {
        self.nodes.iter().map(Node::http).collect()
    }

    /// The addresses of all nodes' native doors.
    pub(crate) fn native_doors(&self) -> Vec<String> {
        self.nodes.iter().map(Node::native).collect()
    }

    /// Runs a client on the clients' network, on a thread of its own, and waits for its end.
    pub(crate) fn inside<T, F, Fut>(&self, work: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T>,
    {
        inside::join(self.begin_inside(work))
    }

    /// Runs a client on the clients' network, on a thread of its own.
    pub(crate) fn begin_inside<T, F, Fut>(&self, work: F) -> std::thread::JoinHandle<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T>,
    {
        inside::begin(self.network.clients(), work)
    }

    /// A command that runs on the clients' network.
    pub(crate) fn command_inside(&self, program: &std::path::Path) -> std::process::Command {
        inside::command(self.network.clients(), program)
    }

    /// One call to one node that isn't part of the history: status and JSON.
    pub(crate) fn ask(
        &self,
        number: usize,
        method: &'static str,
        path: &str,
        body: Option<Value>,
    ) -> Option<(u16, Value)> {
        let (door, path) = (self.nodes[number - 1].http(), path.to_owned());
        self.inside(move || async move { Caller::ask(door, method, &path, body.as_ref()).await })
    }

    /// The number of the node that leads, once a node says that it does.
    pub(crate) fn leader(&self) -> usize {
        wait_for(PATIENCE, || self.leader_now()).expect("no node leads after 20 s")
    }

    /// The number of the node that says that it leads and serves, if there is just one.
    pub(crate) fn leader_now(&self) -> Option<usize> {
        let running = self.nodes.iter().filter(|node| node.is_answering());
        let leading = running.map(Node::number).filter(|number| self.leads(*number));
        let leading: Vec<usize> = leading.collect();
        (leading.len() == 1).then(|| leading[0])
    }

    /// Whether a node says that it leads.
    pub(crate) fn leads(&self, number: usize) -> bool {
        let Some((200, cluster)) = self.ask(number, "GET", "/cluster", None) else { return false };
        cluster["leader"].is_u64() && cluster["leader"] == cluster["nodeId"]
    }

    /// The other nodes.
    pub(crate) fn others(&self, number: usize) -> Vec<usize> {
        (1..=self.count()).filter(|other| *other != number).collect()
    }
}
