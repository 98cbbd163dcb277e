//! Sending one renewal.
//!
//! Owns: what its answer means. Never: when, and how often.

use crate::keeper::Lease;
use crate::links::{Links, Round, Try};
use crate::renewer::Renewal;
use crate::state::Ending;
use kunci_api::Code;
use kunci_api::native::{Outcome, Refused, Request};
use std::time::Duration;

/// One try on one connection, and where that one points to.
pub(crate) async fn try_once(links: &Links, lease: &Lease, within: Duration) -> Renewal {
    let failed = || Renewal::Failed { connections: links.count() };
    let request = Request::Renew { key: lease.resource.clone(), lease_id: lease.lease_id, ttl: None };
    match links.attempt(&request, Some(within), &mut Round::default()).await {
        Try::Told { outcome: Outcome::Renewed { ttl_ms, is_final }, sent_at } => {
            Renewal::Renewed { sent_at, remaining: Duration::from_millis(ttl_ms), is_final }
        }
        Try::Told { outcome: Outcome::Error(refused), .. } => {
            ended(&refused).map_or_else(failed, Renewal::Ended)
        }
        Try::Told { .. } | Try::Passing(_) | Try::Failed(_) | Try::NoneLeft => failed(),
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
