//! `kunci exec`: signals to the wrapper, and processes that the command leaves behind.

use crate::fake::Fake;
use crate::support::{exec, finish, is_alive, pids, signal, until};
use std::time::Duration;
use tokio::time::Instant;

/// C88
#[test]
fn a_signal_to_the_wrapper_reaches_the_whole_group_and_the_lock_is_released_after_its_end() {
    for (name, code) in
        [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131), ("USR1", 138), ("USR2", 140)]
    {
        let fake = Fake::start();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pids");
        // In a shell without job control a background process ignores INT and QUIT, so both run in the foreground.
        let script = format!("echo $$ >> {0}; sh -c 'echo $$ >> {0}; exec sleep 1000'", file.display());
        let wrapper = exec(&fake, "", &script).spawn().unwrap();
        let group = pids(&file, 2);
        signal(wrapper.id(), name);
        let ran = finish(wrapper);
        assert_eq!(ran.code, Some(code), "{name}: {ran:?}");
        assert!(!group.iter().any(|pid| is_alive(*pid)), "{name}");
        assert!(fake.is_free(), "{name}");
    }
}

/// C77, C88
#[test]
fn a_command_that_takes_its_time_after_term_keeps_the_lock_until_it_has_ended() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let script =
        format!("trap 'sleep 1.5; exit 4' TERM; echo $$ >> {}; while :; do sleep 0.05; done", file.display());
    let wrapper = exec(&fake, "--ttl 1s", &script).spawn().unwrap();
    pids(&file, 1);
    let told_at = Instant::now();
    signal(wrapper.id(), "TERM");
    while told_at.elapsed() < Duration::from_millis(1200) {
        assert!(!fake.is_free(), "released after {:?}, the command still ends", told_at.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    let ran = finish(wrapper);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(fake.is_free());
}

/// C88
#[test]
fn when_the_wrapper_gets_kill_its_command_dies_too() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let script = format!("echo $$ >> {}; exec sleep 1000", file.display());
    let mut wrapper = exec(&fake, "", &script).spawn().unwrap();
    let command = pids(&file, 1)[0];
    wrapper.kill().unwrap();
    wrapper.wait().unwrap();
    until("the command is dead", || !is_alive(command));
    assert!(!fake.is_free(), "the lease ends by its TTL, as the help says");
}

#[test]
fn what_the_command_leaves_behind_is_ended_before_the_lock_is_released() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    // One ends on TERM, the other ignores it.
    let script = format!(
        "sleep 1000 & echo $! >> {0}; sh -c 'trap \"\" TERM; echo $$ >> {0}; while :; do sleep 0.05; done' & sleep 0.3; exit 5",
        file.display()
    );
    let wrapper = exec(&fake, "--grace 300ms", &script).spawn().unwrap();
    let left_behind = pids(&file, 2);
    until("the lock is released", || {
        let is_free = fake.is_free();
        assert!(!is_free || !left_behind.iter().any(|pid| is_alive(*pid)), "released while one lives");
        is_free
    });
    assert_eq!(finish(wrapper).code, Some(5));
}

#[test]
fn stop_and_continue_in_time_harm_nothing() {
    let fake = Fake::start();
    let wrapper = exec(&fake, "--ttl 5s", "sleep 0.8; exit 6").spawn().unwrap();
    until("it holds", || !fake.is_free());
    for _ in 0..3 {
        signal(wrapper.id(), "TSTP");
        std::thread::sleep(Duration::from_millis(150));
        signal(wrapper.id(), "CONT");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(finish(wrapper).code, Some(6));
}
