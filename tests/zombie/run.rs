//! All rounds of one target.
//!
//! Owns: how many, how many side by side, and what they come to. Never: what happens in one; see `round`.

use crate::cluster::Cluster;
use crate::report;
use crate::round::{Outcome, play};
use crate::target::{Fence, Target};
use std::fmt::Write as _;

const ROUNDS: usize = 20;
/// Rounds without the fence, when that is what is to be shown.
const BARE_ROUNDS: usize = 3;
/// Rounds at a time: each of them mostly waits for a lease to end.
const LANES: usize = 10;

/// S9 on a real server, C03, C31: in each of 20 rounds the late write is refused and the data is intact. One more round
/// goes without the fence and must lose data, or this test couldn't fail.
pub(crate) fn run<T: Target>() {
    let folder = tempfile::Builder::new().prefix("kunci-zombie-").tempdir().unwrap();
    let (home, cluster) = (folder.path().join("target"), folder.path().join("cluster"));
    std::fs::create_dir_all(&home).unwrap();
    let cluster = Cluster::start(&cluster);
    let target = T::start(&home);
    if report::is_without_fence() {
        show_what_is_lost(&cluster, &target);
    } else {
        refuse_every_late_write(&cluster, &target);
    }
}

fn refuse_every_late_write<T: Target>(cluster: &Cluster, target: &T) {
    let control = play(cluster, target, &format!("{}/control", T::NAME), Fence::Off);
    assert!(control.is_lost(), "without the fence nothing is lost, so this shows nothing:\n{control}");
    let outcomes = rounds(cluster, target, ROUNDS, Fence::On);
    outcomes.iter().for_each(Outcome::check);
    let stopped = outcomes.iter().map(|outcome| outcome.stopped.as_secs_f64());
    let longest = stopped.fold(0.0, f64::max);
    let words = format!(
        "{}: {ROUNDS} late writes, {ROUNDS} refused, the data is intact; the holders were stopped for up to {longest:.1} s\n",
        T::NAME
    );
    report::tell(T::NAME, &words);
}

/// Fails, as it should, with what was lost.
fn show_what_is_lost<T: Target>(cluster: &Cluster, target: &T) {
    let outcomes = rounds(cluster, target, BARE_ROUNDS, Fence::Off);
    let lost = outcomes.iter().filter(|outcome| outcome.is_lost()).count();
    let mut words =
        format!("{}: {BARE_ROUNDS} late writes, {lost} of the newer holders' values lost\n", T::NAME);
    outcomes.iter().for_each(|outcome| write!(words, "{outcome}").unwrap());
    report::tell(T::NAME, &words);
    assert_eq!(lost, 0, "without the fence, late writes destroy what newer holders wrote");
}

/// Several at a time, each over an item of its own.
fn rounds<T: Target>(cluster: &Cluster, target: &T, rounds: usize, fence: Fence) -> Vec<Outcome> {
    let lane = |lane: usize| {
        let rounds = (1..=rounds).filter(move |round| round % LANES == lane);
        rounds.map(|round| play(cluster, target, &format!("{}/round-{round}", T::NAME), fence)).collect()
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..LANES).map(|number| scope.spawn(move || -> Vec<_> { lane(number) })).collect();
        // A panic in a lane is this test's.
        let outcomes = lanes
            .into_iter()
            .map(|lane| lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        outcomes.flatten().collect()
    })
}
