//! A world's randomness and clocks follow from its seed, and nobody else's do.
#![expect(clippy::unwrap_used, reason = "a test that can't go on should fail on the spot")]

use kunci_sim::randomness::{check, on_seeded_thread};
use std::hash::{BuildHasher as _, RandomState};

/// What the world's code draws, from every source that it has.
fn drawn() -> (u64, [u8; 16], u64, Vec<u64>) {
    let hashed = RandomState::new().hash_one("x");
    let mut id = [0; 16];
    getrandom::fill(&mut id).unwrap();
    let elections = (0..8).map(|_| rand::random_range(200..400)).collect();
    (hashed, id, rand::random(), elections)
}

#[test]
fn every_source_of_randomness_follows_the_seed() {
    check().unwrap();
    let first = on_seeded_thread(7, drawn).unwrap();
    assert_eq!(on_seeded_thread(7, drawn).unwrap(), first);
    let other = on_seeded_thread(8, drawn).unwrap();
    assert!(other.0 != first.0 && other.1 != first.1 && other.2 != first.2 && other.3 != first.3);
}

#[test]
fn outside_a_world_the_system_is_asked() {
    check().unwrap();
    let [first, second] = [0, 1].map(|_| std::thread::spawn(drawn).join().unwrap());
    assert!(first.0 != second.0 && first.1 != second.1 && first.2 != second.2);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this is about the clocks of the system")]
fn a_worlds_clocks_begin_anew_and_nobody_elses_do() {
    use std::time::{Duration, Instant, SystemTime};
    let world = || (SystemTime::now(), Instant::now());
    let first = on_seeded_thread(7, world).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(on_seeded_thread(8, world).unwrap(), first);
    let (wall, monotonic) = world();
    assert!(wall != first.0);
    std::thread::sleep(Duration::from_millis(5));
    assert!(monotonic.elapsed() >= Duration::from_millis(5));
}
