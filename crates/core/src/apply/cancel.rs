//! Cancel: no grant may follow. If one came first, the caller is told of it, and releases it.

use crate::command::Cancel;
use crate::due::WaitEnd;
use crate::effects::Effects;
use crate::reply::{CancelReply, Told};
use crate::request::{Arguments, Closed, Request, RequestKey, RequestState};
use crate::table::LockTable;

impl LockTable {
    pub(super) fn cancel(&mut self, effects: &mut Effects, cancel: &Cancel) -> CancelReply {
        let key = RequestKey::new(&cancel.caller, &cancel.request_id);
        let reply = match self.request(&key) {
            None => self.cancel_unseen(key, cancel),
            Some(record) if record.resource != cancel.resource => CancelReply::RequestIdReused,
            Some(record) => match &record.state {
                RequestState::Waiting(_) => {
                    self.end_wait(effects, &key, WaitEnd::Cancelled);
                    CancelReply::Cancelled(Told::First)
                }
                RequestState::Granted { .. } => CancelReply::Granted(self.grant_again(&cancel.resource)),
                RequestState::Ended { how, token, .. } => {
                    CancelReply::LeaseEnded { how: *how, token: *token }
                }
                RequestState::Closed { .. } => CancelReply::Cancelled(Told::Again),
            },
        };
        self.check_touched(&cancel.resource);
        reply
    }

    /// Remembers the cancel, so that an acquire that comes later than its own cancel is refused.
    fn cancel_unseen(&mut self, key: RequestKey, cancel: &Cancel) -> CancelReply {
        if let Some(limit) = self.outcome_limit() {
            return CancelReply::OverLimit(limit);
        }
        let at = self.now();
        self.index.ended.insert((at, key.text().clone()));
        let state = RequestState::Closed { at, how: Closed::Cancelled };
        self.insert_request(
            key,
            Request { resource: cancel.resource.clone(), arguments: Arguments::Unseen, state },
        );
        CancelReply::Cancelled(Told::First)
    }
}
