//! The way from a renewal's reply to its answer.

use super::{refusal, wall_clock};
use kunci_api::{Problem, RenewResult};
use kunci_core::reply::{Last, RenewReply};
use kunci_types::ResourceName;

/// How long the lease lasts in ms and whether that is final, or why it isn't the caller's.
pub(super) fn renewed(reply: &RenewReply) -> Result<(u64, bool), Box<Problem>> {
    match reply {
        RenewReply::Renewed { remaining_ms, last } => Ok((*remaining_ms, *last == Last::Final)),
        RenewReply::NotHolder(why) => Err(not_renewed(refusal::not_holder(*why))),
        RenewReply::OutOfPolicy(out) => Err(not_renewed(refusal::out_of_policy(*out))),
    }
}

fn not_renewed(problem: Problem) -> Box<Problem> {
    Box::new(Problem { renewed: Some(false), ..problem })
}

pub(super) fn renew_result(resource: &ResourceName, reply: &RenewReply, revision: u64) -> RenewResult {
    let resource = resource.to_string();
    match renewed(reply) {
        Ok((remaining_ms, is_final)) => RenewResult {
            resource,
            renewed: true,
            new_expires_at: Some(wall_clock::in_ms(remaining_ms)),
            remaining_ms: Some(remaining_ms),
            is_final,
            problem: None,
        },
        Err(problem) => RenewResult {
            resource,
            renewed: false,
            new_expires_at: None,
            remaining_ms: None,
            is_final: false,
            problem: Some(Problem { revision, ..*problem }),
        },
    }
}
