//! `kunci exec`: the lock is lost, or nearly.

use crate::fake::{Fake, Weather};
use crate::support::{exec, finish, is_alive, pids, run, signal, until};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Scripts whose every process writes its id: a background child, a pipeline, and one that ignores TERM.
fn stubborn(file: &Path) -> [String; 3] {
    let each = format!("sh -c 'echo $$ >> {0}; exec sleep 1000'", file.display());
    let deaf = format!("trap '' TERM; echo $$ >> {}; while :; do sleep 0.02; done", file.display());
    [format!("{each} & {each}"), format!("{each} | {each}"), format!("sh -c \"{deaf}\" & {deaf}")]
}

/// C87
#[test]
fn when_the_lease_is_forced_to_end_the_whole_group_is_ended_and_the_code_is_76() {
    let folder = tempfile::tempdir().unwrap();
    for (number, script) in stubborn(&folder.path().join("pids")).iter().enumerate() {
        let file = folder.path().join("pids");
        let _ = std::fs::remove_file(&file);
        let fake = Fake::start();
        let wrapper = exec(&fake, "--ttl 1s", script).spawn().unwrap();
        let group = pids(&file, 2);
        fake.end_lease("forced");
        let ran = finish(wrapper);
        assert_eq!(ran.code, Some(76), "{number}: {ran:?}");
        assert!(!group.iter().any(|pid| is_alive(*pid)), "{number}: {ran:?}");
        assert!(ran.stderr.contains("the lock on r is lost, the server says"), "{ran:?}");
    }
}

/// C87: the server keeps the lease until its TTL after the last renewal that it saw; the group is dead before.
#[test]
fn when_the_server_falls_silent_the_whole_group_is_dead_before_the_lease_ends() {
    let folder = tempfile::tempdir().unwrap();
    for (number, script) in stubborn(&folder.path().join("pids")).iter().enumerate() {
        for weather in [Weather::Silent, Weather::Broken, Weather::NoQuorum] {
            let file = folder.path().join("pids");
            let _ = std::fs::remove_file(&file);
            let fake = Fake::start();
            let wrapper = exec(&fake, "--ttl 1s", script).spawn().unwrap();
            let group = pids(&file, 2);
            until("it renews", || fake.requests("renew").len() >= 2);
            let renewed_at = {
                let mut state = fake.state();
                state.weather = weather;
                state.held.as_ref().unwrap().renewed_at
            };
            until("all are dead", || !group.iter().any(|pid| is_alive(*pid)));
            let lasted = renewed_at.elapsed();
            assert!(
                lasted < Duration::from_secs(1),
                "{number} {weather:?}: dead {lasted:?} after the renewal"
            );
            assert!(
                lasted > Duration::from_millis(600),
                "{number} {weather:?}: dead after {lasted:?} already"
            );
            assert_eq!(finish(wrapper).code, Some(76));
        }
    }
}

/// C83
#[test]
fn failed_renewals_stop_nothing_when_one_gets_through_in_time() {
    for weather in [Weather::Silent, Weather::Broken, Weather::NoQuorum, Weather::AnswerLost, Weather::Teapot]
    {
        let fake = Fake::start();
        let running = exec(&fake, "--ttl 2s", "sleep 2.5; exit 7").spawn().unwrap();
        until("it holds", || !fake.is_free());
        // An attempt without an answer takes a sixth of the TTL; the others fail at once.
        fake.shower(weather, if weather == Weather::Silent { 1 } else { 3 });
        let ran = finish(running);
        assert_eq!(ran.code, Some(7), "{weather:?}: {ran:?}");
        assert!(ran.stderr.contains("renew r: ") && ran.stderr.contains("done, the lock is safe"), "{ran:?}");
    }
}

/// C92
#[test]
fn a_command_that_takes_five_ttls_keeps_the_lock() {
    let fake = Fake::start();
    let ran = run(&mut exec(&fake, "--ttl 2s", "sleep 10; exit 8"));
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let renewals = fake.requests("renew").len();
    assert!((12..=17).contains(&renewals), "{renewals} renewals");
}

/// C92
#[test]
fn a_wrapper_that_was_stopped_past_the_deadline_kills_at_once_when_it_goes_on() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    for (number, script) in stubborn(&folder.path().join("pids")).iter().enumerate() {
        let file = folder.path().join("pids");
        let _ = std::fs::remove_file(&file);
        let wrapper = exec(&fake, "--ttl 1s", script).spawn().unwrap();
        let group = pids(&file, 2);
        signal(wrapper.id(), "STOP");
        std::thread::sleep(Duration::from_secs(2));
        assert!(
            fake.is_free() && group.iter().any(|pid| is_alive(*pid)),
            "{number}: it runs on without the lock"
        );
        fake.take();
        let resumed_at = Instant::now();
        signal(wrapper.id(), "CONT");
        until("all are dead", || !group.iter().any(|pid| is_alive(*pid)));
        assert!(
            resumed_at.elapsed() < Duration::from_millis(200),
            "{number}: took {:?}",
            resumed_at.elapsed()
        );
        let ran = finish(wrapper);
        assert_eq!(ran.code, Some(76), "{number}: {ran:?}");
        assert_eq!(fake.state().held.as_ref().unwrap().owner, "other", "the successor isn't harmed");
        fake.end_lease("released");
    }
}

/// C68: after a loss that the server told of there is nothing to release and nothing to wait for.
#[test]
fn after_the_server_has_ended_the_lease_nothing_is_released() {
    let fake = Fake::start();
    let running = exec(&fake, "--ttl 1s", "exec sleep 1000").spawn().unwrap();
    until("it holds", || !fake.is_free());
    fake.end_lease("forced");
    assert_eq!(finish(running).code, Some(76));
    assert!(fake.requests("release").is_empty());
}

#[test]
fn nobody_who_leaves_standard_error_unread_keeps_the_group_alive_past_the_deadline() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let deaf = "trap '' TERM; while :; do sleep 0.02; done";
    // The command fills the pipe that it shares with the wrapper.
    let script = format!("head -c 1000000 /dev/zero >&2 & echo $$ >> {}; {deaf}", file.display());
    let mut wrapper = exec(&fake, "--ttl 1s", &script).spawn().unwrap();
    let command = pids(&file, 1)[0];
    until("it renews", || fake.requests("renew").len() >= 2);
    fake.set(Weather::Silent);
    let renewed_at = fake.state().held.as_ref().unwrap().renewed_at;
    until("it is dead", || !is_alive(command));
    assert!(renewed_at.elapsed() < Duration::from_secs(1), "dead after {:?}", renewed_at.elapsed());
    // Somebody reads at last, and the wrapper can say what it had to say.
    drop(wrapper.stderr.take());
    assert_eq!(finish(wrapper).code, Some(76));
}
