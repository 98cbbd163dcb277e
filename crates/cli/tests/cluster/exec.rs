//! `kunci exec` and the verbs through the native doors of three nodes: redirects, and a leader that dies.

use crate::support::{Dev, cluster, done, free_base_port, holder, signal, until};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// The native doors of these nodes.
fn doors(dev: &Dev, nodes: &[u16]) -> String {
    let door = |index: &u16| format!("127.0.0.1:{}", dev.http(*index).port() + 1);
    nodes.iter().map(door).collect::<Vec<_>>().join(",")
}

/// `kunci exec` through these doors, running a shell script.
fn exec(doors: &str, resource: &str, options: &str, script: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kunci"));
    command.env_remove("KUNCI_ENDPOINTS").env_remove("KUNCI_URL");
    command.args(["exec", "--endpoints", doors]).args(options.split_whitespace());
    command.args([resource, "--", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end; a run that has none is killed, and fails the test.
fn finish(child: Child) -> Output {
    let id = child.id();
    let ending = std::thread::spawn(move || child.wait_with_output().unwrap());
    until("the run ends", || ending.is_finished().then_some(()));
    let output = ending.join().unwrap();
    assert!(!crate::support::is_alive(id));
    output
}

/// C83: a leader that dies costs nobody a lock or a place in the queue.
#[test]
fn a_leader_is_killed_and_the_commands_under_locks_live_on() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), free_base_port(), 3);
    let all = doors(&dev, &[0, 1, 2]);
    let leader = dev.leader(&[0, 1, 2]);
    let followers: Vec<u16> = (0..3).filter(|index| *index != leader).collect();

    // A follower's door alone will do: it says where the leader is.
    let one = doors(&dev, &followers[..1]);
    let held = done(&format!("acquire redirected --owner w-1 --ttl 1m --endpoints {one} --json"));
    assert!(held.contains("\"acquired\":true"), "{held}");
    assert!(done(&format!("status redirected --endpoints {one}")).contains("w-1"));

    let first = exec(&all, "job", "--owner first --ttl 6s", "sleep 9; echo \"$KUNCI_FENCING_TOKEN\"; exit 7");
    let by_one = exec(&one, "other", "--owner third --ttl 6s", "sleep 9; exit 8");
    let held = || followers.iter().find_map(|index| holder(dev.http(*index), "job"));
    let (_, token) = until("the first one holds", held);
    let second = exec(&all, "job", "--owner second --ttl 6s", "echo \"$KUNCI_FENCING_TOKEN\"");
    std::thread::sleep(Duration::from_millis(1_000));

    signal(dev.pid(leader).unwrap(), "KILL");
    let (first, second, by_one) = (finish(first), finish(second), finish(by_one));

    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert_eq!((first.status.code(), said(&first)), (Some(7), token.to_string()), "{first:?}");
    assert_eq!(by_one.status.code(), Some(8), "{by_one:?}");
    assert_eq!(second.status.code(), Some(0), "{second:?}");
    assert!(said(&second).parse::<u64>().unwrap() > token, "{second:?}");
    let body = until("a node answers", || cluster(dev.http(followers[0])));
    assert_ne!(body["leader"].as_u64(), Some(u64::from(leader) + 1), "another one leads: {body}");
}
