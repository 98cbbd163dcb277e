//! S2: every grant's token is larger than every token before it, cluster-wide, and is that grant's revision.

use super::Breach;
use super::facts::{Fact, Facts};
use crate::history::Told;
use std::collections::BTreeMap;

/// JSON's numbers are exact up to here.
const TOKEN_MAX: u64 = (1 << 53) - 1;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    let mut breaches = growing(facts);
    breaches.extend(one_to_one(facts));
    breaches
}

fn growing(facts: &Facts<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut last: Option<(u64, &Fact<'_>)> = None;
    for fact in facts.iter() {
        let Told::Granted { token, repeated, .. } = &fact.told else { continue };
        if *token > TOKEN_MAX {
            breaches.push(Breach::new("S2", format!("token {token} is above 2^53 - 1"), &[fact.call]));
        }
        if *repeated {
            if *token > fact.revision {
                let text = format!("token {token} is told at revision {}, before its grant", fact.revision);
                breaches.push(Breach::new("S2", text, &[fact.call]));
            }
            continue;
        }
        if *token != fact.revision {
            let text = format!("token {token} was granted at revision {}", fact.revision);
            breaches.push(Breach::new("S2", text, &[fact.call]));
        }
        if let Some((before, by)) = last
            && before >= *token
        {
            let text = format!("token {token} at {} comes after token {before} at {}", fact.at, by.at);
            breaches.push(Breach::new("S2", text, &[by.call, fact.call]));
        }
        last = Some((*token, fact));
    }
    breaches
}

/// A token belongs to one lease, and a lease to one token.
fn one_to_one(facts: &Facts<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let (mut by_token, mut by_lease) = (BTreeMap::new(), BTreeMap::new());
    for fact in facts.iter() {
        let Told::Granted { token, lease, .. } = &fact.told else { continue };
        let (first_lease, by) = by_token.entry(*token).or_insert((lease, fact.call));
        if *first_lease != lease {
            breaches.push(Breach::new("S2", format!("token {token} is of two leases"), &[*by, fact.call]));
        }
        let (first_token, by) = by_lease.entry(lease).or_insert((*token, fact.call));
        if first_token != token {
            let text = format!("a lease has tokens {first_token} and {token}");
            breaches.push(Breach::new("S2", text, &[*by, fact.call]));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn a_smaller_token_is_found_on_another_resource_too() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 7, (10, 0));
        script.at(20, 30).grant("s", "b", 6, (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_token_that_is_used_twice_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 7, (10, 0));
        script.at(20, 30).grant("s", "b", 7, (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn growing_tokens_and_repeated_answers_pass() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 6, (10, 0));
        script.at(20, 30).grant("s", "b", 7, (11, 0));
        script.at(40, 50).grant_again("r", "a", (6, 6), (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())), []);
    }
}
