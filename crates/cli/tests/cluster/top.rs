//! `kunci top` against a real cluster.

use crate::node::call;
use crate::support::{Dev, acquire, done, free_base_port, kunci, signal, until, words};
use crate::tty::OnTerminal;
use serde_json::{Value, json};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tokio::time::Instant;

/// What an operator must see, is to be seen by then.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// Queues for a resource in the background, for as long as the test goes.
fn wait_for(http: SocketAddr, resource: &str, owner: &str) {
    let (resource, owner) = (resource.to_owned(), owner.to_owned());
    std::thread::spawn(move || {
        let body = json!({ "clientId": owner, "requestId": format!("{owner}-1"), "waitTimeoutMs": 120_000 });
        while !matches!(
            call(http, "POST", &format!("/locks/{resource}/acquire"), Some(&body)),
            Ok((200 | 409, _)) | Err(_)
        ) {}
    });
}

/// Waits until all of this is on the screen at once.
fn contains(top: &mut OnTerminal, expected: &[&str]) {
    for _ in 0..400 {
        let ended = top.ended();
        assert!(ended.is_none(), "it ended: {ended:?}\n{}", top.sent());
        let screen = top.screen();
        if expected.iter().all(|expected| screen.contains(expected)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not on the screen: {expected:?}\n{}", top.screen());
}

/// Issue 8: a leader's death is seen within five seconds, by whoever looks.
#[test]
fn the_death_of_a_leader_is_seen_within_five_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), free_base_port(), 3);
    let leader = dev.leader(&[0, 1, 2]);
    let other = (leader + 1) % 3;
    acquire(dev.http(other), "orders%2F1", "worker-7");
    wait_for(dev.http(other), "orders%2F1", "worker-8");
    let mut top = OnTerminal::start(&format!("top --url http://{}", dev.http(leader)), 120, 40);
    let leads = format!("node {} leads", leader + 1);
    contains(&mut top, &[&leads, "orders/1  worker-7", "held 1", "waiting 1", "granted"]);

    top.press("\r");
    contains(&mut top, &["orders/1 is held by worker-7", "worker-8"]);
    top.press("\u{1b}");
    top.resize(80, 24);

    let killed_at = Instant::now();
    signal(dev.pid(leader).unwrap(), "KILL");
    let gone = format!("node {} ({}) is unreachable", leader + 1, dev.http(leader));
    contains(&mut top, &[&gone, "leads since", "orders/1  worker-7"]);
    let took = killed_at.elapsed();
    assert!(took < SEEN_WITHIN, "seen after {took:?}\n{}", top.screen());

    top.press("q");
    let status = until("top ends", || top.ended());
    assert_eq!(status.code(), Some(0));
    until("the terminal is as it was", || {
        let sent = top.sent();
        (sent.contains("\u{1b}[?1049l") && sent.contains("\u{1b}[?25h")).then_some(())
    });

    let once = done(&format!("top --once --url http://{}", dev.http(other)));
    assert!(once.contains("UNREACHABLE") && once.contains("worker-7") && !once.contains('\u{1b}'), "{once}");
    let told: Value =
        serde_json::from_str(&done(&format!("top --json --url http://{}", dev.http(other)))).unwrap();
    let nodes = told["nodes"].as_array().unwrap();
    let answering: Vec<_> = nodes.iter().map(|node| node["answers"].as_bool() == Some(true)).collect();
    let expected: Vec<_> = (0..3).map(|index| index != leader).collect();
    assert_eq!(answering, expected, "{told}");
    assert!(told["leader"].as_u64().is_some_and(|id| id != u64::from(leader) + 1), "{told}");
    assert_eq!(
        (&told["locks"][0]["holder"], &told["hot"][0]["queueLength"]),
        (&json!("worker-7"), &json!(1)),
        "{told}"
    );
}

/// Issue 8: so are a queue that fills, and a holder that doesn't renew any more.
#[test]
fn a_hot_queue_and_a_stopped_holder_are_seen_within_five_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Dev::start(folder.path(), free_base_port(), 1);
    let http = dev.http(dev.leader(&[0]));
    let native = SocketAddr::from(([127, 0, 0, 1], http.port() + 1));
    acquire(http, "hot", "w");
    let mut top = OnTerminal::start(&format!("top --url http://{http}"), 120, 40);
    contains(&mut top, &["held 1", "hot"]);

    top.press("2");
    let mut waiting = TcpStream::connect(native).unwrap();
    let filled_at = Instant::now();
    for number in 0..200 {
        writeln!(waiting, "A hot 30 600 owner=w{number}").unwrap();
    }
    contains(&mut top, &["waiting 200", "hot  "]);
    assert!(filled_at.elapsed() < SEEN_WITHIN, "seen after {:?}", filled_at.elapsed());

    top.press("3");
    let mut holder = TcpStream::connect(native).unwrap();
    let stopped_at = Instant::now();
    writeln!(holder, "A mine 6 try owner=stopped").unwrap();
    contains(&mut top, &["mine  ", "stopped"]);
    assert!(stopped_at.elapsed() < SEEN_WITHIN, "seen after {:?}", stopped_at.elapsed());
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let mut top = OnTerminal::start("top --url http://127.0.0.1:1", 100, 30);
    contains(&mut top, &["NO NODE ANSWERS"]);

    signal(top.pid(), "TERM");

    assert_eq!(until("top ends", || top.ended()).code(), Some(128 + 15));
    until("the terminal is as it was", || {
        let sent = top.sent();
        (sent.contains("\u{1b}[?1049l") && sent.contains("\u{1b}[?25h")).then_some(())
    });
}

#[test]
fn where_nobody_answers_a_pipe_gets_a_screen_and_the_exit_code_says_so() {
    let output = kunci("top --url http://127.0.0.1:1");
    assert_eq!(output.status.code(), Some(69), "{}", words(&output));
    assert!(words(&output).contains("NO NODE ANSWERS"), "{}", words(&output));
    let output = kunci("top --json --url http://127.0.0.1:1");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &told["leader"]), (Some(69), &Value::Null), "{told}");
}
