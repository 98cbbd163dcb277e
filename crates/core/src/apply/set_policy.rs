//! Set policy: change the limits, for those who saw the ones that they replace.

use crate::command::SetPolicy;
use crate::effects::Effects;
use crate::event::{Event, EventKind};
use crate::reply::SetPolicyReply;
use crate::table::LockTable;

impl LockTable {
    pub(super) fn set_policy(&mut self, effects: &mut Effects, set: &SetPolicy) -> SetPolicyReply {
        let current = self.state.head.policy_revision;
        if set.replaces != current {
            return SetPolicyReply::OtherRevision { current };
        }
        if let Err(invalid) = set.policy.check() {
            return SetPolicyReply::Invalid(invalid);
        }
        let revision = self.next_revision();
        self.state.head.policy = set.policy.clone();
        self.state.head.policy_revision = revision;
        effects.events.push(Event { revision, at: self.now(), kind: EventKind::PolicyChanged });
        SetPolicyReply::Changed
    }
}
