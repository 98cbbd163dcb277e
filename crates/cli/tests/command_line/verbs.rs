//! Renew, release, cancel, status, and what all verbs share.

use crate::fake::{Fake, Weather};
use crate::support::{Ran, kunci, run};
use serde_json::Value;

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn acquired(fake: &Fake) -> String {
    let body = json(&run(&mut kunci(fake, "acquire orders/42 --try --json --owner w-7")));
    body["leaseId"].as_str().unwrap().to_owned()
}

#[test]
fn a_lock_is_acquired_seen_renewed_and_released() {
    let fake = Fake::start();
    let got = run(&mut kunci(&fake, "acquire orders/42 --owner w-7 --ttl 10s"));
    assert_eq!(got.code, Some(0), "{got:?}");
    assert!(got.stdout.starts_with("orders/42 is yours\n  lease    -0"), "{got:?}");
    let lease = fake.state().held.as_ref().unwrap().lease.clone();

    let seen = run(&mut kunci(&fake, "status orders/42"));
    assert_eq!(seen.stdout, "orders/42 is held\n  holder   w-7\n  token    1\n  waiting  0\n");
    let renewed = run(&mut kunci(&fake, &format!("renew orders/42 {lease} --json")));
    assert_eq!(json(&renewed)["remainingMs"], 10_000);
    let released = run(&mut kunci(&fake, &format!("release orders/42 --lease {lease}")));
    assert_eq!((released.code, released.stdout.as_str()), (Some(0), "orders/42 released\n"));
    let again = run(&mut kunci(&fake, &format!("release orders/42 --lease {lease}")));
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "orders/42 was released before\n"));
}

#[test]
fn a_free_resource_is_an_answer() {
    let fake = Fake::start();
    let seen = run(&mut kunci(&fake, "status orders/42"));
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(0), "orders/42 is free\n"));
    assert_eq!(fake.state().log[0].0, "/locks/orders%2F42");
}

/// C90
#[test]
fn a_refusal_is_1_with_the_servers_body_under_json() {
    let fake = Fake::start();
    fake.take();
    let refused = run(&mut kunci(&fake, "acquire orders/42 --try --json"));
    assert_eq!(refused.code, Some(1));
    assert_eq!(json(&refused)["holder"], "other");
    assert!(refused.stderr.contains("held by other under token 1; use --wait"), "{refused:?}");
    let refused = run(&mut kunci(&fake, "release orders/42 --lease nonsense --json"));
    assert_eq!((refused.code, json(&refused)["reason"].as_str()), (Some(1), Some("unknown_lease")));
}

/// C90
#[test]
fn an_argument_that_cannot_be_used_is_2_and_says_how_to_write_it() {
    let fake = Fake::start();
    let cases = [
        ("acquire r --ttl 30", "`30s`"),
        ("acquire r --wait 0s", "--try"),
        ("acquire r --wait 1s --try", "cannot be used with"),
        ("release r", "<LEASE>"),
        ("status r --url https://x:1", "http://127.0.0.1:7400"),
        ("exec r", "CMD"),
        ("exec r --ttl 10s --grace 6s -- true", "at most 4.78s"),
    ];
    for (words, says) in cases {
        let ran = run(&mut kunci(&fake, words));
        assert_eq!(ran.code, Some(2), "{words}: {ran:?}");
        assert!(ran.stderr.contains(says) && ran.stdout.is_empty(), "{words}: {ran:?}");
    }
    assert!(fake.state().log.is_empty());
}

/// C90
#[test]
fn no_quorum_and_no_node_are_69_and_say_that_nothing_was_applied() {
    let fake = Fake::start();
    fake.set(Weather::NoQuorum);
    for verb in ["acquire r --try", "release r x", "status r"] {
        let patience = if verb.starts_with("status") { "" } else { " --patience 300ms" };
        let ran = run(&mut kunci(&fake, &format!("{verb}{patience} --json")));
        assert_eq!((ran.code, json(&ran)["applied"].as_str()), (Some(69), Some("no")), "{verb}: {ran:?}");
    }
    for verb in ["acquire r --patience 300ms", "renew r x --patience 300ms", "status r"] {
        let ran = run(&mut kunci(&fake, &format!("{verb} --json --url http://127.0.0.1:9")));
        assert_eq!((ran.code, json(&ran)["applied"].as_str()), (Some(69), Some("no")), "{verb}: {ran:?}");
    }
}

/// C90
#[test]
fn an_outcome_that_stays_unknown_is_3_and_names_the_request_to_repeat() {
    let fake = Fake::start();
    fake.set(Weather::Broken);
    let ran = run(&mut kunci(&fake, "acquire r --try --json --patience 500ms --request-id abc"));
    assert_eq!((ran.code, json(&ran)["applied"].as_str()), (Some(3), Some("unknown")), "{ran:?}");
    assert!(ran.stderr.contains("--request-id abc"), "{ran:?}");
    let ran = run(&mut kunci(&fake, "release r x --patience 500ms"));
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn a_release_whose_answer_was_lost_is_repeated_and_done() {
    let fake = Fake::start();
    let lease = acquired(&fake);
    fake.shower(Weather::AnswerLost, 1);
    let ran = run(&mut kunci(&fake, &format!("release orders/42 {lease} --json")));
    assert_eq!((ran.code, json(&ran)["already"].as_bool()), (Some(0), Some(true)), "{ran:?}");
}

#[test]
fn owner_and_token_go_to_the_server_in_place_of_the_lease_id() {
    let fake = Fake::start();
    acquired(&fake);
    let ran = run(&mut kunci(&fake, "renew orders/42 --token 1 --owner w-7 --ttl 5s"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sent = fake.requests("renew").remove(0);
    assert_eq!(sent, serde_json::json!({"clientId": "w-7", "fencingToken": 1, "leaseDurationMs": 5000}));
}

#[test]
fn a_cancel_that_comes_after_the_grant_shows_the_grant() {
    let fake = Fake::start();
    let ran = run(&mut kunci(&fake, "acquire r --try --request-id q1 --owner w"));
    assert_eq!(ran.code, Some(0));
    let late = run(&mut kunci(&fake, "cancel r --owner w --request-id q1"));
    assert!(late.code == Some(0) && late.stdout.contains("the grant came first"), "{late:?}");
    let other = run(&mut kunci(&fake, "cancel r --owner w --request-id q2"));
    assert_eq!(other.stdout, "r: the request is cancelled\n");
}

#[test]
fn completions_and_manual_pages_are_written() {
    let fake = Fake::start();
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&mut kunci(&fake, &format!("completions {shell}")));
        assert!(ran.code == Some(0) && ran.stdout.contains("force-release"), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = run(kunci(&fake, "man").arg(folder.path()));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = std::fs::read_to_string(folder.path().join("kunci-exec.1")).unwrap();
    assert!(page.contains("can\\*(Aqt be promised") || page.contains("be promised"), "{page}");
}

#[test]
fn help_lists_the_exit_codes() {
    let fake = Fake::start();
    let acquire = run(&mut kunci(&fake, "acquire --help"));
    assert!(acquire.code == Some(0) && acquire.stdout.contains("3  outcome unknown"), "{acquire:?}");
    let exec = run(&mut kunci(&fake, "exec --help"));
    assert!(exec.stdout.contains("76  the lock was lost") && exec.stdout.contains("What can't be promised"));
}
