//! More than the cluster can commit.

use super::asking::{Ask, acquire, client, keep};
use super::scene::Scene;
use crate::world::DiskFault;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};

/// Connections of the flood, and what each asks for at once: more together than wait for a log entry.
const CONNECTIONS: usize = 80;
const REQUESTS: usize = 2_000;
/// A sync of each follower takes so much longer: the cluster commits at most four entries of 2,048 commands meanwhile.
const SYNC: Duration = Duration::from_millis(150);
/// Holders, the TTL of their leases, and how often they renew them.
const HOLDERS: u64 = 20;
const TTL_MS: u64 = 10_000;
const RENEW_EVERY: Duration = Duration::from_millis(1_500);
const RENEWALS: u32 = 8;
/// A refusal costs nothing, so it comes at once; as far as a machine is at once on which everything else is busy.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);

/// C114 and its kind, beyond the bound of what waits: what comes on top is refused at once and with a time to come back
/// after, at both doors; nothing is lost on the way, and no holder loses its lease.
#[test]
fn a_flood_is_refused_at_the_doors_and_takes_nobodys_lease() {
    let mut scene = Scene::quiet("a_flood_is_refused_at_the_doors_and_takes_nobodys_lease", 3);
    let (leader, before) = (scene.world.leader(), scene.takeovers());
    let holders: Vec<_> = (0..HOLDERS)
        .map(|number| {
            let (doors, history) = (scene.world.doors(), scene.run.history.clone());
            scene.world.begin_inside(move || async move {
                let mut caller = client(number, &doors, &history);
                let resource = format!("held/{number}");
                let ask = Ask { resource: &resource, owner: "holder", ttl_ms: TTL_MS, wait_ms: 0 };
                let mine = acquire(&mut caller, ask).await;
                keep(&mut caller, &mine, RENEW_EVERY, RENEWALS).await;
            })
        })
        .collect();
    let slow = scene.world.others(leader);
    let slow: Vec<_> =
        slow.iter().map(|node| scene.world.node(*node).spoil_disk(DiskFault::Slow(SYNC))).collect();
    let (native, http) = (scene.world.node(leader).native(), scene.world.node(leader).http());
    let seen = scene.world.inside(move || flood(native, http));
    drop(slow);
    holders.into_iter().for_each(|holder| holder.join().unwrap());
    println!("{seen:?}");

    let count = |kind| seen.answers.get(kind).copied().unwrap_or_default();
    let refused = count("E code=overloaded applied=no retry_ms=1000");
    // One that isn't decided within two seconds is cancelled, which is decided as well.
    let decided = count("H") + count("T");
    assert!(refused > 0 && decided > 0, "{seen:?}");
    assert_eq!(refused + decided, CONNECTIONS * REQUESTS, "{seen:?}");
    let (took, head) = seen.over_http.as_ref().unwrap_or_else(|| panic!("HTTP refuses nothing: {seen:?}"));
    assert!(head.contains("\r\nretry-after: 1\r\n"), "{head}");
    assert!(*took < REFUSED_WITHIN, "refused after {took:?}");
    assert_eq!((scene.world.leader(), scene.takeovers()), (leader, before));
    scene.close();
}

/// What the flood was answered with.
#[derive(Debug, Default)]
struct Seen {
    /// How often, by kind; of a refusal with its code and what belongs to it.
    answers: BTreeMap<String, usize>,
    /// The first refusal over HTTP: after what time, and its head.
    over_http: Option<(Duration, String)>,
}

async fn flood(native: String, http: SocketAddr) -> Seen {
    let holder = ask_natively(&native, "A flood/one 60 try\n").await;
    assert_eq!(holder.keys().collect::<Vec<_>>(), ["A"], "{holder:?}");
    let mut asks = String::new();
    (0..REQUESTS).for_each(|number| writeln!(asks, "A flood/one 60 try #{number}").unwrap());
    let mut flood = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (native, asks) = (native.clone(), asks.clone());
        flood.spawn(async move { ask_natively(&native, &asks).await });
    }
    let mut over_http = JoinSet::new();
    over_http.spawn(refused_over_http(http));
    let mut seen = Seen::default();
    while let Some(answers) = flood.join_next().await {
        answers
            .unwrap()
            .into_iter()
            .for_each(|(kind, count)| *seen.answers.entry(kind).or_default() += count);
    }
    seen.over_http = over_http.try_join_next().map(Result::unwrap);
    seen
}

/// Says all lines at once, and counts the answers by what they are.
async fn ask_natively(door: &str, lines: &str) -> BTreeMap<String, usize> {
    let (read, mut write) = TcpStream::connect(door).await.unwrap().into_split();
    let asks = lines.to_owned();
    let asking = tokio::spawn(async move {
        write.write_all(asks.as_bytes()).await.unwrap();
        write
    });
    let mut answers = BTreeMap::new();
    let mut read = BufReader::new(read).lines();
    for _ in 0..lines.lines().count() {
        let line = timeout(Duration::from_secs(60), read.next_line()).await.expect("an answer in a minute");
        *answers.entry(kind_of(&line.unwrap().expect("the door closes"))).or_default() += 1;
    }
    drop(asking.await.unwrap());
    answers
}

/// The result; of a refusal also its code, whether it was applied, and when to come back.
fn kind_of(answer: &str) -> String {
    let told = ["code=", "applied=", "retry_ms="];
    let mut words = answer.split(' ');
    let result = words.next().unwrap_or_default().to_owned();
    words
        .filter(|word| told.iter().any(|name| word.starts_with(name)))
        .fold(result, |kind, word| kind + " " + word)
}

/// Tries over HTTP, every so often whatever became of the tries before, until one is refused for want of room.
async fn refused_over_http(door: SocketAddr) -> (Duration, String) {
    let mut tries = JoinSet::new();
    let mut next = interval(Duration::from_millis(50));
    loop {
        tokio::select! {
            _ = next.tick() => drop(tries.spawn(try_over_http(door))),
            Some(answered) = tries.join_next() => {
                let (took, answer) = answered.unwrap();
                if answer.starts_with("HTTP/1.1 503 ") && answer.contains("overloaded") {
                    return (took, answer);
                }
            }
        }
    }
}

async fn try_over_http(door: SocketAddr) -> (Duration, String) {
    let began = Instant::now();
    let mut stream = TcpStream::connect(door).await.unwrap();
    let body = r#"{"clientId":"flood","leaseDurationMs":60000,"waitTimeoutMs":0}"#;
    let ask = format!(
        "POST /locks/flood%2Fone/acquire HTTP/1.1\r\nhost: {door}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    (began.elapsed(), answer)
}
