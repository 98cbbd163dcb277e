//! Killed at any moment, with snapshots and purges running all the time, a replica keeps what it acknowledged.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod cluster_words;
mod replica_support;

use kunci_core::command::{Acquire, Command, Proof, Release};
use kunci_core::reply::{AcquireReply, ReleaseReply, Reply, Told};
use kunci_replica::{CallOutcome, Member, Replica, ReplicaConfig};
use kunci_types::{LeaseId, Metadata, ResourceName, Ttl};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

const KILLS: u64 = 12;
const DATA: &str = "KUNCI_TEST_KILL_DATA";
const FROM: &str = "KUNCI_TEST_KILL_FROM";

fn acquire(number: u64) -> Acquire {
    Acquire {
        ttl: Some(Ttl::from_ms(3_600_000)),
        metadata: Some(Metadata::parse(&"m".repeat(500)).unwrap()),
        ..cluster_words::acquire(number)
    }
}

async fn open(data: &Path) -> Replica {
    // A snapshot for every few entries, so that a kill falls into its making as often as not.
    let config =
        ReplicaConfig { snapshot_every_bytes: 8 << 10, ..ReplicaConfig::new(data, Member::default()) };
    let replica = replica_support::alone(config).await.unwrap();
    assert!(replica.serving(Duration::from_secs(10)).await, "the replica doesn't serve");
    replica
}

async fn token_of(replica: &Replica, number: u64) -> Result<(u64, Told), String> {
    let mut call = replica.acquire(acquire(number)).await.map_err(|refusal| refusal.to_string())?;
    let outcome = call.answer(Duration::from_secs(5)).await.map_err(|refusal| refusal.to_string())?;
    call.delivered();
    match outcome {
        CallOutcome::Final(answered) => match answered.value {
            AcquireReply::Granted(grant) => Ok((grant.token.get(), grant.told)),
            other => Err(format!("{other:?}")),
        },
        CallOutcome::StillQueued(_) => Err("queued".to_owned()),
    }
}

/// Not a test of its own: the process that the test below kills. Says each acknowledged grant in a line.
#[tokio::test]
#[ignore = "run by `nothing_acknowledged_is_lost_at_any_kill` in a process of its own"]
async fn process_to_kill() {
    let (Ok(data), Ok(from)) = (std::env::var(DATA), std::env::var(FROM)) else { return };
    let replica = open(Path::new(&data)).await;
    let mut out = std::io::stdout();
    for number in from.parse::<u64>().unwrap().. {
        let (token, _) = token_of(&replica, number).await.unwrap();
        writeln!(out, "granted {number} {token}").unwrap();
        if number % 3 == 0 {
            let resource = ResourceName::parse(&format!("r/{number}")).unwrap();
            let lease_id = LeaseId::from_bytes(u128::from(number + 1).to_be_bytes());
            let release = Command::Release(Release { resource, proof: Proof::LeaseId(lease_id) });
            let reply = replica.propose(release).await.unwrap().value;
            assert_eq!(reply, Reply::Release(ReleaseReply::Released(Told::First)));
            writeln!(out, "released {number} {token}").unwrap();
        }
        out.flush().unwrap();
    }
}

/// Lets a process work on the data for a while, kills it, and returns what it had acknowledged.
fn work_and_kill(data: &Path, from: u64, after: Duration) -> Vec<(String, u64, u64)> {
    let mut process = Process::new(std::env::current_exe().unwrap())
        .args(["--exact", "process_to_kill", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DATA, data)
        .env(FROM, from.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let reader = std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .filter_map(|line| {
                let mut words = line.split(' ');
                let (what, number, token) = (words.next()?, words.next()?, words.next()?);
                Some((what.to_owned(), number.parse().ok()?, token.parse().ok()?))
            })
            .collect()
    });
    std::thread::sleep(after);
    process.kill().unwrap();
    process.wait().unwrap();
    reader.join().unwrap()
}

/// Defends S2, S4, S5, cases C103, C104, C106 and C110.
#[tokio::test]
async fn nothing_acknowledged_is_lost_at_any_kill() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut granted = BTreeMap::new();
    let mut released = BTreeMap::new();
    for round in 0..KILLS {
        let from = granted.keys().last().map_or(0, |last| last + 1_000);
        for (what, number, token) in work_and_kill(&data, from, Duration::from_millis(600 + 53 * round)) {
            let earlier = if what == "granted" { &mut granted } else { &mut released }.insert(number, token);
            assert_eq!(earlier, None, "{what} {number} twice");
        }
    }
    assert!(granted.len() > 200, "only {} grants in {KILLS} rounds", granted.len());
    let ordered: Vec<u64> = granted.values().copied().collect();
    assert!(ordered.is_sorted_by(|a, b| a < b), "a token went back: {ordered:?}");
    let snapshots = std::fs::read_dir(data.join("snapshots")).unwrap().count();
    assert!(snapshots > 0, "no snapshot was made: the test doesn't test them");

    let replica = open(&data).await;
    for (number, token) in &granted {
        match token_of(&replica, *number).await {
            Ok(again) => assert_eq!(again, (*token, Told::Again), "{number}"),
            Err(ended) => assert!(number % 3 == 0 && ended.contains("LeaseEnded"), "{number}: {ended}"),
        }
        if released.contains_key(number) {
            assert!(token_of(&replica, *number).await.is_err(), "{number} is held again after its release");
        }
    }
    replica.stop().await;
}
