//! What this node denied by itself, and the log never saw.
//!
//! Owns: which of that is recorded. Never: a decision of the log.

use super::outcome::Action;
use super::project::{Shown, of_proof};
use kunci_api::Code;
use kunci_core::command::Command;
use kunci_replica::Refusal;
use kunci_types::{FencingToken, LeaseId, Origin, Owner, ResourceName};

/// Something that this node denied by itself.
#[derive(Clone, Debug)]
pub(crate) struct Denied {
    pub(crate) action: Action,
    /// The code of the refusal.
    pub(crate) outcome: &'static str,
    pub(crate) resource: Option<ResourceName>,
    pub(crate) owner: Option<Owner>,
    pub(crate) token: Option<FencingToken>,
    pub(crate) lease_id: Option<LeaseId>,
    pub(crate) origin: Origin,
}

/// What is recorded of a command that wasn't proposed. Nothing of one whose outcome isn't known: if it took effect, the
/// log knows; nor of what this program asks of itself.
pub(super) fn refused(command: &Command, origin: &Origin, why: Option<Refusal>) -> Option<Denied> {
    let outcome = match why {
        None => Code::TimedOut,
        // A door tries again, and records it if that was in vain.
        Some(Refusal::NoLeader) => return None,
        Some(Refusal::NoQuorum) => Code::NoQuorum,
        Some(Refusal::Overloaded) => Code::Overloaded,
        Some(Refusal::StorageLow) => Code::StorageLow,
        Some(Refusal::NotEnabled) => Code::NotEnabled,
        Some(Refusal::OutcomeUnknown) => return None,
    };
    let (action, (resource, owner, shown)) = match command {
        Command::Acquire(acquire) => (Action::Acquire, (Some(&acquire.resource), Some(&acquire.owner), None)),
        // Of many leases the first stands for all.
        Command::Renew(renew) => {
            let first = renew.leases.first()?;
            (Action::Renew, of_proof(&first.resource, &first.proof))
        }
        Command::Release(release) => (Action::Release, of_proof(&release.resource, &release.proof)),
        Command::Cancel(cancel) => {
            (Action::Cancel, (Some(&cancel.resource), Some(cancel.caller.name()), None))
        }
        Command::ForceRelease(force) => {
            (Action::ForceRelease, (Some(&force.resource), None, Some(Shown::Token(force.token))))
        }
        Command::SetPolicy(_) => (Action::Policy, (None, None, None)),
        Command::Detach(_)
        | Command::Abandon(_)
        | Command::TakeOver
        | Command::RaiseRevision(_)
        | Command::RaiseFeatureLevel(_) => return None,
    };
    let (token, lease_id) = match shown {
        Some(Shown::Token(token)) => (Some(token), None),
        Some(Shown::LeaseId(lease_id)) => (None, Some(lease_id)),
        None => (None, None),
    };
    Some(Denied {
        action,
        outcome: outcome.as_str(),
        resource: resource.cloned(),
        owner: owner.cloned(),
        token,
        lease_id,
        origin: origin.clone(),
    })
}
