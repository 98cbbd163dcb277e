//! Which cluster a verb asks, and through which of its doors: the same options for every verb.
//!
//! Owns: the two options, how they are told in `--help`. Never: what they mean together; see `door`.

use crate::door::Doors;
use clap::{Arg, Args};

macro_rules! doors {
    () => {
        "\
Which cluster:
  --endpoints or KUNCI_ENDPOINTS names native doors, --url or KUNCI_URL the HTTP of one node.
  An option beats the environment, and of both in the environment the endpoints are taken.
  When nothing is said, it is the node of this machine: 127.0.0.1:7401, or
  http://127.0.0.1:7400 for what only HTTP can do."
    };
}
/// How the options, the environment and the defaults go together, for `concat!`.
pub(crate) use doors;

/// The same; the end of a verb's `--help`.
pub(crate) const DOORS: &str = doors!();

/// Which cluster, and through which door.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DoorArgs {
    /// The native doors of the cluster, as host:port,…: its leader is found from any of them. Also: KUNCI_ENDPOINTS.
    /// When nothing is said: 127.0.0.1:7401.
    #[arg(long, value_name = "ADDRESSES", conflicts_with = "url")]
    endpoints: Option<String>,
    /// The HTTP address of a node, such as http://127.0.0.1:7400, in place of native doors. Also: KUNCI_URL.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

impl DoorArgs {
    /// Both doors, as far as the options and the environment name them.
    pub(crate) fn doors(&self) -> Doors {
        let variable = |name: &str| std::env::var(name).ok();
        Doors::find(self.endpoints.as_deref(), self.url.as_deref(), variable)
    }
}

/// An option that a verb has only to be able to say that it can't go that way.
pub(crate) fn beside_the_point(option: Arg) -> Arg {
    option.hide(true)
}

/// `--url` of a verb that only HTTP can answer.
pub(crate) fn only_http(option: Arg) -> Arg {
    option.help("The HTTP address of a node. Also: KUNCI_URL. When nothing is said: http://127.0.0.1:7400")
}
