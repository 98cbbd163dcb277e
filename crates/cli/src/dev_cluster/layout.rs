//! Where each node of a dev-cluster has its folder and its ports.
//!
//! Owns: the folder `DIR`, and that it fits what was asked for. Never: what is in a node's data folder.

use super::nodes::Nodes;
use crate::answer::{number, shown, text};
use crate::args::DevClusterArgs;
use crate::exit::{Exit, Failure};
use crate::output::table;
use crate::verbs::cluster::nodes as members;
use serde_json::Value;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

/// From the ports of one node to those of the next.
const PORTS_EACH: u16 = 10;
/// The file in `DIR` that says which ports its nodes have.
const BASE_PORT: &str = "base-port";
/// Bytes of a log that are shown when a node doesn't start.
const LOG_END_BYTES: usize = 2_000;

/// All nodes.
#[derive(Debug)]
pub(super) struct Layout {
    folder: PathBuf,
    base_port: u16,
    nodes: Vec<Node>,
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    /// Its number, from 0.
    pub(super) index: usize,
    folder: PathBuf,
    port: u16,
}

impl Node {
    /// Where its HTTP is.
    pub(super) fn http(&self) -> SocketAddr {
        self.door(0)
    }

    /// Where its native protocol will be.
    pub(super) fn native(&self) -> SocketAddr {
        self.door(1)
    }

    /// Where its peers connect to.
    pub(super) fn peer(&self) -> SocketAddr {
        self.door(2)
    }

    fn door(&self, which: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port.saturating_add(which)))
    }

    /// Its data folder: apart from pid and log, so that it holds a node's data alone.
    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The file with its process id, while it runs.
    pub(super) fn pid_file(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// What it says.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// What it said last.
    pub(super) fn log_end(&self) -> String {
        let bytes = std::fs::read(self.log()).unwrap_or_default();
        let end = &bytes[bytes.len().saturating_sub(LOG_END_BYTES)..];
        let text = String::from_utf8_lossy(end);
        text.lines().last().unwrap_or("its log is empty").to_owned()
    }
}

impl Layout {
    /// Lays out the nodes.
    pub(super) fn new(args: &DevClusterArgs) -> Result<Self, Failure> {
        let last = u32::from(args.base_port) + u32::from(PORTS_EACH * (args.nodes - 1)) + 2;
        if last > u32::from(u16::MAX) {
            return Err(Failure::usage(format!(
                "--base-port {}: {} nodes would need ports up to {last}; use a smaller one",
                args.base_port, args.nodes
            )));
        }
        let node = |index: u16| Node {
            index: usize::from(index),
            folder: args.data.join(format!("node-{index}")),
            port: args.base_port + PORTS_EACH * index,
        };
        Ok(Self {
            folder: args.data.clone(),
            base_port: args.base_port,
            nodes: (0..args.nodes).map(node).collect(),
        })
    }

    /// Every node, in order.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub(super) fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)
    }

    /// Checks that ports and folder can be used, and makes the folders.
    pub(super) fn prepare(&self) -> Result<(), Failure> {
        self.check_earlier_life()?;
        for node in &self.nodes {
            for (what, door) in [("HTTP", node.http()), ("native", node.native()), ("peers", node.peer())] {
                TcpListener::bind(door).map_err(|error| {
                    Failure::new(
                        Exit::Refused,
                        format!(
                            "port {} is needed for {what} of node-{} and can't be had ({error}); end what listens \
                             there, or choose another --base-port",
                            door.port(),
                            node.index
                        ),
                    )
                })?;
            }
        }
        for node in &self.nodes {
            std::fs::create_dir_all(&node.folder).map_err(|error| cannot("make", &node.folder, &error))?;
        }
        let note = self.folder.join(BASE_PORT);
        std::fs::write(&note, format!("{}\n", self.base_port)).map_err(|error| cannot("write", &note, &error))
    }

    /// Members know each other by their ports, and a cluster misses each member that isn't started.
    fn check_earlier_life(&self) -> Result<(), Failure> {
        let note = self.folder.join(BASE_PORT);
        let earlier = match std::fs::read_to_string(&note) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(cannot("read", &note, &error)),
        };
        let folder = self.folder.display();
        if earlier != self.base_port.to_string() {
            return Err(Failure::new(
                Exit::Refused,
                format!(
                    "the cluster in {folder} was made with --base-port {earlier}, and its members know each other by \
                     those ports; use it again, or another --data"
                ),
            ));
        }
        let is_there = |index: &usize| self.folder.join(format!("node-{index}")).exists();
        match (self.nodes.len()..9).rev().find(is_there) {
            None => Ok(()),
            Some(last) => Err(Failure::new(
                Exit::Refused,
                format!(
                    "the cluster in {folder} has {} nodes; start as many with --nodes {}, or choose another --data",
                    last + 1,
                    last + 1
                ),
            )),
        }
    }

    /// What a person is told once the cluster is up.
    pub(super) fn summary(&self, cluster: &Value, running: &Nodes) -> String {
        let row = |node: &Node| {
            let peer = node.peer().to_string();
            let member = members(cluster).iter().find(|member| text(member, "peer") == Some(&peer));
            let of_member =
                |field| member.and_then(|member| shown(member, field)).unwrap_or_else(|| "-".to_owned());
            vec![
                format!("node-{}", node.index),
                of_member("id"),
                of_member("role"),
                of_member("zone"),
                running.process_id(node.index).map_or_else(|| "-".to_owned(), |id| id.to_string()),
                format!("http://{}", node.http()),
                node.native().to_string(),
                peer,
            ]
        };
        let heads = ["NODE", "ID", "ROLE", "ZONE", "PROCESS", "HTTP", "NATIVE", "PEERS"];
        let rows: Vec<_> = self.nodes.iter().map(row).collect();
        let leader = number(cluster, "leader");
        let is_leader = |member: &&Value| number(member, "id") == leader;
        let leader_peer = members(cluster).iter().find(is_leader).and_then(|member| text(member, "peer"));
        let leads = self.nodes.iter().find(|node| leader_peer == Some(&node.peer().to_string()));
        let leading_pid = leads.or(self.nodes.first()).map(Node::pid_file).unwrap_or_default();
        let doors: Vec<String> = self.nodes.iter().map(|node| node.native().to_string()).collect();
        let other = self.nodes.last().map(|node| format!("http://{}", node.http())).unwrap_or_default();
        format!(
            "cluster {} is up\n{}\n\ntry, in another terminal:\n  export KUNCI_ENDPOINTS={}\n  kunci acquire demo\n  \
             kunci cluster status --url {other}\n  kill -9 $(cat {})   # the leader; the others go on\nCtrl-C here stops all nodes; their data stays in {}",
            text(cluster, "clusterId").unwrap_or("?"),
            table(&heads, &rows),
            doors.join(","),
            leading_pid.display(),
            self.folder.display()
        )
    }
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Refused,
        format!("{verb} {}: {error}; name a folder to write to with --data", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(folder: &Path, nodes: u16, base_port: u16) -> Result<Layout, Failure> {
        Layout::new(&DevClusterArgs { nodes, data: folder.to_owned(), base_port })
    }

    #[test]
    fn node_i_has_the_base_port_and_ten_times_i() {
        let layout = layout(Path::new("d"), 3, 7400).unwrap();

        let last = layout.node(2).unwrap();
        assert_eq!((last.http().port(), last.native().port(), last.peer().port()), (7420, 7421, 7422));
        assert_eq!(last.pid_file(), Path::new("d/node-2/pid"));
        assert_eq!(last.data(), Path::new("d/node-2/data"));
    }

    #[test]
    fn ports_beyond_the_last_are_refused() {
        let text = layout(Path::new("d"), 9, 65_500).unwrap_err().text;
        assert!(text.contains("--base-port 65500") && text.contains("65582"), "{text}");
    }

    #[test]
    fn a_folder_of_another_cluster_is_refused_with_what_would_fit() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(BASE_PORT), "7400\n").unwrap();
        for index in 0..5 {
            std::fs::create_dir(folder.path().join(format!("node-{index}"))).unwrap();
        }
        let said = |nodes, port| layout(folder.path(), nodes, port).unwrap().check_earlier_life();

        assert!(said(3, 7500).unwrap_err().text.contains("--base-port 7400"));
        assert!(said(3, 7400).unwrap_err().text.contains("--nodes 5"));
        assert!(said(5, 7400).is_ok());
    }
}
