//! `kunci watch`.

use crate::fake::Fake;
use crate::support::{kunci, run};
use http::StatusCode;
use std::process::{Command, Stdio};

fn stream(fake: &Fake, status: StatusCode, text: &str) {
    fake.state().streams.push_back((status, text.to_owned()));
}

const GRANTED: &str =
    "id: 7\nevent: granted\ndata: {\"resource\":\"r\",\"owner\":\"w\",\"fencingToken\":7}\n\n";

#[test]
fn a_broken_stream_is_resumed_after_the_last_revision_and_410_is_explained() {
    let fake = Fake::start();
    stream(&fake, StatusCode::OK, GRANTED);
    stream(&fake, StatusCode::GONE, r#"{"code":"compacted","applied":"no"}"#);
    let ran = run(&mut kunci(&fake, "watch orders/ --after 3"));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(1), "       7  granted         r  w  token 7\n"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("events after revision 7 were dropped (compacted)"), "{ran:?}");
    let asked: Vec<String> = fake.state().log.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(asked, ["/events?prefix=orders%2F&after=3", "/events?prefix=orders%2F&after=7"]);
}

#[test]
fn under_json_each_event_is_the_servers_own_line() {
    let fake = Fake::start();
    stream(&fake, StatusCode::OK, GRANTED);
    let ran = run(&mut kunci(&fake, "watch --json --patience 600ms"));
    assert_eq!(ran.code, Some(69), "{ran:?}");
    assert!(ran.stdout.starts_with("{\"resource\":\"r\",\"owner\":\"w\",\"fencingToken\":7}\n"), "{ran:?}");
}

#[test]
fn a_closed_pipe_is_success() {
    let fake = Fake::start();
    for _ in 0..2 {
        stream(&fake, StatusCode::OK, &GRANTED.repeat(3));
    }
    let mut watching = kunci(&fake, "watch").spawn().unwrap();
    let mut head = Command::new("head")
        .arg("-n1")
        .stdin(watching.stdout.take().unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert!(head.wait().unwrap().success());
    assert_eq!(crate::support::finish(watching).code, Some(0));
}
