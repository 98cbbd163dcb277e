//! S4: nothing that was acknowledged is lost: a granted lease is known for good, and lasts unless its holder ends it.

use super::Breach;
use super::facts::{Fact, Facts, Lease};
use super::lifetime::{guaranteed_until_us, may_be_released};
use crate::history::Told;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    facts.by_resource().flat_map(|(_, of_one)| of_resource(facts, &of_one)).collect()
}

fn of_resource(facts: &Facts<'_>, of_one: &[&Fact<'_>]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut newest = None;
    for fact in of_one {
        if let Told::Granted { token, .. } = &fact.told {
            newest = facts.lease(*token);
        }
        match &fact.told {
            Told::Refused(refused) if refused.reason.as_deref() == Some("unknown_lease") => {
                // Tests are shorter than the retry window: every lease is still remembered.
                if let Some(lease) = facts.lease_meant(&fact.call.op) {
                    let text =
                        format!("{} at {}: token {} is forgotten", fact.resource, fact.at, lease.token);
                    breaches.push(Breach::new("S4", text, &[fact.call]));
                }
            }
            Told::Refused(refused) if refused.code == "lease_ended" => {
                let meant = facts.lease_meant(&fact.call.op);
                let lease = meant.or_else(|| refused.token.and_then(|token| facts.lease(token)));
                breaches.extend(lease.and_then(|lease| ended_too_early(facts, lease, fact)));
            }
            Told::Status { held: None, .. } => {
                breaches.extend(newest.and_then(|lease| ended_too_early(facts, lease, fact)));
            }
            _ => {}
        }
    }
    breaches
}

/// A lease that is shown to be over while nothing can have ended it.
fn ended_too_early(facts: &Facts<'_>, lease: &Lease<'_>, fact: &Fact<'_>) -> Option<Breach> {
    let until_us = guaranteed_until_us(facts, lease, fact.at)?;
    if fact.call.ended_us >= until_us || may_be_released(lease, fact.call) {
        return None;
    }
    let early_ms = (until_us - fact.call.ended_us) / 1_000;
    let text =
        format!("{} at {}: token {} is over {early_ms} ms too early", fact.resource, fact.at, lease.token);
    Some(Breach::new("S4", text, &[fact.call]))
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn a_grant_that_vanishes_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(500, 510).status_free("r", (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_lease_that_nobody_knows_any_more_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(5_000, 5_010).renew_refused("r", 1, ("not_holder", "unknown_lease"), (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_renewal_that_is_lost_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(800, 810).renewed("r", 1, 1, (11, 0));
        script.at(1_500, 1_510).renew_refused("r", 1, ("lease_ended", "expired"), (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_lease_may_end_in_time_or_by_a_release_whose_answer_was_lost() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(1_000, 1_010).status_free("r", (11, 0));
        script.at(0, 10).grant("s", "a", 2, (12, 0));
        script.at(20, 30).release_unknown("s", 2);
        script.at(40, 50).status_free("s", (13, 0));

        assert_eq!(check(&Facts::read(&script.calls())), []);
    }
}
