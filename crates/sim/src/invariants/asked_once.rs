//! Waiters that were attached from their first moment in the queue to their last.
//!
//! Owns: who that is. A waiter's call ends with an answer of the log only if it stayed open all the time; and when its
//! request was asked for just once, no other call was the one that was attached. An event names an owner and no request;
//! so whose it is, is only known of an owner with a single request.

use super::Case;
use kunci_oracle::{Call, Op, Told};
use std::collections::{BTreeMap, BTreeSet};

/// By the revision at which they left the queue: what such waiters were told.
pub(super) fn by_revision<'a>(case: &'a Case<'_>) -> BTreeMap<u64, &'a Call> {
    let mut count: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for call in case.calls() {
        if let Op::Acquire { owner, request, .. } | Op::Cancel { owner, request, .. } = &call.op {
            *count.entry((owner, request)).or_default() += 1;
        }
    }
    let answers = case.calls().iter().filter_map(|call| {
        let Op::Acquire { owner, request, wait_ms: 1.., .. } = &call.op else { return None };
        let is_only = count.get(&(owner.as_str(), request.as_str())) == Some(&1);
        let answer = call.answer().filter(|_| is_only)?;
        let revision = match Told::read(&call.op, answer).ok()? {
            Told::Granted { token, repeated: false, .. } => token,
            Told::Refused(refused) if refused.code == "timed_out" => answer.body["revision"].as_u64()?,
            _ => return None,
        };
        Some((revision, call))
    });
    answers.collect()
}

/// Owners that made one request, however often it was asked for.
pub(super) fn owners_of_one<'a>(case: &'a Case<'_>) -> BTreeSet<&'a str> {
    let mut requests: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for call in case.calls() {
        if let Op::Acquire { owner, request, .. } | Op::Cancel { owner, request, .. } = &call.op {
            requests.entry(owner).or_default().insert(request);
        }
    }
    requests.into_iter().filter(|(_, requests)| requests.len() == 1).map(|(owner, _)| owner).collect()
}
