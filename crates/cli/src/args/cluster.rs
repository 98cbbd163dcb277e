//! The options of `kunci cluster` and `kunci dev-cluster`.

use super::door::{beside_the_point, only_http};
use super::{Server, Trying};
use crate::duration::parse_positive;
use crate::exit::CODES;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// What `kunci cluster --help` says after its verbs.
const STORY: &str = "\
A cluster of three, each node started as `kunci server --wait-for-cluster …` on its own machine:
  kunci cluster init --url http://a:7400      form it with a as its only member
  kunci cluster add b:7402 --url http://a:7400
  kunci cluster add c:7402 --url http://a:7400
  kunci cluster status --url http://a:7400
A new node is a learner until it has caught up, then a voter. One change goes on at a time.
`kunci dev-cluster` does all this on one machine.";

/// `kunci cluster`.
#[derive(Debug, Args)]
#[command(after_help = STORY)]
pub(crate) struct ClusterArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: ClusterVerb,
}

/// What can be done with a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Show the members, who leads, and what to look at; asks one node, and needs no quorum.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Status(ClusterStatusArgs),
    /// Form a cluster with the node at --url, which belongs to none yet, as its only member.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Init(InitArgs),
    /// Take a new node into the cluster of the node at --url.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Add(AddArgs),
    /// The same from the other side: let the new node at --url join the cluster of a member.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Join(JoinArgs),
    /// Take a member out of the cluster.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Remove(RemoveArgs),
    /// Let a new node take the place of a member, in one step once it has caught up.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Replace(ReplaceArgs),
    /// Let another member lead.
    #[command(after_help = CODES, mut_arg("endpoints", beside_the_point), mut_arg("url", only_http))]
    Transfer(TransferArgs),
}

impl ClusterArgs {
    /// The options that every verb has.
    pub(crate) fn server(&self) -> &Server {
        match &self.verb {
            ClusterVerb::Status(args) => &args.server,
            ClusterVerb::Init(args) => &args.server,
            ClusterVerb::Add(args) => &args.server,
            ClusterVerb::Join(args) => &args.server,
            ClusterVerb::Remove(args) => &args.server,
            ClusterVerb::Replace(args) => &args.server,
            ClusterVerb::Transfer(args) => &args.server,
        }
    }
}

/// `kunci cluster status`.
#[derive(Debug, Args)]
pub(crate) struct ClusterStatusArgs {
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci cluster init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Every fencing token of the new cluster is larger than N; for a cluster in the place of one that was lost.
    #[arg(long, value_name = "N")]
    pub(crate) token_floor: Option<u64>,
    #[command(flatten)]
    pub(crate) trying: Trying,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Waiting for a new member to become a voter.
#[derive(Debug, Args)]
pub(crate) struct Joining {
    /// Don't wait until the new node is a voter; it becomes one by itself.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// How long to wait at most until the new node is a voter.
    #[arg(long, default_value = "5m", value_parser = parse_positive, value_name = "DURATION")]
    pub(crate) within: Duration,
    #[command(flatten)]
    pub(crate) trying: Trying,
}

/// `kunci cluster add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Where the members reach the new node: its --peer address, such as db4:7402.
    #[arg(value_name = "PEER")]
    pub(crate) peer: String,
    #[command(flatten)]
    pub(crate) joining: Joining,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci cluster join`.
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// The HTTP address of any member of the cluster, such as db1:7400; --url is the new node.
    #[arg(value_name = "MEMBER")]
    pub(crate) member: String,
    #[command(flatten)]
    pub(crate) joining: Joining,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci cluster remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The member's id, as `kunci cluster status` shows it.
    #[arg(value_name = "ID")]
    pub(crate) node_id: u64,
    /// Also when the members that are left and up would be hardly a quorum.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) trying: Trying,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci cluster replace`.
#[derive(Debug, Args)]
pub(crate) struct ReplaceArgs {
    /// The id of the member that goes, as `kunci cluster status` shows it.
    #[arg(value_name = "ID")]
    pub(crate) node_id: u64,
    /// Where the members reach the new node: its --peer address, such as db4:7402.
    #[arg(value_name = "PEER")]
    pub(crate) peer: String,
    #[command(flatten)]
    pub(crate) joining: Joining,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci cluster transfer`.
#[derive(Debug, Args)]
pub(crate) struct TransferArgs {
    /// The id of the member that shall lead. Without it: the one that is best suited.
    #[arg(value_name = "ID")]
    pub(crate) to: Option<u64>,
    #[command(flatten)]
    pub(crate) trying: Trying,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// `kunci dev-cluster`.
#[derive(Debug, Args)]
#[command(after_help = crate::dev_cluster::AFTER_HELP)]
pub(crate) struct DevClusterArgs {
    /// How many nodes: 1 to 9.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9), value_name = "N")]
    pub(crate) nodes: u16,
    /// Where the nodes keep their data; a later start goes on with it.
    #[arg(long, default_value = "./kunci-dev", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The first port: node i, from 0, has this + 10 * i for HTTP, the next one for the native protocol, and
    /// the one after that for its peers.
    #[arg(long, default_value_t = 7400, value_parser = clap::value_parser!(u16).range(1..), value_name = "PORT")]
    pub(crate) base_port: u16,
}
