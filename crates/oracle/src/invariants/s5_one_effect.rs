//! S5: one request id of one caller is granted at most once, and a retry is answered by what the first one got.

use super::Breach;
use super::facts::{Fact, Facts};
use crate::history::{Op, Told};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    facts.by_request().into_values().flat_map(|of_one| of_request(&of_one)).collect()
}

/// What a request has come to.
#[derive(Clone, Copy)]
enum Now<'f, 'a> {
    Open,
    Granted(u64, &'f Fact<'a>),
    /// Its lease ended, or it was refused for good.
    Over(&'f Fact<'a>),
}

fn of_request(of_one: &[&Fact<'_>]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut now = Now::Open;
    for fact in of_one {
        let after = what(fact);
        match (now, after) {
            (Now::Granted(had, by), Some(Now::Granted(token, _))) if had != token => {
                let text = format!("one request was granted tokens {had} and {token}");
                breaches.push(Breach::new("S5", text, &[by.call, fact.call]));
            }
            (Now::Over(by), Some(Now::Granted(token, _))) => {
                let text = format!("a request that was over is granted token {token}");
                breaches.push(Breach::new("S5", text, &[by.call, fact.call]));
            }
            (Now::Granted(token, by), None) if is_as_if_new(fact) => {
                let text = format!("a request with token {token} is answered as if it had none");
                breaches.push(Breach::new("S5", text, &[by.call, fact.call]));
            }
            _ => {}
        }
        now = after.unwrap_or(now);
    }
    breaches
}

fn what<'f, 'a>(fact: &'f Fact<'a>) -> Option<Now<'f, 'a>> {
    match &fact.told {
        Told::Granted { token, .. } => Some(Now::Granted(*token, fact)),
        Told::Cancelled => Some(Now::Over(fact)),
        Told::Refused(refused) => match refused.code.as_str() {
            "lease_ended" | "cancelled" | "timed_out" => Some(Now::Over(fact)),
            _ => None,
        },
        _ => None,
    }
}

/// Queued or refused by others, although the log knows the request.
fn is_as_if_new(fact: &Fact<'_>) -> bool {
    let acquires = matches!(fact.call.op, Op::Acquire { .. });
    match &fact.told {
        Told::Queued { .. } => acquires,
        Told::Refused(refused) => acquires && ["held", "lock_delay"].contains(&refused.code.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn a_retry_that_is_granted_again_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).grant_again("r", "a", (1, 2), (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_grant_after_a_timeout_is_found() {
        let mut script = Script::new();
        script.at(0, 600).acquire_refused("r", ("a", 4), "timed_out", (10, 0));
        script.at(700, 710).grant("r", "a", 4, (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_retry_that_finds_its_own_lease_in_the_way_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).acquire_refused("r", ("a", 1), "held", (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_retry_that_gets_the_same_lease_and_then_its_end_passes() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).grant_again("r", "a", (1, 1), (11, 0));
        script.at(40, 50).acquire_refused("r", ("a", 1), "lease_ended", (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())), []);
    }
}
