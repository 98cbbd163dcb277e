//! S6: attached waiters are served in the order of the queue; nobody barges.
//!
//! A client sees the queue when it reads it. A waiter whose one call was open before that read and until its own
//! grant was attached all the while; so whoever was behind it, or not there yet, can't be granted in between.

use super::Breach;
use super::facts::{Fact, Facts};
use crate::history::{Op, Told};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    facts.by_resource().flat_map(|(_, of_one)| of_resource(&of_one)).collect()
}

/// How many waiters could be followed from a look at the queue to their grant: so often there was something to check.
pub(super) fn followed_count(facts: &Facts<'_>) -> usize {
    facts.by_resource().map(|(_, of_one)| followed(&of_one).len()).sum()
}

/// A waiter that was in the queue when it was looked at, and waited on in the same call until its grant.
struct Followed<'f, 'a> {
    seen: &'f Fact<'a>,
    served: &'f Fact<'a>,
    owner: &'f str,
    ahead: Vec<&'f str>,
}

fn followed<'f, 'a>(of_one: &[&'f Fact<'a>]) -> Vec<Followed<'f, 'a>> {
    let grants: Vec<&Fact<'a>> = of_one.iter().copied().filter(|fact| is_first_grant(fact)).collect();
    let mut found = Vec::new();
    for seen in of_one {
        let Told::Queue { waiters } = &seen.told else { continue };
        for (place, (owner, attached)) in waiters.iter().enumerate() {
            let waited_through = |grant: &&&Fact<'_>| {
                owner_of(grant) == Some(owner)
                    && grant.call.began_us < seen.call.began_us
                    && grant.call.ended_us > seen.call.ended_us
                    && grant.at > seen.at
            };
            if let Some(served) = grants.iter().find(waited_through).filter(|_| *attached) {
                let ahead = waiters[..place].iter().map(|(owner, _)| owner.as_str()).collect();
                found.push(Followed { seen, served, owner, ahead });
            }
        }
    }
    found
}

fn of_resource(of_one: &[&Fact<'_>]) -> Vec<Breach> {
    let grants: Vec<&Fact<'_>> = of_one.iter().copied().filter(|fact| is_first_grant(fact)).collect();
    let mut breaches = Vec::new();
    for Followed { seen, served, owner, ahead } in followed(of_one) {
        let barged = grants.iter().filter(|grant| {
            grant.at > seen.at
                && grant.at < served.at
                && owner_of(grant).is_some_and(|other| other != owner && !ahead.contains(&other))
        });
        breaches.extend(barged.map(|grant| {
            let text = format!(
                "{}: {owner} waited at {}, and {} was granted at {} before it",
                seen.resource,
                seen.at,
                owner_of(grant).unwrap_or_default(),
                grant.at
            );
            Breach::new("S6", text, &[seen.call, grant.call, served.call])
        }));
    }
    breaches
}

fn is_first_grant(fact: &Fact<'_>) -> bool {
    matches!((&fact.told, &fact.call.op), (Told::Granted { repeated: false, .. }, Op::Acquire { .. }))
}

fn owner_of<'f>(fact: &'f Fact<'_>) -> Option<&'f str> {
    match &fact.call.op {
        Op::Acquire { owner, .. } => Some(owner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    fn history(first: &str, second: &str) -> Script {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(100, 110).queue("r", &["b", "c"], (13, 0));
        script.at(20, 200).grant_after_wait("r", first, 5, (14, 0));
        script.at(20, 300).grant_after_wait("r", second, 7, (15, 0));
        script
    }

    #[test]
    fn a_waiter_that_overtakes_another_is_found() {
        assert_eq!(check(&Facts::read(&history("c", "b").calls())).len(), 1);
    }

    #[test]
    fn a_newcomer_that_barges_in_is_found() {
        let mut script = history("b", "c");
        script.at(250, 260).grant("r", "d", 6, (14, 5));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn the_order_of_the_queue_passes_and_so_does_a_waiter_that_came_back() {
        assert_eq!(check(&Facts::read(&history("b", "c").calls())), []);

        let mut script = Script::new();
        script.at(100, 110).queue("r", &["b", "c"], (13, 0));
        script.at(20, 200).grant_after_wait("r", "c", 5, (14, 0));
        script.at(150, 300).grant_after_wait("r", "b", 7, (15, 0));
        assert_eq!(check(&Facts::read(&script.calls())), []);
    }
}
