//! S4: what was acknowledged is there for ever: every grant and release that a client was told of is in the committed
//! history that all nodes share.

use super::{Case, Found};
use kunci_core::event::Change;
use kunci_oracle::{Call, Told};

pub(super) fn check(case: &Case<'_>) -> Vec<Found> {
    let mut found = case.breaches_of("S4");
    found.extend(case.calls().iter().filter_map(|call| missing(case, call)));
    found
}

/// What the committed history has instead of what a client was told.
fn missing(case: &Case<'_>, call: &Call) -> Option<Found> {
    let answer = call.answer()?;
    let told = Told::read(&call.op, answer).ok()?;
    let revision = answer.body["revision"].as_u64().unwrap_or(0);
    if told.is_decided() && revision > case.committed.last {
        let last = case.committed.last;
        return Some(Found::new(
            format!("revision {revision} was answered, and the last one is {last}"),
            &[call],
        ));
    }
    let resource = call.op.resource()?;
    match told {
        Told::Granted { token, .. } => {
            let happened = case.committed.at(token)?;
            let is_it = happened.is_some_and(|happened| {
                matches!(happened.change, Change::Granted { .. }) && happened.resource == resource
            });
            (!is_it)
                .then(|| Found::new(format!("token {token} is no committed grant of {resource}"), &[call]))
        }
        Told::Released { already: false } => {
            let happened = case.committed.at(revision)?;
            // A hand-off in the same step has the revision after the release's own.
            let is_near = |revision: u64| match case.committed.at(revision) {
                None => true,
                Some(happened) => happened.is_some_and(|happened| {
                    matches!(happened.change, Change::Released { .. }) && happened.resource == resource
                }),
            };
            let is_it = happened.is_some() && (is_near(revision) || is_near(revision.saturating_sub(1)));
            (!is_it).then(|| Found::new(format!("no committed release of {resource} at {revision}"), &[call]))
        }
        _ => None,
    }
}
