//! Sending one renewal.
//!
//! Owns: what its answer means. Never: when, and how often.

use crate::keeper::Lease;
use crate::links::{Links, Round, Try};
use crate::renewer::{Failure, Renewal};
use crate::state::Ending;
use kunci_api::Code;
use kunci_api::native::{Outcome, Refused, Request};
use std::time::Duration;

/// One try on one connection, and where that one points to.
pub(crate) async fn try_once(links: &Links, lease: &Lease, within: Duration) -> Renewal {
    let request = Request::Renew { key: lease.resource.clone(), lease_id: lease.lease_id, ttl: None };
    let tried = links.attempt(&request, Some(within), &mut Round::default()).await;
    let connections = links.count();
    match tried {
        Try::Told { outcome: Outcome::Renewed { ttl_ms, is_final }, sent_at } => {
            Renewal::Renewed { sent_at, remaining: Duration::from_millis(ttl_ms), is_final }
        }
        Try::Told { outcome: Outcome::Error(refused), .. } => match ended(&refused) {
            Some(ending) => Renewal::Ended(ending),
            None => Renewal::Failed(Failure::Refused { connections }),
        },
        Try::Told { .. } | Try::Passing(_) => Renewal::Failed(Failure::Refused { connections }),
        Try::Failed(_) | Try::NoneLeft => Renewal::Failed(Failure::NoAnswer { connections }),
    }
}

/// How a lease ended, when a refusal says that it has.
pub(crate) fn ended(refused: &Refused) -> Option<Ending> {
    match refused.code() {
        // The code itself says how, or else its reason.
        Some(Code::LeaseEnded) => Some(match refused.reason.as_deref() {
            Some(reason) => Ending::read(Some(reason)),
            None => Ending::read(Some(&refused.code)),
        }),
        Some(Code::NotHolder) => Some(Ending::Unknown),
        _ => None,
    }
}
