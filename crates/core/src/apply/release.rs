//! Release: the holder ends its lease, and the next waiter gets the resource in the same step.

use crate::command::Release;
use crate::effects::Effects;
use crate::grant::End;
use crate::reply::{LeaseEnd, NotHolder, ReleaseReply, Told};
use crate::table::LockTable;

impl LockTable {
    pub(super) fn release(&mut self, effects: &mut Effects, release: &Release) -> ReleaseReply {
        match self.prove(&release.resource, &release.proof) {
            Ok(_) => {
                self.end_lease(effects, &release.resource, End::Released);
                self.check_touched(&release.resource);
                ReleaseReply::Released(Told::First)
            }
            Err(NotHolder::Ended(LeaseEnd::Released)) => ReleaseReply::Released(Told::Again),
            Err(
                not_holder @ (NotHolder::Ended(LeaseEnd::Expired | LeaseEnd::Forced | LeaseEnd::Abandoned)
                | NotHolder::UnknownLease
                | NotHolder::ProofNotAllowed),
            ) => ReleaseReply::NotHolder(not_holder),
        }
    }
}
