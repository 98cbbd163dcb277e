//! The checks, checked: a history that a real run left is clean; after one small lie it isn't.
//!
//! Owns: the lies. Each is told at many places of the history; where it happens to be true, or nobody can know better,
//! it may pass, so it must be caught at most of them.

use super::{Facts, breaches};
use crate::history::{Call, Op, Outcome, Position};
use serde_json::{Value, json};

/// A lie, told of one call: the history with it, or nothing where it can't be told.
type Lie = fn(Vec<Call>, usize) -> Option<Vec<Call>>;

/// Every lie, and of a hundred places so many at which it must be caught.
const LIES: [(&str, usize, Lie); 7] = [
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

/// Fails when a lie is believed too often.
pub(crate) fn expect_lies_caught(calls: &[Call]) {
    for (what, least, lie) in LIES {
        let (mut told, mut caught) = (0, 0);
        for at in 0..calls.len() {
            if told == PLACES {
                break;
            }
            let Some(tampered) = lie(calls.to_vec(), at) else { continue };
            told += 1;
            caught += usize::from(!breaches(&Facts::read(&tampered)).is_empty());
        }
        println!("{what}: caught {caught} of {told}");
        assert!(told >= 5, "{what}: the history has only {told} places for it");
        assert!(caught * 100 >= told * least, "{what}: caught only {caught} of {told}");
    }
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
