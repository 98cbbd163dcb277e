//! Both doors give the same answers, exit codes and words, but for fields that only HTTP has.

use crate::support::{Ran, Server, kunci, run};
use serde_json::{Map, Value};

/// What the native protocol doesn't carry.
const ONLY_HTTP: [&str; 6] = ["revision", "expiresAt", "newExpiresAt", "heldSince", "ttlMs", "metadata"];
/// What is another one each time.
const EACH_TIME: [&str; 6] = ["leaseId", "requestId", "fencingToken", "remainingMs", "heldMs", "resource"];

/// One step: what is done, where `{}` is the resource and `{lease}` the lease of the first step, and its exit code.
const STEPS: [(&str, i32); 21] = [
    ("acquire {} --try --owner w-7 --ttl 10s --request-id q1", 0),
    ("acquire {} --try --owner w-7 --ttl 10s --request-id q1", 0),
    ("acquire {} --try --owner w-7 --ttl 11s --request-id q1", 1),
    ("acquire {} --try --owner w-8", 1),
    ("acquire {} --wait 40ms --owner w-8", 1),
    ("status {}", 0),
    ("renew {} --lease {lease}", 0),
    ("renew {} {lease} --ttl 20s", 0),
    ("renew {} {lease} --ttl 2h", 1),
    ("release {} {lease}", 0),
    ("release {} --lease {lease}", 0),
    ("renew {} {lease}", 1),
    ("acquire {} --try --owner w-7 --ttl 10s --request-id q1", 1),
    ("release {} --token 1 --owner nobody", 1),
    ("status {}", 0),
    ("cancel {} --owner w-7 --request-id q2", 0),
    ("acquire {} --owner w-7 --request-id q2 --wait 1s", 1),
    ("acquire {} --try --ttl 2h", 1),
    ("release {} nonsense", 2),
    ("status {}e\u{301}", 2),
    ("acquire {} --try --owner e\u{301}", 2),
];

/// Plays all steps through one door of a fresh node.
fn play(door: &str, form: &str) -> Vec<Ran> {
    let server = Server::start();
    let resource = format!("same/{}", &door[2..]);
    let mut lease = String::new();
    let mut runs = Vec::new();
    for (step, code) in STEPS {
        let words = step.replace("{lease}", &lease).replace("{}", &resource);
        let ran = run(kunci(&words).args(server.option(door)).args(form.split_whitespace()));
        assert_eq!(ran.code, Some(code), "{words} {door}: {ran:?}");
        if lease.is_empty() {
            lease = match form {
                "--json" => ran.json()["leaseId"].as_str().unwrap().to_owned(),
                _ => ran.stdout.split_whitespace().nth(4).unwrap().to_owned(),
            };
        }
        runs.push(ran);
    }
    runs
}

fn fields(ran: &Ran) -> Map<String, Value> {
    ran.json().as_object().unwrap().clone()
}

/// Numbers and names that are others each time are one and the same.
fn shape(text: &str) -> String {
    let words = text.replace("same/endpoints", "same/url");
    let lines = words.lines().filter(|line| {
        let name = line.trim_start().split("  ").next().unwrap_or_default();
        !["ends at", "ttl", "metadata"].contains(&name)
    });
    let plain = |word: &str| {
        let is_like_an_id = word.len() == 22 && !word.contains('/');
        if is_like_an_id || word.bytes().any(|byte| byte.is_ascii_digit()) {
            "#".to_owned()
        } else {
            word.to_owned()
        }
    };
    let lines = lines.map(|line| line.split_whitespace().map(plain).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

/// C90: the exit code, and the fields of the answer.
#[test]
fn under_json_every_verb_has_the_same_fields_through_either_door() {
    let (native, http) = (play("--endpoints", "--json"), play("--url", "--json"));
    for (((step, _), native), http) in STEPS.iter().zip(&native).zip(&http) {
        let (native, mut http) = (fields(native), fields(http));
        for field in ONLY_HTTP {
            assert!(!native.contains_key(field), "{step}: the native door makes {field} up");
            http.remove(field);
        }
        let names = |fields: &Map<String, Value>| fields.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&native), names(&http), "{step}");
        for (name, value) in native.iter().filter(|(name, _)| !EACH_TIME.contains(&name.as_str())) {
            let text = |value: &Value| shape(&value.to_string());
            assert_eq!(text(value), text(&http[name]), "{step}: {name}");
        }
    }
}

#[test]
fn people_read_the_same_through_either_door() {
    let (native, http) = (play("--endpoints", ""), play("--url", ""));
    for (((step, _), native), http) in STEPS.iter().zip(&native).zip(&http) {
        assert_eq!(shape(&native.stdout), shape(&http.stdout), "{step}");
        assert_eq!(shape(&native.stderr), shape(&http.stderr), "{step}");
    }
}
