//! The checks, checked: a history that a real run left is clean; after one small lie it isn't.
//!
//! Owns: the lies. Each is told at many places of the history; where it happens to be true, or nobody can know better,
//! it may pass, so it must be caught at most of them.

use super::{Facts, breaches};
use crate::history::{Call, Op, Outcome, Position};
use serde_json::{Value, json};

/// A lie that was told at some places of a history, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lie {
    /// What it says.
    pub what: &'static str,
    /// At how many places it was told; not every history has any.
    pub told: usize,
    /// At how many of them a check found it.
    pub caught: usize,
    /// Of a hundred places, at how many it must be found.
    pub least: usize,
}

/// Tells a lie of one call: the history with it, or nothing where it can't be told.
type Tell = fn(Vec<Call>, usize) -> Option<Vec<Call>>;

/// Every lie, and of a hundred places so many at which it must be caught.
const LIES: [(&str, usize, Tell); 7] = [
    ("a grant has the token of an earlier one", 99, old_token),
    ("a grant has another lease's id", 99, other_lease),
    ("a grant is placed before everything", 90, earlier_place),
    ("a status shows a lease that is over", 90, stale_status),
    ("a status shows another holder", 99, other_holder),
    ("a release comes to nothing", 50, lost_release),
    ("a lease ended by itself at once", 90, ended_at_once),
];

/// Tells each lie at up to this many places.
const PLACES: usize = 15;

/// Tells every lie of a clean history, and looks whether it is believed.
#[must_use]
pub fn tell_lies(calls: &[Call]) -> Vec<Lie> {
    let tell = |(what, least, tell): (&'static str, usize, Tell)| {
        let tampered = (0..calls.len()).filter_map(|at| tell(calls.to_vec(), at)).take(PLACES);
        let believed: Vec<bool> = tampered.map(|calls| breaches(&Facts::read(&calls)).is_empty()).collect();
        let caught = believed.iter().filter(|believed| !**believed).count();
        Lie { what, told: believed.len(), caught, least }
    };
    LIES.into_iter().map(tell).collect()
}

fn body(call: &mut Call) -> Option<(&mut Value, &mut Option<Position>)> {
    match &mut call.outcome {
        Outcome::Answer(answer) => Some((&mut answer.body, &mut answer.position)),
        Outcome::NotSent(_) | Outcome::Unknown(_) => None,
    }
}

/// The answer of a first grant.
fn grant(call: &mut Call) -> Option<(&mut Value, &mut Option<Position>)> {
    let acquires = matches!(call.op, Op::Acquire { .. });
    body(call).filter(|(body, _)| acquires && body["acquired"] == true && body["repeated"] != true)
}

fn grant_before(calls: &mut [Call], at: usize) -> Option<Value> {
    calls[..at].iter_mut().rev().find_map(grant).map(|(body, _)| body.clone())
}

fn old_token(mut calls: Vec<Call>, at: usize) -> Option<Vec<Call>> {
    let earlier = grant_before(&mut calls, at)?;
    let (body, _) = grant(&mut calls[at])?;
    body["fencingToken"] = earlier["fencingToken"].clone();
    Some(calls)
}

fn other_lease(mut calls: Vec<Call>, at: usize) -> Option<Vec<Call>> {
    let earlier = grant_before(&mut calls, at)?;
    let (body, _) = grant(&mut calls[at])?;
    body["leaseId"] = earlier["leaseId"].clone();
    Some(calls)
}

fn earlier_place(mut calls: Vec<Call>, at: usize) -> Option<Vec<Call>> {
    if at < calls.len() / 2 {
        return None;
    }
    let (_, position) = grant(&mut calls[at])?;
    *position = Some(Position { index: 2, place: 0 });
    Some(calls)
}

/// An answer that shows a holder: a status, or the refusal of a try.
fn status(call: &mut Call) -> Option<&mut Value> {
    let looks = matches!(call.op, Op::Status { .. });
    body(call).map(|(body, _)| body).filter(|body| (looks && body["held"] == true) || body["code"] == "held")
}

fn stale_status(mut calls: Vec<Call>, at: usize) -> Option<Vec<Call>> {
    let resource = calls[at].op.resource().map(str::to_owned);
    let shown = status(&mut calls[at])?["fencingToken"].clone();
    let earlier =
        calls.iter_mut().filter(|call| call.op.resource() == resource.as_deref()).find_map(|call| {
            grant(call)
                .map(|(body, _)| body["fencingToken"].clone())
                .filter(|token| token.as_u64() < shown.as_u64())
        });
    status(&mut calls[at])?["fencingToken"] = earlier?;
    Some(calls)
}

fn other_holder(mut calls: Vec<Call>, at: usize) -> Option<Vec<Call>> {
    let body = status(&mut calls[at])?;
    let holder = format!("not-{}", body["holder"].as_str().unwrap_or_default());
    body["holder"] = json!(holder);
    Some(calls)
}

/// As if nobody had asked for it: what its end brought about is unexplained.
fn lost_release(mut calls: Vec<Call>, at: usize) -> Option<Vec<Call>> {
    let Op::Release { lease, resource } = &calls[at].op else { return None };
    let (lease, is_shared) = (lease.clone(), resource.starts_with("work/"));
    if !is_shared || calls[at].answer().is_none_or(|answer| answer.status != 200) {
        return None;
    }
    calls.retain(|call| !matches!(&call.op, Op::Release { lease: other, .. } if *other == lease));
    calls.iter_mut().enumerate().for_each(|(number, call)| call.number = number as u64);
    Some(calls)
}

/// A renewal that went well is told as one of a lease that had expired.
fn ended_at_once(mut calls: Vec<Call>, at: usize) -> Option<Vec<Call>> {
    let renews = matches!(calls[at].op, Op::Renew { .. });
    let Outcome::Answer(answer) = &mut calls[at].outcome else { return None };
    if !renews || answer.status != 200 {
        return None;
    }
    answer.status = 409;
    answer.body["code"] = json!("lease_ended");
    answer.body["reason"] = json!("expired");
    answer.body["renewed"] = json!(false);
    Some(calls)
}
