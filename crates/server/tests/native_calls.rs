//! Each request of the native protocol and its answers, on a real socket.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod native_support;

use kunci_replica::{Lead, NoLead};
use kunci_server::native::NativeLimits;
use native_support::{Client, Node, Opening, field, gist, three, until};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const AT_ONCE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_lock_is_taken_renewed_seen_and_released() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    let granted = client.ask("A orders/42 30 try req=r-1 owner=worker-7 #1").await;
    assert_eq!(gist(&granted), format!("A A orders/42 token={} req=r-1 #1", field(&granted, "token")));
    let (lease, token) = (field(&granted, "lease"), field(&granted, "token"));
    assert_eq!((lease.len(), field(&granted, "ttl_ms")), (22, "30000"));

    let renewed = client.ask(&format!("N orders/42 {lease} 60 #2")).await;
    assert_eq!((gist(&renewed).as_str(), field(&renewed, "ttl_ms")), ("N N orders/42 #2", "60000"));

    let mut other = node.connect().await;
    let status = other.ask("Q orders/42").await;
    assert_eq!(gist(&status), format!("Q Q orders/42 held=true holder=worker-7 token={token} queue=0"));
    let held = other.ask("A orders/42 30 try req=r-2 owner=worker-8").await;
    assert_eq!(gist(&held), format!("H A orders/42 holder=worker-7 token={token} queue=0 req=r-2"));

    assert_eq!(gist(&client.ask(&format!("R orders/42 {lease}")).await), "R R orders/42");
    assert_eq!(gist(&client.ask(&format!("R orders/42 {lease}")).await), "R R orders/42 already=true");
    assert_eq!(gist(&other.ask("Q orders/42").await), "Q Q orders/42 held=false queue=0");
    node.stop().await;
}

#[tokio::test]
async fn a_refused_renewal_or_release_says_how_the_lease_ended() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    let granted = client.ask("A k 1 try req=r owner=a").await;
    let lease = field(&granted, "lease").to_owned();
    until("the lease has expired", async || !node.is_held("k").await).await;
    for op in ["N", "R"] {
        let refused = client.ask(&format!("{op} k {lease}")).await;
        assert_eq!(gist(&refused), format!("E {op} k code=expired applied=no"), "{refused}");
    }
    let ended = client.ask("A k 1 try req=r owner=a").await;
    assert!(ended.starts_with("E A k code=lease_ended applied=no reason=expired"), "{ended}");
    let stranger = client.ask("N k AAAAAAAAAAAAAAAAAAAAAA").await;
    assert_eq!(gist(&stranger), "E N k code=unknown_lease applied=no");

    let again = client.ask("A k 30 try owner=a").await;
    let token = field(&again, "token");
    let other = client.ask(&format!("R k token={token},owner=b")).await;
    assert_eq!(gist(&other), "E R k code=unknown_lease applied=no");
    assert_eq!(gist(&client.ask(&format!("R k token={token},owner=a")).await), "R R k");
    node.stop().await;
}

/// A request is repeated with its id and its owner, on any connection.
#[tokio::test]
async fn a_repeated_acquire_is_the_same_lease() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    let granted = client.ask("A k 30 try req=r owner=a").await;
    let mut other = node.connect().await;
    let repeated = other.ask("A k 30 try req=r owner=a").await;
    assert_eq!(field(&repeated, "lease"), field(&granted, "lease"));
    assert_eq!(field(&repeated, "repeated"), "true");
    let reused = other.ask("A other 30 try req=r owner=a").await;
    assert!(reused.starts_with("E A other code=request_id_reused applied=no"), "{reused}");
    node.stop().await;
}

/// Two connections that name no owner are two callers, whatever request ids they choose.
#[tokio::test]
async fn a_default_owner_is_nobody_elses() {
    let node = Node::start().await;
    let (mut one, mut two) = (node.connect().await, node.connect().await);
    one.ask("A k 30 try req=1").await;
    let held = two.ask("A k 30 try req=1").await;
    assert!(held.starts_with("H A k holder=conn-"), "{held}");
    let number = field(&held, "holder").strip_prefix("conn-").unwrap();
    assert!(number.parse::<u64>().is_ok(), "{number}");
    node.stop().await;
}

#[tokio::test]
async fn hello_and_ping_are_answered_by_any_node() {
    let opening = Opening::new(NativeLimits::default()).await;
    let mut client = Client::connect(opening.address).await;
    assert_eq!(client.ask("H 1 token=secret #1").await, "W H version=1 at=0.0 #1");
    assert_eq!(client.ask("P").await, "P P at=0.0");
    let refused = client.ask("A k 30 try req=r").await;
    assert!(refused.starts_with("E A k code=no_leader applied=no retry_ms=500"), "{refused}");

    // The same connection, once there is a cluster.
    let node = opening.form().await;
    let cluster = node.service.cluster_id();
    let welcome = client.ask("H 7").await;
    assert!(welcome.starts_with(&format!("W H version=1 cluster={cluster} leader={} at=", node.address)));
    assert!(client.ask("A k 30 try").await.starts_with("A A k token="));
    node.stop().await;
}

#[tokio::test]
async fn values_out_of_policy_are_refused_with_what_is_allowed() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    for (line, field_name, max) in [
        ("A k 0 try", "lease_s", "3600000"),
        ("A k 18446744073709551615 try", "lease_s", "3600000"),
        ("A k 30 3600.001", "wait_s", "3600000"),
        ("A k 30 99999999999999999999", "wait_s", "3600000"),
        ("A k 30 try delay=61", "delay", "60000"),
    ] {
        let refused = client.ask(line).await;
        assert!(refused.starts_with("E A k code=out_of_policy applied=no"), "{refused}");
        assert_eq!((field(&refused, "field"), field(&refused, "max_ms")), (field_name, max));
    }
    assert!(!node.is_held("k").await);
    node.stop().await;
}

/// Case C99: `0` waits for as long as the policy allows, `try` not at all.
#[tokio::test]
async fn a_wait_of_zero_is_bounded_by_the_policy() {
    let node = Node::start().await;
    node.change_policy(r#""waitMsMax":700"#).await;
    let mut holder = node.connect().await;
    holder.ask("A k 30 try").await;
    let mut client = node.connect().await;
    let began = Instant::now();
    assert!(client.ask("A k 30 try").await.starts_with("H A k"));
    assert!(began.elapsed() < Duration::from_millis(500));
    let timed_out = client.ask("A k 30 0 req=r").await;
    assert_eq!(gist(&timed_out), "T A k req=r");
    assert!(began.elapsed() >= Duration::from_millis(700), "{:?}", began.elapsed());
    assert_eq!(gist(&client.ask("A k 30 0 req=r").await), "T A k req=r repeated=true");
    node.stop().await;
}

/// Case C57: a wait ends when it is over, and its end can't be mistaken for a grant.
#[tokio::test]
async fn a_wait_ends_in_its_time_with_a_result_of_its_own() {
    let node = Node::start().await;
    let mut holder = node.connect().await;
    holder.ask("A k 30 try").await;
    let mut client = node.connect().await;
    let began = Instant::now();
    assert_eq!(gist(&client.ask("A k 30 0.8 req=r #4").await), "T A k req=r #4");
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(800) && took < Duration::from_millis(1_800), "{took:?}");
    node.stop().await;
}

/// Case C63: a wait that is cancelled ends at once and in its own words; a cancel that comes too late is a grant.
#[tokio::test]
async fn a_wait_can_be_cancelled_from_another_connection() {
    let node = Node::start().await;
    let mut holder = node.connect().await;
    let granted = holder.ask("A k 30 try req=h owner=h").await;
    let mut client = node.connect().await;
    client.say("A k 30 600 req=r owner=a").await;
    node.attached("k", 1).await;
    let mut other = node.connect().await;
    assert_eq!(gist(&other.ask("C k r owner=a").await), "C C k req=r");
    assert_eq!(gist(&timeout(AT_ONCE, client.hear()).await.unwrap()), "C A k req=r");
    assert_eq!(gist(&other.ask("C k r owner=a").await), "C C k req=r repeated=true");

    let late = other.ask("C k h owner=h").await;
    assert!(late.starts_with("A C k token="), "{late}");
    assert_eq!(field(&late, "lease"), field(&granted, "lease"));
    // One that nobody has heard of is cancelled before it comes.
    other.ask("C k later owner=a").await;
    assert_eq!(gist(&client.ask("A k 30 600 req=later owner=a").await), "C A k req=later repeated=true");
    node.stop().await;
}

/// A node that doesn't lead names the one that does, with a request id to go there with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_doesnt_lead_names_the_leader() {
    let [leader, follower, third] = three().await;
    let mut client = follower.connect().await;
    let moved = client.ask("A k 30 try #3").await;
    let (address, request_id) = (leader.address.to_string(), field(&moved, "req").to_owned());
    assert_eq!((gist(&moved), request_id.len()), (format!("M A k leader={address} req={request_id} #3"), 22));
    assert_eq!(field(&client.ask("A k 30 try req=mine").await, "req"), "mine");
    assert_eq!(gist(&client.ask("Q k").await), format!("M Q k leader={address}"));
    assert_eq!(gist(&client.ask("N k AAAAAAAAAAAAAAAAAAAAAA").await), format!("M N k leader={address}"));
    assert!(client.ask("H 1").await.contains(&format!("leader={address}")));

    let mut there = Client::connect(address.parse().unwrap()).await;
    let granted = there.ask(&format!("A k 30 try req={request_id}")).await;
    assert!(granted.starts_with("A A k") && field(&granted, "req") == request_id, "{granted}");

    // Its waits end with word of it when it loses leadership.
    there.say("A k 30 60 req=waits").await;
    leader.attached("k", 1).await;
    leader.replica.transfer_lead(None).await.unwrap();
    let ended = timeout(AT_ONCE, there.hear()).await.unwrap();
    assert!(ended.starts_with("E A k code=outcome_unknown applied=unknown"), "{ended}");
    assert_eq!(field(&ended, "req"), "waits");
    until("it names the new leader", async || there.ask("Q k").await.starts_with("M Q k leader=")).await;
    for node in [follower, third, leader] {
        node.stop().await;
    }
}

/// No quorum: refused at once after the time of a quick election, for each request anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_leader_a_request_is_held_for_a_moment_and_then_refused() {
    let [leader, follower, third] = three().await;
    let mut client = leader.connect().await;
    for node in [follower, third] {
        node.stop().await;
    }
    let no_quorum = |lead| matches!(lead, Lead::Nobody { why: NoLead::NoQuorum, .. });
    until("it reaches no quorum", async || no_quorum(leader.replica.lead())).await;
    sleep(Duration::from_millis(500)).await;
    let began = Instant::now();
    let refused = client.ask("A k 30 try req=r").await;
    assert!(refused.starts_with("E A k code=no_quorum applied=no retry_ms=500"), "{refused}");
    assert_eq!(field(&refused, "req"), "r");
    assert!(began.elapsed() < Duration::from_millis(600), "{:?}", began.elapsed());
    assert!(client.ask("P").await.starts_with("P P at="));
    leader.stop().await;
}
