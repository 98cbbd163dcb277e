//! `kunci exec` through native doors: what the command gets, which code comes out, what is left behind.

use crate::support::{Server, exec, finish, kunci, run, signal, until};
use std::time::Duration;

/// C90
#[test]
fn the_commands_own_end_is_the_end_of_exec_and_the_lock_is_given_back() {
    let server = Server::start();
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)] {
        let ran = run(&mut exec(&server, "r", "--try", script));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{script}");
        assert!(server.is_free("r"), "{script}");
    }
}

#[test]
fn the_command_finds_its_lock_and_its_cluster_in_its_environment_and_no_other_cluster() {
    let server = Server::start();
    let script = "echo $KUNCI_FENCING_TOKEN $KUNCI_RESOURCE $KUNCI_OWNER $KUNCI_ENDPOINTS ${KUNCI_URL-none}; \
                  echo $KUNCI_LEASE_ID";
    let mut command = exec(&server, "r", "--owner w-7 --ttl 10s", script);
    let ran = run(command.env("KUNCI_URL", "http://another:1"));
    let (line, lease) = ran.stdout.split_once('\n').unwrap();
    let token =
        server.node.call("GET", "/locks/r/history", None).unwrap().1["events"][0]["fencingToken"].clone();
    assert_eq!(line, format!("{token} r w-7 {} none", server.native), "{ran:?}");
    assert_eq!(lease.trim_end().len(), 22, "{ran:?}");

    // The lease id is the lock's: the command may renew it itself.
    let script = format!("{} renew r $KUNCI_LEASE_ID", env!("CARGO_BIN_EXE_kunci"));
    let ran = run(&mut exec(&server, "r", "--ttl 10s", &script));
    assert!(ran.code == Some(0) && ran.stdout.contains("r renewed"), "{ran:?}");
}

/// C73, C90: the command never starts without the lock.
#[test]
fn without_the_lock_the_command_is_not_started() {
    let server = Server::start();
    let held = run(kunci("acquire r --ttl 1m --owner other").args(server.option("--endpoints")));
    assert_eq!(held.code, Some(0), "{held:?}");
    for (resource, options, code, says) in [
        ("r", "--try", 75, "r: held by other under fencing token"),
        ("r", "--wait 200ms", 75, "use a longer --wait"),
        ("r", "--try --skip-ok", 0, "the command was skipped"),
        ("free", "--try --ttl 2h", 77, "out of policy"),
        ("e\u{301}", "--try", 2, "resource: "),
        ("free", "--try --owner e\u{301}", 2, "clientId: "),
    ] {
        let ran = run(&mut exec(&server, resource, options, "echo started"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{options}: {ran:?}");
        assert!(ran.stderr.contains(says), "{options}: {ran:?}");
    }
    for (address, is_said) in [("127.0.0.1:9", true), ("127.0.0.1:9,127.0.0.1:10", false)] {
        let patience = if is_said { "3500ms" } else { "300ms" };
        let words = format!("exec r --endpoints {address} --patience {patience} -- echo started");
        let ran = run(&mut kunci(&words));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(69), ""), "{ran:?}");
        assert_eq!(ran.stderr.contains("trying again for 3.5s"), is_said, "{ran:?}");
        assert!(ran.stderr.contains("Connection refused (os error 111); check --endpoints"), "{ran:?}");
    }
}

/// Contract, section 4: after a wait the lease has all of its time when the command starts.
#[test]
fn a_wait_is_talked_about_and_ends_with_the_whole_lease() {
    let server = Server::start();
    let held = run(kunci("acquire r --ttl 3s").args(server.option("--endpoints")));
    assert_eq!(held.code, Some(0), "{held:?}");
    let script = format!("{} status r --url {} --json", env!("CARGO_BIN_EXE_kunci"), server.url);
    let ran = run(&mut exec(&server, "r", "--ttl 20s", &script));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("waiting for r"), "{ran:?}");
    let remaining = ran.json()["remainingMs"].as_u64().unwrap();
    assert!((15_000..=20_000).contains(&remaining), "{remaining}");
}

/// C93: nothing is left behind that would keep the next run waiting.
#[test]
fn an_interrupt_in_the_queue_cancels_the_wait_and_starts_nothing() {
    let server = Server::start();
    let held = run(kunci("acquire r --ttl 1m").args(server.option("--endpoints")));
    assert_eq!(held.code, Some(0), "{held:?}");
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let waiting = exec(&server, "r", "", "echo started").spawn().unwrap();
        until("it waits", || server.status("r")["queueLength"] == 1);
        signal(waiting.id(), name);
        let ran = finish(waiting);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{name}: {ran:?}");
        assert_eq!(server.status("r")["queueLength"], 0, "{name}");
    }
}

/// C93: whichever comes first, the interrupt or the grant.
#[test]
fn an_interrupt_around_the_grant_leaves_no_lease_behind() {
    let server = Server::start();
    for round in 0..24_u64 {
        let mut taken = kunci("acquire r --ttl 1m --json");
        let taken = run(taken.args(server.option("--endpoints"))).json();
        let waiting = exec(&server, "r", "", "exec sleep 1000").spawn().unwrap();
        until("it waits", || server.status("r")["queueLength"] == 1);
        // The signal comes between 6 ms before and 6 ms after the release.
        let id = waiting.id();
        let interrupt = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(round * 500));
            signal(id, "INT");
        });
        std::thread::sleep(Duration::from_millis(6));
        let body = serde_json::json!({ "leaseId": taken["leaseId"] });
        let released = server.node.call("POST", "/locks/r/release", Some(&body)).unwrap();
        assert_eq!(released.0, 200, "{released:?}");
        let ran = finish(waiting);
        interrupt.join().unwrap();
        assert_eq!(ran.code, Some(130), "round {round}: {ran:?}");
        assert!(server.is_free("r"), "round {round}: {ran:?} {}", server.status("r"));
    }
}

/// C93: with the native door a wait outlives the only node, and keeps its place before those who came later.
#[test]
fn a_wait_outlives_a_node_that_starts_again() {
    let mut server = Server::start();
    let held = run(kunci("acquire r --ttl 4s").args(server.option("--endpoints")));
    assert_eq!(held.code, Some(0), "{held:?}");
    let first = exec(&server, "r", "--owner first", "echo $KUNCI_FENCING_TOKEN; sleep 0.2").spawn().unwrap();
    until("the first one waits", || server.status("r")["queueLength"] == 1);
    let second = exec(&server, "r", "--owner second", "echo $KUNCI_FENCING_TOKEN").spawn().unwrap();
    until("the second one waits", || server.status("r")["queueLength"] == 2);
    server = server.restarted(Duration::from_millis(500));
    let (first, second) = (finish(first), finish(second));
    let token = |ran: &crate::support::Ran| {
        ran.stdout.trim_end().parse::<u64>().unwrap_or_else(|_| panic!("{ran:?}"))
    };
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first:?} {second:?}");
    assert!(token(&first) < token(&second), "{first:?} {second:?}");
    assert!(server.is_free("r"));
}
