//! What the records of a log say, for the simulator, which looks at what is on a node's disk. In no build but its own
//! (`--cfg kunci_plants`).
//!
//! Owns: from a record's bytes to the few things that a check needs. Never: opens or changes a log.

use super::LogTypes;
use crate::raft_types::Payload;
use codeq::Decode;
use raft_log::{RaftLogAction, RaftLogRecord, WALRecord};
use std::collections::BTreeSet;

/// What a record of the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// An entry of the log.
    Entry {
        /// The term in which it was proposed.
        term: u64,
        /// Its place.
        index: u64,
        /// When it is a membership: the sets of voters, of each of which a majority is needed.
        voters: Option<Vec<BTreeSet<u64>>>,
    },
    /// Something else.
    Other,
}

/// Reads the whole record that `bytes` begin with: what it says, and how long it is. `None` if none does.
pub fn record(bytes: &[u8]) -> Option<(Seen, usize)> {
    let mut rest = bytes;
    let record = RaftLogRecord::<LogTypes>::decode(&mut rest).ok()?;
    let seen = match record {
        WALRecord::Action(RaftLogAction::Append(id, payload)) => {
            let voters = match payload.0 {
                Payload::Membership(members) => Some(members.get_joint_config().clone()),
                Payload::Blank | Payload::Normal(_) => None,
            };
            Seen::Entry { term: id.0.leader_id.term, index: id.0.index, voters }
        }
        WALRecord::Action(_) | WALRecord::Checkpoint(_) => Seen::Other,
    };
    Some((seen, bytes.len() - rest.len()))
}
