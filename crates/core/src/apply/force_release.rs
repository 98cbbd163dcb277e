//! Force release: an operator ends the lease that has a given token, and no other.

use crate::command::ForceRelease;
use crate::effects::Effects;
use crate::grant::End;
use crate::reply::ForceReleaseReply;
use crate::table::LockTable;

impl LockTable {
    pub(super) fn force_release(&mut self, effects: &mut Effects, force: &ForceRelease) -> ForceReleaseReply {
        let Some(lease) = self.lease(&force.resource) else { return ForceReleaseReply::NotHeld };
        if lease.token != force.token {
            let held_by = lease.held_by(self.now(), self.index.queue_length(&force.resource));
            return ForceReleaseReply::OtherToken { held_by };
        }
        let owner = lease.terms.owner.clone();
        self.end_lease(effects, &force.resource, End::Forced(&force.reason));
        self.check_touched(&force.resource);
        ForceReleaseReply::Forced { owner }
    }
}
