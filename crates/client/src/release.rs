//! Giving back: a lease, or a request that may have become one.
//!
//! Owns: how often and for how long. Never: takes longer than its budget, whatever the servers do.

use crate::error::{Certainty, Error};
use crate::keeper::{Lease, Request};
use crate::links::{Links, Round, Try};
use crate::patience::Patience;
use crate::renew;
use crate::state::Loss;
use crate::wire::PAUSE;
use kunci_api::native::{self, Outcome};
use kunci_api::{Proof, parse_lease_id};
use kunci_process::{sleep, timeout};
use std::time::Duration;

/// For this long a release or a cancellation is repeated.
pub(crate) const BUDGET: Duration = Duration::from_secs(5);
/// How long the answer to one may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Releases a lease; for 5 s at most.
pub(crate) async fn release(links: &Links, lease: &Lease) -> Result<(), Error> {
    let proof = Proof::LeaseId(lease.lease_id);
    let request = native::Request::Release { key: lease.resource.clone(), proof };
    match insist(links, &request).await? {
        Outcome::Released { .. } => Ok(()),
        Outcome::Error(refused) => match renew::ended(&refused) {
            Some(ending) => Err(Error::lost(Loss::Ended(ending), Certainty::NotApplied)),
            None => Err(Error::refused(&refused)),
        },
        _ => Err(Error::astray()),
    }
}

/// Cancels a request, and releases what it had been granted; for 5 s each at most.
pub(crate) async fn take_back(links: &Links, request: &Request) {
    let Request { resource, owner, request_id } = request.clone();
    let cancel = native::Request::Cancel { key: resource.clone(), request_id, owner: Some(owner) };
    let released = match insist(links, &cancel).await {
        Ok(Outcome::Granted(grant)) => match parse_lease_id(&grant.lease) {
            Ok(lease_id) => release(links, &Lease { resource: resource.clone(), lease_id }).await,
            Err(_) => Err(Error::astray()),
        },
        // Cancelled, or it had ended by itself.
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = released {
        tracing::warn!(%resource, %error, "a request wasn't cancelled; what it may have been granted runs out");
    }
}

/// Repeats a request until somebody decides it, every 200 ms for 5 s.
pub(crate) async fn insist(links: &Links, request: &native::Request) -> Result<Outcome, Error> {
    let mut patience = Patience::new(BUDGET);
    let tries = async {
        let mut round = Round::default();
        loop {
            match links.attempt(request, Some(ANSWER_WITHIN), &mut round).await {
                Try::Told { outcome, .. } => return outcome,
                Try::Failed(error) => {
                    patience.no_answer(&error);
                    continue;
                }
                Try::Passing(passing) => patience.refused(passing),
                Try::NoneLeft => {}
            }
            round = Round::default();
            sleep(PAUSE).await;
        }
    };
    let decided = timeout(BUDGET, tries).await;
    decided.map_err(|_| patience.over())
}
