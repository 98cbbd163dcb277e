//! Many requests on one native connection: their order, waits that are left behind, and ends of every kind.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod native_support;

use kunci_server::native::NativeLimits;
use native_support::{Client, Node, field, gist, until};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

const AT_ONCE: Duration = Duration::from_secs(3);

/// A connection on which so many wait for `k`, held by another.
async fn waits(node: &Node, lines: &str) -> (Client, String) {
    let mut holder = node.connect().await;
    let granted = holder.ask("A k 30 try req=h owner=h").await;
    let mut client = node.connect().await;
    client.say(lines).await;
    node.attached("k", lines.lines().count()).await;
    (client, format!("R k {}", field(&granted, "lease")))
}

#[tokio::test]
async fn a_release_hands_over_to_the_wait_at_the_head() {
    let node = Node::start().await;
    let (mut client, release) = waits(&node, "A k 30 60 req=1 #1\nA k 30 60 req=2 #2").await;
    let mut other = node.connect().await;
    other.ask(&release).await;
    let first = timeout(AT_ONCE, client.hear()).await.unwrap();
    assert!(first.starts_with("A A k token=") && first.ends_with(" #1"), "{first}");
    client.hears_nothing().await;
    other.ask(&format!("R k {}", field(&first, "lease"))).await;
    let second = timeout(AT_ONCE, client.hear()).await.unwrap();
    assert!(second.ends_with(" #2"), "{second}");
    assert!(field(&second, "token").parse::<u64>().unwrap() > field(&first, "token").parse().unwrap());
    node.stop().await;
}

/// Case C72: with tags the answers go to the requests that they are for, as soon as they are ready.
#[tokio::test]
async fn a_tagged_answer_waits_for_nobody() {
    let node = Node::start().await;
    let (mut client, release) = waits(&node, "A k 30 60 req=1 #1").await;
    client.say("A k 30 0.5 req=2 #2\nA k 30 try req=3 #3\nQ k\nP").await;
    let mut answers = vec![client.hear().await, client.hear().await, client.hear().await];
    answers.sort();
    assert!(answers[0].starts_with("H A k holder=h") && answers[0].ends_with(" #3"), "{answers:?}");
    assert!(answers[1].starts_with("P P") && answers[2].starts_with("Q Q k"), "{answers:?}");
    assert_eq!(gist(&client.hear().await), "T A k req=2 #2");
    node.connect().await.ask(&release).await;
    let granted = client.hear().await;
    assert!(granted.ends_with(" #1") && field(&granted, "req") == "1", "{granted}");
    node.stop().await;
}

/// Case C72: without tags the same operation and key are answered in the order sent, whichever is ready first.
#[tokio::test]
async fn untagged_answers_keep_the_order_of_their_requests() {
    let node = Node::start().await;
    let (mut client, release) = waits(&node, "A k 30 60 req=1").await;
    client.say("A k 30 0.3 req=2\nA k 30 try req=3").await;
    // Other keys and operations go ahead meanwhile.
    assert!(client.ask("A other 30 try").await.starts_with("A A other"));
    sleep(Duration::from_millis(500)).await;
    client.hears_nothing().await;
    node.connect().await.ask(&release).await;
    assert_eq!(field(&client.hear().await, "req"), "1");
    assert_eq!(gist(&client.hear().await), "T A k req=2");
    assert!(client.hear().await.starts_with("H A k holder=h"));
    node.stop().await;
}

/// Twins: the same request twice. The newer call gets the answer, the older one is told so.
#[tokio::test]
async fn of_two_calls_of_one_request_the_newer_gets_the_answer() {
    let node = Node::start().await;
    let (mut client, release) = waits(&node, "A k 30 60 req=1 owner=a").await;
    client.say("A k 30 60 req=1 owner=a").await;
    let superseded = timeout(AT_ONCE, client.hear()).await.unwrap();
    assert!(superseded.starts_with("E A k code=superseded applied=unknown req=1"), "{superseded}");
    // And on another connection.
    let mut newer = node.connect().await;
    newer.say("A k 30 60 req=1 owner=a").await;
    assert!(client.hear().await.starts_with("E A k code=superseded"));
    node.attached("k", 1).await;
    node.connect().await.ask(&release).await;
    assert!(newer.hear().await.starts_with("A A k token="));
    client.hears_nothing().await;
    node.stop().await;
}

/// Cases C54 (a), L3: a waiter whose connection ends is passed over at once, and dropped after its grace.
#[tokio::test]
async fn a_client_that_goes_away_is_passed_over_and_its_place_is_kept_for_a_while() {
    let node = Node::start().await;
    node.change_policy(r#""waiterGraceMs":1500"#).await;
    let (client, release) = waits(&node, "A k 30 60 req=1 owner=a").await;
    let mut behind = node.connect().await;
    behind.say("A k 30 60 req=2 owner=b").await;
    node.attached("k", 2).await;
    drop(client);
    node.attached("k", 1).await;
    node.connect().await.ask(&release).await;
    let granted = timeout(AT_ONCE, behind.hear()).await.unwrap();
    assert_eq!(field(&granted, "req"), "2");
    until("the absent waiter is dropped", async || behind.ask("Q k").await.contains(" queue=0 ")).await;
    let late = behind.ask("A k 30 60 req=1 owner=a").await;
    assert_eq!(gist(&late), "C A k req=1 repeated=true");
    node.stop().await;
}

/// Case C98: whoever comes back takes up its place, by any connection.
#[tokio::test]
async fn a_client_that_comes_back_takes_up_its_place() {
    let node = Node::start().await;
    let (client, release) = waits(&node, "A k 30 60 req=1 owner=a").await;
    let mut behind = node.connect().await;
    behind.say("A k 30 60 req=2 owner=b").await;
    node.attached("k", 2).await;
    drop(client);
    node.attached("k", 1).await;
    let mut back = node.connect().await;
    back.say("A k 30 60 req=1 owner=a").await;
    node.attached("k", 2).await;
    node.connect().await.ask(&release).await;
    assert_eq!(field(&timeout(AT_ONCE, back.hear()).await.unwrap(), "req"), "1");
    behind.hears_nothing().await;
    node.stop().await;
}

/// Case C54 (c): requests that nobody read yet don't hide that their client is gone.
#[tokio::test]
async fn unread_requests_dont_hide_that_their_client_is_gone() {
    let node = Node::start_with(NativeLimits { in_flight_max: 20, ..NativeLimits::default() }).await;
    let (mut client, release) = waits(&node, "A k 30 60 req=1 owner=a").await;
    // As many waits as may be under way, and more behind them that nobody reads.
    let waits: String = (0..19).map(|number| format!("A k 30 60 owner=a #{number}\n")).collect();
    let unread = "Q a/key/of/usual/length\n".repeat((64 << 10) / 24);
    client.send(format!("{waits}{unread}").as_bytes()).await;
    node.attached("k", 20).await;
    drop(client);
    timeout(AT_ONCE, node.attached("k", 0)).await.unwrap();
    let mut other = node.connect().await;
    other.say("A k 30 60 req=c owner=c").await;
    node.attached("k", 1).await;
    node.connect().await.ask(&release).await;
    assert_eq!(field(&timeout(AT_ONCE, other.hear()).await.unwrap(), "req"), "c");
    node.stop().await;
}

/// Section 7: a half-close detaches waits, lets decided answers out, then closes.
#[tokio::test]
async fn after_a_half_close_what_is_decided_is_answered_and_what_waits_is_detached() {
    let node = Node::start().await;
    let (mut client, _release) = waits(&node, "A k 30 60 req=1 owner=a").await;
    client.say("A free 30 try req=2 #2\nA k 30 60 req=3 owner=a #3\nA k 30 60 #4\nQ k #5").await;
    client.send(b"P #6\nP #7").await;
    client.stream.shutdown().await.unwrap();
    let mut answers = client.hear_all().await;
    answers.sort();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert!(answers[0].starts_with("A A free token=") && answers[0].ends_with(" #2"), "{answers:?}");
    assert!(answers[1].ends_with(" #6") && answers[2].starts_with("Q Q k held=true"), "{answers:?}");
    node.attached("k", 0).await;
    // Those with request ids of their own keep their places for the grace; nobody could come back with another's.
    let mut other = node.connect().await;
    until("two places are kept", async || other.ask("Q k").await.contains(" queue=2 ")).await;
    assert!(node.is_held("free").await);
    node.stop().await;
}

/// `printf 'A k 30 try\nQ k\n' | nc -N host 7401`
#[tokio::test]
async fn lines_from_a_pipe_are_all_answered() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    let lines: String = (0..2_000).map(|number| format!("A k{number} 30 try #{number}\n")).collect();
    client.send(lines.as_bytes()).await;
    client.stream.shutdown().await.unwrap();
    let answers = client.hear_all().await;
    assert_eq!(answers.len(), 2_000);
    assert!(answers.iter().all(|answer| answer.starts_with("A A k")));
    node.stop().await;
}

/// A node that stops tells those who wait, and lets what is under way out.
#[tokio::test]
async fn a_stop_ends_waits_with_a_word_that_they_may_ask_again() {
    let node = Node::start().await;
    let (mut client, _) = waits(&node, "A k 30 60 req=1 owner=a").await;
    client.say("Q k").await;
    node.stop.cancel();
    let mut answers = client.hear_all().await;
    answers.sort();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers[0].starts_with("E A k code=outcome_unknown applied=unknown"), "{answers:?}");
    assert_eq!(field(&answers[0], "req"), "1");
    node.stop().await;
}

/// Many renewals in one write are one entry of the log, and many statuses one look at the locks; each has its answer.
#[tokio::test]
async fn what_comes_together_goes_together() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    let mut renewals = String::new();
    for number in 0..300 {
        let granted = client.ask(&format!("A k{number} 30 try")).await;
        renewals.push_str(&format!("N k{number} {}\n", field(&granted, "lease")));
    }
    renewals.push_str("N k0 AAAAAAAAAAAAAAAAAAAAAA\nN k1 AAAAAAAAAAAAAAAAAAAAAA 0.5 #7\n");
    client.say(&renewals).await;
    let mut entries = BTreeSet::new();
    for number in 0..302 {
        let answer = client.hear().await;
        let is_right = match number {
            300 => answer.starts_with("E N k0 code=unknown_lease"),
            301 => {
                answer.starts_with("E N k1 code=out_of_policy")
                    || answer.starts_with("E N k1 code=unknown_lease")
            }
            _ => answer.starts_with(&format!("N N k{number} ttl_ms=")),
        };
        assert!(is_right, "{answer}");
        entries.insert(field(&answer, "at").split('.').next().unwrap().to_owned());
    }
    assert!(entries.len() <= 4, "{} entries for 302 renewals", entries.len());

    let statuses: String = (0..300).map(|number| format!("Q k{number} #{number}\n")).collect();
    client.say(&statuses).await;
    for number in 0..300 {
        let answer = client.hear().await;
        let wanted = format!("Q Q k{number} held=true holder=conn-");
        assert!(answer.starts_with(&wanted) && answer.ends_with(&format!(" #{number}")), "{answer}");
    }
    node.stop().await;
}

/// Calls begin in the order of their lines, also where some of them could go together.
#[tokio::test]
async fn a_renewal_before_a_release_isnt_overtaken_by_it() {
    let node = Node::start().await;
    let mut client = node.connect().await;
    for _ in 0..20 {
        let granted = client.ask("A k 30 try").await;
        let lease = field(&granted, "lease");
        client.say(&format!("N k {lease}\nR k {lease}")).await;
        let mut gists = [gist(&client.hear().await), gist(&client.hear().await)];
        gists.sort();
        assert_eq!(gists, ["N N k", "R R k"]);
    }
    node.stop().await;
}
