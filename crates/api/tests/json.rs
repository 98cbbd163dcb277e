//! What JSON bodies are taken and refused, and how numbers come through.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use kunci_api::{
    AcquireRequest, Code, Invalid, PolicyBody, PolicyChangeRequest, Problem, ReleaseRequest, parse,
};
use kunci_types::{Policy, Revision, Ttl, Wait};
use serde_json::{Value, json};

fn refused(body: &str) -> Problem {
    match parse::<AcquireRequest>(body.as_bytes()).and_then(|request| request.read()) {
        Ok(asked) => panic!("taken: {asked:?}"),
        Err(invalid) => Problem::from(invalid),
    }
}

fn with(field: &str, value: &str) -> String {
    format!(r#"{{"clientId":"w","{field}":{value}}}"#)
}

/// Case C95: every number is taken as it is, for the policy to judge, or refused by name; none is bent.
#[test]
fn extreme_durations_are_taken_whole_or_refused_by_name() {
    let taken = [0, 1, 3_600_000, 3_600_001, 1 << 31, 1 << 50, 1 << 53, u64::MAX >> 1, u64::MAX];
    for ms in taken {
        let body = with("leaseDurationMs", &ms.to_string());
        let asked = parse::<AcquireRequest>(body.as_bytes()).unwrap().read().unwrap();
        assert_eq!(asked.ttl, Some(Ttl::from_ms(ms)));
        let body = with("waitTimeoutMs", &ms.to_string());
        let asked = parse::<AcquireRequest>(body.as_bytes()).unwrap().read().unwrap();
        assert_eq!(asked.wait, Wait::from_ms(ms));
    }
    let bad = [
        "-1",
        "30.5",
        "30.0",
        "3e1",
        "1e308",
        "1e999",
        "18446744073709551616",
        "\"30\"",
        "null",
        "[]",
        "true",
    ];
    for field in ["leaseDurationMs", "waitTimeoutMs", "lockDelayMs"] {
        for value in bad {
            let problem = refused(&with(field, value));
            assert_eq!(problem.code, Code::Invalid, "{field} {value}");
            assert_eq!(problem.field.as_deref(), Some(field), "{value}: {}", problem.detail);
        }
    }
    let absent = parse::<AcquireRequest>(br#"{"clientId":"w"}"#).unwrap().read().unwrap();
    assert_eq!((absent.ttl, absent.wait, absent.request_id), (None, Wait::Try, None));
}

/// Case C101: what isn't known isn't ignored.
#[test]
fn unknown_repeated_missing_and_broken_fields_are_refused_by_name() {
    let says = |body: &str, part: &str| {
        let problem = refused(body);
        assert_eq!((problem.status, problem.code), (400, Code::Invalid));
        assert!(problem.detail.contains(part), "{body}: {}", problem.detail);
    };
    says(&with("leaseTTL", "1"), "unknown field `leaseTTL`");
    says(r#"{"clientId":"a","clientId":"b"}"#, "duplicate field `clientId`");
    says("{}", "missing field `clientId`");
    says("", "the body is empty");
    says("{", "EOF");
    says(r#"{"clientId":"a"} {}"#, "trailing characters");
    says("[1]", "invalid");
    says(&with("metadata", &"[".repeat(10_000)), "metadata");
    says(r#"{"clientId":null}"#, "clientId");
    says(r#"{"clientId":"a\u0000"}"#, "clientId: owner has a control character at byte 1");
    says(
        &with("requestId", &format!("\"{}\"", "r".repeat(129))),
        "request id has 129 bytes: expected at most 128",
    );
}

#[test]
fn a_fault_in_a_name_comes_with_its_byte() {
    let problem = refused(r#"{"clientId":"ab\u0007"}"#);
    assert_eq!((problem.field.as_deref(), problem.at), (Some("clientId"), Some(2)));
}

/// Case C96: the largest token comes through JSON exactly, also through a parser that knows only doubles.
#[test]
fn the_largest_token_is_exact_in_doubles_and_larger_ones_are_refused() {
    let largest = Revision::MAX.get();
    let as_double: f64 = largest.to_string().parse().unwrap();
    assert_eq!(format!("{as_double:.0}"), largest.to_string());
    let body = |token: u64| format!(r#"{{"clientId":"w","fencingToken":{token}}}"#);
    assert!(parse::<ReleaseRequest>(body(largest).as_bytes()).unwrap().read().is_ok());
    for token in [0, largest + 1, largest + 2, u64::MAX >> 1] {
        let refused = parse::<ReleaseRequest>(body(token).as_bytes()).unwrap().read().unwrap_err();
        assert_eq!(refused.field(), Some("fencingToken"), "{token}");
    }
}

#[test]
fn a_proof_is_a_lease_id_or_owner_and_token_and_never_both() {
    let read = |body: Value| parse::<ReleaseRequest>(body.to_string().as_bytes()).unwrap().read();
    assert!(read(json!({"leaseId": "A".repeat(22)})).is_ok());
    assert!(read(json!({"clientId": "w", "fencingToken": 7})).is_ok());
    let wrong = [
        json!({}),
        json!({"clientId": "w"}),
        json!({"fencingToken": 7}),
        json!({"leaseId": "A".repeat(22), "clientId": "w", "fencingToken": 7}),
    ];
    for body in wrong {
        assert_eq!(read(body.clone()), Err(Invalid::Proof), "{body}");
    }
}

#[test]
fn a_policy_change_names_what_it_changes_and_keeps_the_rest() {
    let body = br#"{"replaces":7,"policy":{"ttlMsMax":60000,"ownerTokenProof":false}}"#;
    let change: PolicyChangeRequest = parse(body).unwrap();
    let before = Policy::default();
    let after = change.over(&before);
    assert_eq!(change.replaces().unwrap().get(), 7);
    assert_eq!(after, Policy { ttl_ms_max: 60_000, owner_token_proof: false, ..before.clone() });

    let unknown = parse::<PolicyChangeRequest>(br#"{"replaces":7,"policy":{"ttlMax":1}}"#).unwrap_err();
    assert!(unknown.to_string().contains("unknown field `ttlMax`"), "{unknown}");
    assert_eq!(PolicyBody::field_name("waiters_per_resource_max"), "waitersPerResourceMax");
    let shown = serde_json::to_value(PolicyBody::from(&before)).unwrap();
    assert_eq!(shown["waitersPerResourceMax"], 1_024);
}

#[test]
fn each_code_has_one_text_and_one_status() {
    for code in Code::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        let retriable = matches!(code.status(), 429 | 503);
        assert_eq!(code.retry_after_ms().is_some(), retriable, "{}", code.as_str());
    }
}
