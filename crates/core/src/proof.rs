//! Whether what a caller shows proves that a lease is its own.

use crate::command::Proof;
use crate::lease::Lease;
use crate::reply::NotHolder;
use crate::request::{RequestState, RequestText};
use crate::table::LockTable;
use kunci_types::ResourceName;

impl LockTable {
    /// Finds the current lease of `resource` if `proof` is of it; otherwise says what became of the lease that
    /// the proof is of.
    pub(crate) fn prove(&self, resource: &ResourceName, proof: &Proof) -> Result<&Lease, NotHolder> {
        if let Proof::OwnerToken { .. } = proof
            && !self.state.head.policy.owner_token_proof
        {
            return Err(NotHolder::ProofNotAllowed);
        }
        match self.lease(resource) {
            Some(lease) if is_of(proof, lease) => Ok(lease),
            Some(_) | None => Err(self.what_became_of(resource, proof)),
        }
    }

    fn what_became_of(&self, resource: &ResourceName, proof: &Proof) -> NotHolder {
        let request = match proof {
            Proof::LeaseId(lease_id) => self.index.by_lease_id.get(lease_id).map(RequestText::key),
            Proof::OwnerToken { caller, token, .. } => {
                self.index.by_token.get(token).map(RequestText::key).filter(|request| request.is_of(caller))
            }
        };
        let record =
            request.and_then(|request| self.request(&request)).filter(|record| record.resource == *resource);
        match record.map(|record| &record.state) {
            Some(RequestState::Ended { how, .. }) => NotHolder::Ended(*how),
            Some(RequestState::Waiting(_) | RequestState::Granted { .. } | RequestState::Closed { .. })
            | None => NotHolder::UnknownLease,
        }
    }
}

fn is_of(proof: &Proof, lease: &Lease) -> bool {
    match proof {
        Proof::LeaseId(lease_id) => *lease_id == lease.terms.lease_id,
        Proof::OwnerToken { caller, owner, token } => {
            *token == lease.token && *owner == lease.terms.owner && lease.request.is_of(caller)
        }
    }
}
