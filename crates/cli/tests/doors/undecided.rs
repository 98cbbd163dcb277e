//! A native door that decides nothing: what is known of the request then, and what the exit code says.

use crate::support::{Ran, kunci, run};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A door that welcomes everybody, and answers every other line in one way; with no answer the connection ends.
struct Door {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Door {
    fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, own) = (Arc::clone(&asked), address.clone());
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, own) = (Arc::clone(&log), own.clone());
                // A connection that breaks is part of the test.
                std::thread::spawn(move || drop(serve(stream, &answer.replace("OWN", &own), &log)));
            }
        });
        Self { address, asked }
    }

    fn run(&self, words: &str) -> Ran {
        run(&mut kunci(&format!("{words} --json --patience 500ms --endpoints {}", self.address)))
    }
}

fn serve(stream: TcpStream, answer: &str, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let tag = line.rsplit_once(' ').map(|(_, tag)| tag).unwrap_or_default();
        if line.starts_with("H ") {
            writeln!(out, "W H version=1 cluster=c1 at=1.0 {tag}")?;
            continue;
        }
        log.lock().unwrap().push(line.clone());
        if answer.is_empty() {
            break;
        }
        writeln!(out, "{answer} at=1.0 {tag}")?;
    }
    Ok(())
}

/// C90: what may have been applied is 3, and the request to repeat is named.
#[test]
fn an_outcome_that_stays_unknown_is_3() {
    for answer in ["", "E A r code=outcome_unknown applied=unknown req=abc detail=cut"] {
        let door = Door::start(answer);
        let ran = door.run("acquire r --try --request-id abc");
        assert_eq!(
            (ran.code, ran.json()["applied"].as_str()),
            (Some(3), Some("unknown")),
            "{answer}: {ran:?}"
        );
        assert!(ran.stderr.contains("--request-id abc"), "{answer}: {ran:?}");
        let asked = door.asked.lock().unwrap().clone();
        assert!(asked.len() > 1 && asked.iter().all(|line| line.contains(" req=abc ")), "{asked:?}");
    }
    let ran = Door::start("").run("release r AAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!((ran.code, ran.json()["applied"].as_str()), (Some(3), Some("unknown")), "{ran:?}");
}

/// C90: what wasn't applied for sure is 69.
#[test]
fn no_quorum_no_leader_and_a_redirect_in_a_circle_are_69() {
    for (answer, says) in [
        ("E A r code=no_quorum applied=no detail=alone", "alone; try again in a moment"),
        ("E A r code=no_leader applied=no detail=none%20leads", "none leads"),
        ("M A r leader=OWN req=abc", "redirected in a circle"),
    ] {
        let ran = Door::start(answer).run("acquire r --try --request-id abc");
        assert_eq!((ran.code, ran.json()["applied"].as_str()), (Some(69), Some("no")), "{answer}: {ran:?}");
        assert!(ran.stderr.contains(says) && !ran.stderr.contains("no decision within"), "{answer}: {ran:?}");
    }
}

/// A code and fields of a later version: the refusal is one all the same.
#[test]
fn a_refusal_in_words_of_a_later_version_is_shown() {
    let ran = Door::start("E A r code=too_pretty applied=no beauty=9 detail=it%20is").run("acquire r --try");
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("it is"), "{ran:?}");
}
