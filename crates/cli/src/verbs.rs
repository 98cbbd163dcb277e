//! One file for each verb.

pub(crate) mod acquire;
pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod fence;
pub(crate) mod force_release;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod queue;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod repair;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod watch;
