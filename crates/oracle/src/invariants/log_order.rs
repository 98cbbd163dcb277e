//! The log's own order: positions put every decided answer in one order, which never goes against real time.
//!
//! Owns: real time and revisions against positions. A call that had ended before another began has the smaller
//! position; two reads may share one, since a read comes after the whole entry.

use super::Breach;
use super::facts::{Fact, Facts};
use crate::history::Told;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Breach> {
    let mut breaches = against_time(facts);
    breaches.extend(revisions(facts));
    breaches
}

fn against_time(facts: &Facts<'_>) -> Vec<Breach> {
    let mut by_begin: Vec<&Fact<'_>> = facts.iter().filter(|fact| has_place(fact)).collect();
    let mut by_end = by_begin.clone();
    by_begin.sort_by_key(|fact| fact.call.began_us);
    by_end.sort_by_key(|fact| fact.call.ended_us);
    let mut ended = by_end.into_iter().peekable();
    let mut last: Option<&Fact<'_>> = None;
    let mut breaches = Vec::new();
    for fact in by_begin {
        while let Some(before) = ended.next_if(|before| before.call.ended_us < fact.call.began_us) {
            if last.is_none_or(|last| {
                (before.at, !before.call.op.is_read()) > (last.at, !last.call.op.is_read())
            }) {
                last = Some(before);
            }
        }
        if let Some(last) = last
            && !may_follow(last, fact)
        {
            let text = format!(
                "an answer at {} was there before a call began that is placed at {}",
                last.at, fact.at
            );
            breaches.push(Breach::new("log order", text, &[last.call, fact.call]));
        }
    }
    breaches
}

fn may_follow(before: &Fact<'_>, after: &Fact<'_>) -> bool {
    let both_read = before.call.op.is_read() && after.call.op.is_read();
    before.at < after.at || (both_read && before.at == after.at)
}

/// A request that got too old in its node before it was proposed is timed out by that node; it has no place.
fn has_place(fact: &Fact<'_>) -> bool {
    !matches!(&fact.told, Told::Refused(refused) if refused.code == "timed_out")
}

/// The revision counts events: it never goes back.
fn revisions(facts: &Facts<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut last: Option<&Fact<'_>> = None;
    for fact in facts.iter().filter(|fact| has_place(fact)) {
        if let Some(last) = last
            && last.at < fact.at
            && last.revision > fact.revision
        {
            let text = format!(
                "revision {} at {} and then {} at {}",
                last.revision, last.at, fact.revision, fact.at
            );
            breaches.push(Breach::new("log order", text, &[last.call, fact.call]));
        }
        if last.is_none_or(|last| last.revision <= fact.revision) {
            last = Some(fact);
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn an_answer_from_before_an_earlier_answer_is_found() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 5, (20, 0));
        script.at(20, 30).status_held("r", "a", 5, (19, 1));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn a_revision_that_goes_back_is_found() {
        let mut script = Script::new();
        script.at(0, 30).grant("r", "a", 7, (20, 0));
        script.at(10, 40).grant("s", "b", 6, (21, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }

    #[test]
    fn calls_at_the_same_time_may_come_in_any_order_and_reads_may_share_a_place() {
        let mut script = Script::new();
        script.at(0, 30).grant("r", "a", 5, (20, 0));
        script.at(10, 40).status_free("r", (19, 1));
        script.at(50, 60).status_held("r", "a", 5, (20, 1));
        script.at(70, 80).status_held("r", "a", 5, (20, 1));

        assert_eq!(check(&Facts::read(&script.calls())), []);
    }

    #[test]
    fn a_command_never_shares_the_place_of_an_earlier_one() {
        let mut script = Script::new();
        script.at(0, 10).grant("r", "a", 5, (20, 0));
        script.at(20, 30).grant("s", "b", 6, (20, 0));

        assert_eq!(check(&Facts::read(&script.calls())).len(), 1);
    }
}
