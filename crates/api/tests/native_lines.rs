//! The lines of the native protocol: what is written can be read, and what can't be read says why.

#![expect(clippy::unwrap_used, reason = "strategies make values that are right, and fail by panicking")]

use kunci_api::native::{
    Acquire, Answer, At, Grant, Held, Hello, LINE_BYTES_MAX, Line, LineFault, Op, Outcome, Refused, Request,
    Secret, Status, Subject, Tag, WaitFor, Welcome,
};
use kunci_api::{Applied, Code, Problem, Proof};
use kunci_types::{FencingToken, LeaseId, LockDelay, Owner, RequestId, ResourceName, Ttl};
use proptest::option;
use proptest::prelude::*;

const LEASE: &str = "-_v7-_v7-_v7-_v7-_v7-w";

fn parse(line: &str) -> Result<Line, kunci_api::native::BadLine> {
    Line::parse(line.as_bytes())
}

fn key(text: &str) -> ResourceName {
    ResourceName::parse(text).unwrap()
}

fn acquire(key_text: &str, wait: WaitFor) -> Acquire {
    Acquire {
        key: key(key_text),
        ttl: Ttl::from_ms(30_000),
        wait,
        request_id: None,
        owner: None,
        lock_delay: LockDelay::from_ms(0),
    }
}

fn written(line: &Line) -> String {
    let mut out = Vec::new();
    line.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn requests_are_read_as_the_grammar_has_them() {
    let full = parse("A orders/42 30 1.5 req=r-1 owner=worker%207 delay=0.25 #7\r").unwrap();
    let wanted = Acquire {
        request_id: Some(RequestId::parse("r-1").unwrap()),
        owner: Some(Owner::parse("worker 7").unwrap()),
        lock_delay: LockDelay::from_ms(250),
        ..acquire("orders/42", WaitFor::UpToMs(1_500))
    };
    assert_eq!(full, Line { request: Request::Acquire(wanted), tag: Some(Tag::new(7)) });

    let lease_id = kunci_api::parse_lease_id(LEASE).unwrap();
    let renewed = parse(&format!("N a {LEASE} 60")).unwrap().request;
    assert_eq!(renewed, Request::Renew { key: key("a"), lease_id, ttl: Some(Ttl::from_ms(60_000)) });
    let proof =
        Proof::OwnerToken { owner: Owner::parse("w").unwrap(), token: FencingToken::presented(41).unwrap() };
    assert_eq!(parse("R a token=41,owner=w").unwrap().request, Request::Release { key: key("a"), proof });
    assert_eq!(parse("Q a%20b #0").unwrap().request, Request::Status { key: key("a b") });
    assert_eq!(
        parse("H 1 token=s").unwrap().request,
        Request::Hello(Hello { version: 1, token: Some(Secret::new("s")) })
    );
    assert_eq!(parse("P").unwrap(), Line { request: Request::Ping, tag: None });
}

/// Case C99: `0` and `try` are two things.
#[test]
fn a_wait_of_zero_has_no_limit_of_its_own_and_try_means_once() {
    for (text, wait) in [
        ("0", WaitFor::AsLongAsAllowed),
        ("0.000", WaitFor::AsLongAsAllowed),
        ("try", WaitFor::Once),
        ("0.001", WaitFor::UpToMs(1)),
        ("18446744073709551615", WaitFor::UpToMs(u64::MAX)),
    ] {
        let line = parse(&format!("A k 30 {text}")).unwrap();
        assert_eq!(line.request, Request::Acquire(acquire("k", wait)), "{text}");
    }
    for text in ["-1", "Try", "0.0001", "1e3", "", "none"] {
        assert!(parse(&format!("A k 30 {text}")).is_err(), "{text}");
    }
}

/// Each line, what is wrong, and what an answer to it echoes.
#[test]
fn a_broken_line_says_which_field_is_at_fault_and_keeps_what_can_be_echoed() {
    for (line, field, echoed) in [
        ("", None, "?"),
        (" ", None, "?"),
        ("a k 30 0", None, "?"),
        ("AA k 30 0 #5", None, "? #5"),
        ("Q", Some("key"), "?"),
        ("Q ", Some("key"), "?"),
        ("Q #5", Some("key"), "? #5"),
        ("Q  k", Some("key"), "?"),
        ("Q k ", None, "Q k"),
        ("Q k=v", Some("key"), "?"),
        ("Q k%2", Some("key"), "?"),
        ("Q k #x", Some("tag"), "?"),
        ("Q k #07", Some("tag"), "?"),
        ("Q k #-1", Some("tag"), "?"),
        ("Q k #18446744073709551616", Some("tag"), "?"),
        ("Q k #1 #2", None, "Q k #2"),
        ("A k", Some("lease_s"), "A k"),
        ("A k 30", Some("wait_s"), "A k"),
        ("A k x 0 #3", Some("lease_s"), "A k #3"),
        ("A k 30 0 req=a req=b", Some("req"), "A k"),
        ("A k 30 0 req=", Some("req"), "A k"),
        ("A k 30 0 ttl=3", None, "A k"),
        ("A k 30 0 60", None, "A k"),
        ("A k 30 0 delay=a", Some("delay"), "A k"),
        ("N k", Some("lease_id"), "N k"),
        ("N k short", Some("lease_id"), "N k"),
        ("R k token=1", Some("owner"), "R k"),
        ("R k token=0,owner=a", Some("token"), "R k"),
        ("C k owner=a", Some("request_id"), "C k"),
        ("H", Some("version"), "H"),
        ("H 0", Some("version"), "H"),
        ("P k", None, "P"),
    ] {
        let bad = parse(line).unwrap_err();
        assert_eq!(bad.why.field(), field, "{line}: {bad}");
        let answer = Answer { subject: bad.subject, outcome: Outcome::Pong, at: At::default(), tag: bad.tag };
        let mut out = Vec::new();
        answer.write(&mut out);
        let echo = String::from_utf8(out).unwrap().replace(" at=0.0", "");
        assert_eq!(echo, format!("P {echoed}\n"), "{line}");
    }
}

#[test]
fn a_value_that_breaks_a_rule_of_names_doesnt_break_the_grammar() {
    for line in ["Q e\u{301}", "Q %20k", "A k 30 0 owner=%0A", "N k short", "R k token=0,owner=a"] {
        assert!(!parse(line).unwrap_err().why.breaks_grammar(), "{line}");
    }
    for line in ["", "Q", "Q k=", "A k 30 x", "hello"] {
        assert!(parse(line).unwrap_err().why.breaks_grammar(), "{line}");
    }
    assert_eq!(Line::parse(b"Q \xff").unwrap_err().why, LineFault::NotUtf8);
    for line in
        ["GET / HTTP/1.1", "POST /A%20k%2030%20try HTTP/1.0\r", "PRI * HTTP/2.0", "host: a", "Host: a"]
    {
        assert!(parse(line).unwrap_err().why.ends_connection(), "{line}");
    }
    assert!(!parse("hello").unwrap_err().why.ends_connection());
    assert!(parse("Q HTTP/1.1").is_ok(), "a name like any other");
}

#[test]
fn a_line_has_4096_bytes_at_most() {
    let at_most = format!("H 1 token={}", "x".repeat(LINE_BYTES_MAX - 10));
    assert!(parse(&at_most).is_ok());
    assert!(parse(&format!("{at_most}\r")).is_ok());
    assert_eq!(parse(&format!("{at_most}x")).unwrap_err().why, LineFault::TooLong);
}

#[test]
fn the_largest_request_and_answer_fit_in_a_line() {
    let widest = |bytes: usize| "=".repeat(bytes);
    let line = Line {
        request: Request::Acquire(Acquire {
            ttl: Ttl::from_ms(u64::MAX),
            request_id: Some(RequestId::parse(&widest(128)).unwrap()),
            owner: Some(Owner::parse(&widest(128)).unwrap()),
            lock_delay: LockDelay::from_ms(u64::MAX),
            ..acquire(&widest(256), WaitFor::UpToMs(u64::MAX))
        }),
        tag: Some(Tag::new(u64::MAX)),
    };
    assert!(written(&line).len() <= LINE_BYTES_MAX);

    let problem = Problem {
        reason: Some("proof_not_allowed".to_owned()),
        limit: Some("waitersPerNamespaceMax".to_owned()),
        request_id: Some(widest(128)),
        retry_after_ms: Some(u64::MAX),
        fencing_token: Some(u64::MAX),
        remaining_ms: Some(u64::MAX),
        min_ms: Some(u64::MAX),
        max_ms: Some(u64::MAX),
        max: Some(u64::MAX),
        ..Problem::new(Code::OutcomeUnknown, widest(10_000))
    };
    let answer = Answer {
        subject: Some(Subject { op: Op::Acquire, key: Some(key(&widest(256))) }),
        outcome: Outcome::refused(Some(Op::Acquire), problem),
        at: At { index: u64::MAX, place: u32::MAX },
        tag: Some(Tag::new(u64::MAX)),
    };
    let mut out = Vec::new();
    answer.write(&mut out);
    assert!(out.len() <= LINE_BYTES_MAX, "{}", out.len());
}

#[test]
fn a_secret_never_shows_in_debug_output() {
    assert!(!format!("{:?}", parse("H 1 token=hunter2").unwrap()).contains("hunter2"));
}

#[test]
fn a_refusal_has_its_own_result_where_there_is_one_and_a_lease_that_ended_says_how() {
    let outcome = |op, code, reason: Option<&str>| {
        Outcome::refused(Some(op), Problem { reason: reason.map(str::to_owned), ..Problem::new(code, "why") })
    };
    assert!(matches!(outcome(Op::Acquire, Code::TimedOut, None), Outcome::TimedOut { .. }));
    assert!(matches!(outcome(Op::Acquire, Code::Cancelled, None), Outcome::Cancelled { .. }));
    assert!(matches!(outcome(Op::Acquire, Code::Held, None), Outcome::Held(_)));
    for (op, code, reason, wanted) in [
        (Op::Renew, Code::LeaseEnded, Some("expired"), "expired"),
        (Op::Release, Code::NotHolder, Some("unknown_lease"), "unknown_lease"),
        (Op::Acquire, Code::LeaseEnded, Some("expired"), "lease_ended"),
        (Op::Renew, Code::NoLeader, None, "no_leader"),
    ] {
        let Outcome::Error(refused) = outcome(op, code, reason) else { panic!("expected E") };
        assert_eq!((refused.code.as_str(), refused.code()), (wanted, Some(code)));
    }
}

/// A later release may say more.
#[test]
fn a_field_that_is_not_known_is_left_alone_and_one_that_is_missing_is_not() {
    let read = Answer::parse(b"N N a ttl_ms=5 mood=fine at=3.1").unwrap();
    assert_eq!(read.outcome, Outcome::Renewed { ttl_ms: 5, is_final: false });
    for line in
        ["", "A", "A A", "A A k token=1", "X P at=1.0", "P P", "N N k at=1.0", "P P at=1", "P X at=1.0"]
    {
        assert!(Answer::parse(line.as_bytes()).is_err(), "{line}");
    }
}

fn name(bytes_max: usize) -> impl Strategy<Value = String> {
    // Any text that the rules of names let through.
    any::<String>().prop_map(move |text| {
        let mut name: String = text.chars().filter(|c| c.is_ascii() && !c.is_control()).collect();
        name.truncate(bytes_max);
        let name = name.trim();
        if name.is_empty() { "é/%=#, k".to_owned() } else { name.to_owned() }
    })
}

fn a_key() -> impl Strategy<Value = ResourceName> {
    name(256).prop_map(|text| key(&text))
}

fn an_owner() -> impl Strategy<Value = Owner> {
    name(128).prop_map(|text| Owner::parse(&text).unwrap())
}

fn an_id() -> impl Strategy<Value = RequestId> {
    name(128).prop_map(|text| RequestId::parse(&text).unwrap())
}

fn a_lease() -> impl Strategy<Value = LeaseId> {
    any::<[u8; 16]>().prop_map(LeaseId::from_bytes)
}

fn a_wait() -> impl Strategy<Value = WaitFor> {
    prop_oneof![Just(WaitFor::Once), Just(WaitFor::AsLongAsAllowed), (1..=u64::MAX).prop_map(WaitFor::UpToMs)]
}

fn a_proof() -> impl Strategy<Value = Proof> {
    prop_oneof![
        a_lease().prop_map(Proof::LeaseId),
        (an_owner(), 1..(1_u64 << 53)).prop_map(|(owner, number)| Proof::OwnerToken {
            owner,
            token: FencingToken::presented(number).unwrap()
        }),
    ]
}

fn a_request() -> impl Strategy<Value = Request> {
    let acquire =
        (a_key(), any::<u64>(), a_wait(), option::of(an_id()), option::of(an_owner()), any::<u64>());
    prop_oneof![
        acquire.prop_map(|(key, ttl, wait, request_id, owner, delay)| Request::Acquire(Acquire {
            key,
            ttl: Ttl::from_ms(ttl),
            wait,
            request_id,
            owner,
            lock_delay: LockDelay::from_ms(delay)
        })),
        (a_key(), a_lease(), option::of(any::<u64>())).prop_map(|(key, lease_id, ttl)| Request::Renew {
            key,
            lease_id,
            ttl: ttl.map(Ttl::from_ms)
        }),
        (a_key(), a_proof()).prop_map(|(key, proof)| Request::Release { key, proof }),
        (a_key(), an_id(), option::of(an_owner())).prop_map(|(key, request_id, owner)| Request::Cancel {
            key,
            request_id,
            owner
        }),
        a_key().prop_map(|key| Request::Status { key }),
        (1..=u32::MAX, option::of(name(200).prop_map(Secret::new)))
            .prop_map(|(version, token)| Request::Hello(Hello { version, token })),
        Just(Request::Ping),
    ]
}

fn a_tag() -> impl Strategy<Value = Option<Tag>> {
    option::of(any::<u64>().prop_map(Tag::new))
}

fn some_text() -> impl Strategy<Value = Option<String>> {
    option::of(any::<String>().prop_map(|text| text.chars().take(50).collect()))
}

fn a_refusal() -> impl Strategy<Value = Refused> {
    let numbers = (option::of(any::<u64>()), option::of(any::<u64>()), option::of(any::<u64>()));
    let texts = (name(20), some_text(), some_text(), some_text(), name(200));
    (numbers, texts, any::<bool>()).prop_map(|((a, b, c), (code, d, e, f, detail), no)| Refused {
        code,
        applied: if no { Applied::No } else { Applied::Unknown },
        retry_ms: a,
        reason: d,
        token: b,
        delay_ms: c,
        field: e,
        min_ms: a,
        max_ms: b,
        limit: f.clone(),
        max: c,
        request_id: f,
        detail,
    })
}

fn an_outcome() -> impl Strategy<Value = Outcome> {
    let held = (name(128), any::<u64>(), any::<u64>(), any::<u64>(), some_text());
    let status =
        (any::<bool>(), some_text(), option::of(any::<u64>()), option::of(any::<u64>()), any::<u64>());
    prop_oneof![
        (any::<u64>(), a_lease(), any::<u64>(), name(128), any::<bool>()).prop_map(
            |(token, lease, ttl_ms, request_id, repeated)| Outcome::Granted(Grant {
                token,
                lease: kunci_api::lease_id_text(&lease),
                ttl_ms,
                request_id,
                repeated
            })
        ),
        any::<bool>().prop_map(|already| Outcome::Released { already }),
        (any::<u64>(), any::<bool>()).prop_map(|(ttl_ms, is_final)| Outcome::Renewed { ttl_ms, is_final }),
        (some_text(), any::<bool>())
            .prop_map(|(request_id, repeated)| Outcome::Cancelled { request_id, repeated }),
        (some_text(), any::<bool>())
            .prop_map(|(request_id, repeated)| Outcome::TimedOut { request_id, repeated }),
        status.prop_map(|(held, holder, token, ms, queue)| Outcome::Status(Status {
            held,
            holder,
            token,
            ttl_ms: ms,
            held_ms: ms,
            delay_ms: token,
            queue
        })),
        held.prop_map(|(holder, token, ttl_ms, queue, request_id)| Outcome::Held(Held {
            holder,
            token,
            ttl_ms,
            queue,
            request_id
        })),
        (name(60), some_text()).prop_map(|(leader, request_id)| Outcome::Moved { leader, request_id }),
        (any::<u32>(), some_text(), some_text())
            .prop_map(|(version, cluster, leader)| Outcome::Welcome(Welcome { version, cluster, leader })),
        Just(Outcome::Pong),
        a_refusal().prop_map(Outcome::Error),
    ]
}

fn a_subject() -> impl Strategy<Value = Option<Subject>> {
    prop_oneof![
        Just(None),
        Just(Some(Subject { op: Op::Ping, key: None })),
        Just(Some(Subject { op: Op::Hello, key: None })),
        (prop::sample::select(&Op::ALL[..5]), a_key())
            .prop_map(|(op, key)| Some(Subject { op, key: Some(key) })),
    ]
}

proptest! {
    #[test]
    fn any_request_can_be_read_back(request in a_request(), tag in a_tag()) {
        let line = Line { request, tag };
        let text = written(&line);
        let body = text.strip_suffix('\n').unwrap();
        prop_assert!(!body.contains(['\n', '\r']), "{body:?}");
        prop_assert_eq!(Line::parse(body.as_bytes()), Ok(line));
    }

    #[test]
    fn any_answer_can_be_read_back(
        subject in a_subject(), outcome in an_outcome(), index in any::<u64>(), place in any::<u32>(), tag in a_tag()
    ) {
        let answer = Answer { subject, outcome, at: At { index, place }, tag };
        let mut out = Vec::new();
        answer.write(&mut out);
        let body = out.strip_suffix(b"\n").unwrap();
        prop_assert!(!body.contains(&b'\n'));
        prop_assert_eq!(Answer::parse(body), Ok(answer));
    }

    /// Nothing that comes from outside panics, and what is taken is taken the same way when it is written again.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(line) = Line::parse(&bytes) {
            let text = written(&line);
            prop_assert_eq!(Line::parse(text.trim_end().as_bytes()), Ok(line));
        }
        drop(Answer::parse(&bytes));
    }

    #[test]
    fn near_misses_are_read_or_refused(
        line in "[ANRCQHP?]( |  )(k|k%20|%|=|#)( [0-9.]{0,4}| try| #[0-9]{0,3}| req=[a-z%=]{0,3}| owner=x| token=1,owner=b){0,5}\r?"
    ) {
        drop(Line::parse(line.as_bytes()));
        drop(Answer::parse(line.as_bytes()));
    }
}
