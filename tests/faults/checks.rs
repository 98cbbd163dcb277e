//! A history is judged, and a bad one fails the test.
//!
//! Owns: how a breach reads here. Never: a rule; those are in the oracle's `invariants`.

use kunci_oracle::{Call, Summary, judge, tell_lies};

/// Checks everything. Fails with every breach, up to a page of them.
pub(crate) fn expect_clean(calls: &[Call], seed: u64) -> Summary {
    let (summary, breaches) = judge(calls, seed);
    println!("{summary}");
    if !breaches.is_empty() {
        breaches.iter().take(40).for_each(|breach| eprintln!("{breach}"));
        for number in breaches.iter().flat_map(|breach| &breach.calls).take(60) {
            eprintln!("{}", serde_json::to_string(&calls[*number as usize]).unwrap());
        }
        panic!("the history breaks its promises in {} places, above", breaches.len());
    }
    summary
}

/// Fails when a lie about a clean history is believed too often.
pub(crate) fn expect_lies_caught(calls: &[Call]) {
    for lie in tell_lies(calls) {
        println!("{}: caught {} of {}", lie.what, lie.caught, lie.told);
        assert!(lie.told >= 5, "{}: the history has only {} places for it", lie.what, lie.told);
        assert!(lie.caught * 100 >= lie.told * lie.least, "{lie:?} is believed");
    }
}
