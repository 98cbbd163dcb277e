//! S1: a resource has at most one current lease.

use super::Breach;
use super::currency::contradictions;
use super::facts::Facts;
use crate::history::Told;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    let of_grants =
        contradictions(facts).into_iter().filter(|found| matches!(found.fact.told, Told::Granted { .. }));
    of_grants.map(|found| Breach::new("S1", found.text, &[found.because, found.fact.call])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn a_second_current_lease_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).grant("r", "b", 2, (11, 0));
        script.at(40, 50).grant_again("r", "a", (1, 1), (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_lease_that_is_shown_again_after_its_end_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).released("r", 1, 2, (11, 0));
        script.at(40, 50).grant_again("r", "a", (1, 1), (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_release_and_the_grant_that_it_brings_share_a_step() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(5, 30).grant_after_wait("r", "b", 3, (11, 0));
        script.at(20, 31).released("r", 1, 3, (11, 0));

        assert_eq!(check(&Facts::read(&script.calls())), []);
    }
}
