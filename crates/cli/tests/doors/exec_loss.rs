//! `kunci exec` through native doors: the lock is lost, or nearly.

use crate::support::{Server, exec, finish, is_alive, kunci, pids, run, signal, until};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// A script of two processes that write their ids; the second one is deaf to TERM.
fn stubborn(file: &Path) -> String {
    let deaf = format!("trap '' TERM; echo $$ >> {}; while :; do sleep 0.02; done", file.display());
    format!("sh -c \"{deaf}\" & {deaf}")
}

/// C87
#[test]
fn when_the_lease_is_forced_to_end_the_whole_group_is_ended_and_the_code_is_76() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let wrapper = exec(&server, "r", "--ttl 1s", &stubborn(&file)).spawn().unwrap();
    let group = pids(&file, 2);
    server.force("r");
    let ran = finish(wrapper);
    assert_eq!(ran.code, Some(76), "{ran:?}");
    assert!(!group.iter().any(|pid| is_alive(*pid)), "{ran:?}");
    assert!(ran.stderr.contains("the lock on r is lost, the server says: an operator ended it"), "{ran:?}");
}

/// C87: the server keeps the lease until its TTL after the last renewal that it saw; the group is dead before.
#[test]
fn when_the_node_falls_silent_or_dies_the_whole_group_is_dead_before_the_lease_ends() {
    for ending in ["STOP", "KILL"] {
        let server = Server::start();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pids");
        let wrapper = exec(&server, "r", "--ttl 2s", &stubborn(&file)).spawn().unwrap();
        let group = pids(&file, 2);
        std::thread::sleep(Duration::from_millis(1_000));
        let last_seen = Instant::now();
        signal(server.pid(), ending);
        until("all are dead", || !group.iter().any(|pid| is_alive(*pid)));
        let lasted = last_seen.elapsed();
        assert!(lasted < Duration::from_secs(2), "{ending}: dead after {lasted:?}");
        assert!(lasted > Duration::from_millis(600), "{ending}: dead after {lasted:?} already");
        let ran = finish(wrapper);
        assert_eq!(ran.code, Some(76), "{ending}: {ran:?}");
        assert!(ran.stderr.contains("renew r: no answer yet; trying again"), "{ending}: {ran:?}");
        assert!(ran.stderr.contains("lost, no renewal got through: sent TERM"), "{ending}: {ran:?}");
    }
}

/// C92: a wrapper that wakes up after its deadline kills at once, and harms no successor.
#[test]
fn after_a_pause_past_the_lease_the_command_is_dead_at_once_and_the_successor_keeps_the_lock() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let wrapper = exec(&server, "r", "--ttl 1s", &stubborn(&file)).spawn().unwrap();
    let group = pids(&file, 2);
    signal(wrapper.id(), "STOP");
    until("the lease has ended", || server.is_free("r"));
    let successor = run(kunci("acquire r --ttl 1m --owner other").args(server.option("--endpoints")));
    assert_eq!(successor.code, Some(0), "{successor:?}");
    let resumed_at = Instant::now();
    signal(wrapper.id(), "CONT");
    until("all are dead", || !group.iter().any(|pid| is_alive(*pid)));
    assert!(resumed_at.elapsed() < Duration::from_millis(500), "took {:?}", resumed_at.elapsed());
    let ran = finish(wrapper);
    assert_eq!(ran.code, Some(76), "{ran:?}");
    assert!(ran.stderr.contains("this process didn't run until its deadline had passed"), "{ran:?}");
    assert_eq!(server.status("r")["holder"], "other");
}

/// C83: a node that comes back in time costs nothing.
#[test]
fn a_command_outlives_a_node_that_starts_again_and_ends_with_its_own_code() {
    let mut server = Server::start();
    let running = exec(&server, "r", "--ttl 4s", "sleep 4; exit 7").spawn().unwrap();
    until("it holds", || !server.is_free("r"));
    server = server.restarted(Duration::from_millis(800));
    let ran = finish(running);
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(server.is_free("r"));
}

/// C68, C90: a release that nobody hears takes 5 s at most and hides nothing.
#[test]
fn a_release_that_nobody_hears_does_not_hide_the_commands_code() {
    let server = Server::start();
    let running = exec(&server, "r", "--ttl 30s", "sleep 0.5; exit 3").spawn().unwrap();
    until("it holds", || !server.is_free("r"));
    signal(server.pid(), "STOP");
    let began_at = Instant::now();
    let ran = finish(running);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("release r: ") && ran.stderr.contains("its lease ends by itself"), "{ran:?}");
    assert!(began_at.elapsed() < Duration::from_secs(8), "took {:?}", began_at.elapsed());
}
