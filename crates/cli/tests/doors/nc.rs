//! The native door spoken to with `nc`, as docs/protocol.md shows it.

use crate::support::{Server, finish};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../../../docs/protocol.md");

/// The console blocks of the page that run `nc`: the command, and the lines below it.
fn conversations() -> Vec<(&'static str, Vec<&'static str>)> {
    let blocks = PAGE.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut conversations = Vec::new();
    for block in blocks {
        let mut lines = block.lines();
        let command = lines.next().and_then(|line| line.strip_prefix("$ ")).unwrap();
        assert!(command.contains("nc "), "what else runs in {block}");
        conversations.push((command, lines.collect()));
    }
    conversations
}

/// The value of a field in an answer.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

/// The answer without what is another each time.
fn shape(line: &str) -> String {
    let fields = line.split(' ').map(|field| match field.split_once('=') {
        Some((name @ ("token" | "lease" | "req" | "at" | "ttl_ms"), _)) => format!("{name}=…"),
        _ => field.to_owned(),
    });
    fields.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_conversation_of_the_page_goes_as_it_shows() {
    let server = Server::start();
    let (command, lines) = conversations().remove(0);
    let [nc, host, _] = command.split(' ').collect::<Vec<_>>()[..] else { panic!("{command}") };
    let port = server.native.rsplit_once(':').unwrap().1;
    let mut nc = Command::new(nc)
        .args([host, port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = nc.stdin.take().unwrap();
    let mut printed = BufReader::new(nc.stdout.take().unwrap()).lines();
    let mut leases: Vec<(&str, String)> = Vec::new();
    assert!(lines.len() >= 4 && lines.len() % 2 == 0, "{lines:?}");
    for pair in lines.chunks(2) {
        let request = leases.iter().fold(pair[0].to_owned(), |text, (shown, ours)| text.replace(shown, ours));
        writeln!(typed, "{request}").unwrap();
        let answer = printed.next().unwrap().unwrap();
        assert_eq!(shape(&answer), shape(pair[1]), "{request}");
        if let (Some(shown), Some(ours)) = (value(pair[1], "lease"), value(&answer, "lease")) {
            leases.push((shown, ours.to_owned()));
        }
    }
    // Ctrl-C of the person.
    drop(nc.kill());
    drop(finish(nc));
}

#[test]
fn requests_from_a_pipe_are_all_answered_before_the_connection_ends() {
    let server = Server::start();
    let (command, _) = conversations().remove(1);
    let port = server.native.rsplit_once(':').unwrap().1;
    let shell = Command::new("bash")
        .args(["-c", &command.replace("7401", port)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ran = finish(shell);
    let mut answers: Vec<String> = ran.stdout.lines().map(shape).collect();
    answers.sort();
    let granted = "A A orders/42 token=… lease=… ttl_ms=… req=… at=…";
    assert_eq!(answers, [granted, "Q Q reports held=false queue=0 at=…"], "{ran:?}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
