//! One file for each command; this one only finds it.

mod abandon;
mod acquire;
mod cancel;
mod detach;
mod force_release;
mod raise_feature_level;
mod raise_revision;
mod release;
mod renew;
mod set_policy;
mod take_over;

use crate::command::Command;
use crate::effects::Effects;
use crate::reply::Reply;
use crate::table::LockTable;
use kunci_types::Origin;

impl LockTable {
    /// Executes one command, which came from `origin`, at the current instant.
    pub(crate) fn execute(&mut self, effects: &mut Effects, command: &Command, origin: &Origin) -> Reply {
        match command {
            Command::Acquire(acquire) => Reply::Acquire(self.acquire(effects, acquire, origin.address)),
            Command::Renew(renew) => Reply::Renew(self.renew(effects, renew)),
            Command::Release(release) => Reply::Release(self.release(effects, release)),
            Command::Cancel(cancel) => Reply::Cancel(self.cancel(effects, cancel)),
            Command::Detach(detach) => Reply::Detach(self.detach(effects, detach)),
            Command::Abandon(abandon) => Reply::Abandon(self.abandon(effects, abandon)),
            Command::ForceRelease(force) => Reply::ForceRelease(self.force_release(effects, force)),
            Command::TakeOver => self.take_over(),
            Command::SetPolicy(set) => Reply::SetPolicy(self.set_policy(effects, set)),
            Command::RaiseRevision(raise) => Reply::RaiseRevision(self.raise_revision(effects, raise)),
            Command::RaiseFeatureLevel(raise) => Reply::RaiseFeatureLevel(self.raise_feature_level(raise)),
        }
    }
}
