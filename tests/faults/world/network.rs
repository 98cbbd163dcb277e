//! The network of one world, and its faults.
//!
//! Owns: a namespace for each node, one for the clients, and a hub with a bridge that joins them; all addresses and
//! interfaces are inside these, none is the host's. Cuts are DROP rules in the namespace of the receiver. Delay
//! is a token bucket: the kernels that this runs on have no netem, and NFQUEUE would need a program that holds
//! packets back.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

static WORLDS: AtomicU64 = AtomicU64::new(0);

/// Every namespace's name begins so; then comes the process that made it.
pub(super) const PREFIX: &str = "kunci-faults-";

/// The clients' last byte.
const CLIENTS: u8 = 200;

/// Which packets are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the first to the second only.
    There,
    /// In both directions.
    Both,
}

/// Namespaces, joined.
pub(crate) struct Network {
    prefix: String,
    nodes: Vec<String>,
    clients: String,
}

impl Network {
    /// Makes one for so many nodes.
    pub(super) fn make(count: usize) -> Self {
        let world = WORLDS.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("{PREFIX}{}-{world}", std::process::id());
        let nodes = (1..=count).map(|number| format!("{prefix}-n{number}")).collect();
        let network = Self { clients: format!("{prefix}-clients"), nodes, prefix };
        let hub = network.hub();
        ip(&["netns", "add", &hub]);
        ip(&["-n", &hub, "link", "add", "bridge", "type", "bridge"]);
        ip(&["-n", &hub, "link", "set", "bridge", "up"]);
        for (number, namespace) in network.nodes.iter().enumerate() {
            join(&hub, namespace, last_byte(number + 1));
        }
        join(&hub, &network.clients, CLIENTS);
        network
    }

    fn hub(&self) -> String {
        format!("{}-hub", self.prefix)
    }

    /// The namespace of a node, from 1.
    pub(super) fn node(&self, number: usize) -> &str {
        &self.nodes[number - 1]
    }

    /// The namespace of the clients.
    pub(super) fn clients(&self) -> &str {
        &self.clients
    }

    /// The address of a node, from 1.
    pub(super) fn address(&self, number: usize) -> Ipv4Addr {
        address(last_byte(number))
    }

    /// Drops everything from node `from` to node `to`, or between them.
    pub(crate) fn cut(&self, from: usize, to: usize, way: Way) {
        drop_from(self.node(to), self.address(from));
        if way == Way::Both {
            drop_from(self.node(from), self.address(to));
        }
    }

    /// Cuts a node off from the nodes named, both ways. Clients still reach it.
    pub(crate) fn isolate(&self, number: usize, others: &[usize]) {
        others.iter().for_each(|other| self.cut(number, *other, Way::Both));
    }

    /// Drops everything between the clients and a node.
    pub(crate) fn cut_clients(&self, number: usize) {
        drop_from(self.node(number), address(CLIENTS));
        drop_from(&self.clients, self.address(number));
    }

    /// Loses so many of a hundred packets between two nodes.
    pub(crate) fn lose(&self, one: usize, other: usize, of_hundred: u32) {
        let chance = format!("0.{of_hundred:02}");
        for (at, from) in [(one, other), (other, one)] {
            let from = self.address(from).to_string();
            iptables(
                self.node(at),
                &[
                    "-A",
                    "INPUT",
                    "-s",
                    &from,
                    "-m",
                    "statistic",
                    "--mode",
                    "random",
                    "--probability",
                    &chance,
                    "-j",
                    "DROP",
                ],
            );
        }
    }

    /// Lets a node send only so many kilobits a second; what is over waits, up to half a second.
    pub(crate) fn slow(&self, number: usize, kilobits: u32) {
        let rate = format!("{kilobits}kbit");
        let tail = ["dev", "eth0", "root", "tbf", "rate", &rate, "burst", "16k", "latency", "500ms"];
        let status =
            Command::new("tc").args(["-n", self.node(number), "qdisc", "replace"]).args(tail).status();
        assert!(status.unwrap().success(), "tc can't slow down node {number}");
    }

    /// Mends everything.
    pub(crate) fn heal(&self) {
        for namespace in self.nodes.iter().chain([&self.clients]) {
            iptables(namespace, &["-F"]);
            // There is none, as a rule.
            let mut tc = Command::new("tc");
            tc.args(["-n", namespace, "qdisc", "del", "dev", "eth0", "root"]);
            drop(tc.output());
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let hub = self.hub();
        for namespace in self.nodes.iter().chain([&self.clients, &hub]) {
            drop(Command::new("ip").args(["netns", "delete", namespace]).output());
        }
    }
}

/// Node 1 is 10.77.0.1.
fn last_byte(number: usize) -> u8 {
    u8::try_from(number).unwrap()
}

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, last)
}

/// Makes a namespace and plugs it into the hub.
fn join(hub: &str, namespace: &str, last: u8) {
    let port = format!("port{last}");
    ip(&["netns", "add", namespace]);
    ip(&["-n", hub, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", namespace]);
    ip(&["-n", hub, "link", "set", &port, "master", "bridge", "up"]);
    ip(&["-n", namespace, "addr", "add", &format!("{}/24", address(last)), "dev", "eth0"]);
    ip(&["-n", namespace, "link", "set", "eth0", "up"]);
    ip(&["-n", namespace, "link", "set", "lo", "up"]);
}

fn drop_from(namespace: &str, from: Ipv4Addr) {
    iptables(namespace, &["-A", "INPUT", "-s", &from.to_string(), "-j", "DROP"]);
}

fn iptables(namespace: &str, arguments: &[&str]) {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "iptables", "-w"]).args(arguments);
    must(command);
}

fn ip(arguments: &[&str]) {
    let mut command = Command::new("ip");
    command.args(arguments);
    must(command);
}

fn must(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests;
