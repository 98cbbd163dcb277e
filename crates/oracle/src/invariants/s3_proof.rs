//! S3: only the current lease's id renews or releases; a late renewal or release changes nothing.

use super::Breach;
use super::currency::contradictions;
use super::facts::Facts;
use crate::history::Told;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    let of_proofs = contradictions(facts)
        .into_iter()
        .filter(|found| matches!(found.fact.told, Told::Renewed { .. } | Told::Released { .. }));
    of_proofs.map(|found| Breach::new("S3", found.text, &[found.because, found.fact.call])).collect()
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn a_renewal_that_is_taken_after_a_successor_was_granted_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(2_000, 2_010).grant("r", "b", 2, (11, 0));
        script.at(2_020, 2_030).renewed("r", 1, 2, (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_release_that_takes_effect_twice_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).released("r", 1, 2, (11, 0));
        script.at(40, 50).released("r", 1, 3, (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_late_release_that_says_so_passes() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 1, (10, 0));
        script.at(20, 30).released("r", 1, 2, (11, 0));
        script.at(40, 50).released_already("r", 1, 2, (12, 0));

        assert_eq!(check(&Facts::read(&script.calls())), []);
    }
}
