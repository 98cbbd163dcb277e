//! S8: no stale reads. Status, lists and refusals that name a holder show what was so at their place in the log.
//!
//! That their place isn't before they began is `log_order`'s.

use super::Breach;
use super::currency::contradictions;
use super::facts::{Fact, Facts};
use crate::history::{Held, Told};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    let of_reads = contradictions(facts)
        .into_iter()
        .filter(|found| matches!(found.fact.told, Told::Status { .. } | Told::Refused(_)));
    let mut breaches: Vec<Breach> =
        of_reads.map(|found| Breach::new("S8", found.text, &[found.because, found.fact.call])).collect();
    breaches.extend(facts.iter().filter_map(|fact| untrue(facts, fact)));
    breaches
}

/// What an answer says of a holder, against what that holder was told.
fn untrue(facts: &Facts<'_>, fact: &Fact<'_>) -> Option<Breach> {
    let held = shown(fact)?;
    let breach = |text: String| {
        Some(Breach::new("S8", format!("{} at {}: {text}", fact.resource, fact.at), &[fact.call]))
    };
    if held.token > fact.revision {
        return breach(format!("token {} is shown at revision {}", held.token, fact.revision));
    }
    let lease = facts.lease(held.token);
    if let Some(lease) = lease
        && (lease.owner != held.holder || lease.resource != fact.resource)
    {
        return breach(format!(
            "{} is shown as holder of token {}, which {} got",
            held.holder, held.token, lease.owner
        ));
    }
    let ttl_ms = held.ttl_ms.or(lease.map(|lease| lease.ttl_ms))?;
    // A look at the very end may still show the lease, with nothing left.
    if held.remaining_ms > ttl_ms {
        return breach(format!("{} ms remain of a lease of {ttl_ms} ms", held.remaining_ms));
    }
    None
}

fn shown<'f>(fact: &'f Fact<'_>) -> Option<&'f Held> {
    match &fact.told {
        Told::Status { held, .. } => held.as_ref(),
        Told::Refused(refused) => refused.held.as_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, TTL_MS};
    use super::*;

    #[test]
    fn a_stale_holder_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).released("r", 1, 2, (11, 0));
        script.at(40, 50).status_held("r", "a", 1, (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn another_name_and_a_nonsense_time_are_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).status_held("r", "b", 1, (11, 0));
        script.at(40, 50).status("r", ("a", 1, TTL_MS + 1), (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 2);
    }

    #[test]
    fn a_true_status_passes() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).status_held("r", "a", 1, (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())), []);
    }
}
