//! Abandon: end a grant that provably nobody was told of. No lock-delay: nobody can be at work under it.

use crate::command::Abandon;
use crate::effects::Effects;
use crate::grant::End;
use crate::lease::Sight;
use crate::reply::AbandonReply;
use crate::table::LockTable;

impl LockTable {
    pub(super) fn abandon(&mut self, effects: &mut Effects, abandon: &Abandon) -> AbandonReply {
        let Some(record) = self.request(&abandon.request) else { return AbandonReply::Stale };
        let resource = record.resource.clone();
        let meant = Sight::Meant { attempt: abandon.attempt, term: self.state.head.term };
        match self.lease(&resource) {
            Some(lease) if lease.request == abandon.request && lease.sight == meant => {
                self.end_lease(effects, &resource, End::Abandoned);
                self.check_touched(&resource);
                AbandonReply::Abandoned
            }
            Some(_) | None => AbandonReply::Stale,
        }
    }
}
