//! Raise revision: make every later token larger than a floor that the protected resources may have seen.

use crate::command::RaiseRevision;
use crate::effects::Effects;
use crate::event::{Event, EventKind};
use crate::reply::RaiseRevisionReply;
use crate::table::LockTable;
use kunci_types::Revision;

/// The highest floor: above it 2^52 revisions are left, more than 140 years of a million a second.
const FLOOR_MAX: u64 = 1 << 52;

impl LockTable {
    pub(super) fn raise_revision(
        &mut self,
        effects: &mut Effects,
        raise: &RaiseRevision,
    ) -> RaiseRevisionReply {
        if raise.floor.get() > FLOOR_MAX {
            return RaiseRevisionReply::TooHigh { max: Revision::new(FLOOR_MAX).unwrap_or(Revision::MAX) };
        }
        if raise.floor <= self.state.head.revision {
            return RaiseRevisionReply::AlreadyAbove;
        }
        self.state.head.revision = raise.floor;
        effects.events.push(Event { revision: raise.floor, at: self.now(), kind: EventKind::RevisionRaised });
        RaiseRevisionReply::Raised
    }
}
