//! Several processes, of which one leads. When it dies or is cut off, another one takes over.
//!
//! `cargo run -p kunci-client --example leader-election -- NAME LEDGER`, with the cluster's addresses in `KUNCI_ENDPOINTS`.
//! Run `bash examples/leader-election.sh` to see a leader killed, one that stops in good order, and a node that dies.
//!
//! Owns: being a candidate, leading, and standing down. Never: leads without the lock, not even to finish something.
#![expect(
    clippy::disallowed_methods,
    reason = "the ban is for the client itself: a program has tokio's clock"
)]
#![expect(clippy::print_stdout, reason = "it talks to whoever tries it out")]

use kunci_client::{Client, Error, HeldLock, Retry};
use std::fs;
use std::io::Write as _;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(ledger)) = (arguments.next(), arguments.next()) else {
        return Err("expected a name for this candidate and a file, such as `red ledger.txt`".into());
    };
    let endpoints = std::env::var("KUNCI_ENDPOINTS").unwrap_or_else(|_| "127.0.0.1:7401".to_owned());
    // The owner is what `kunci status election/scheduler` shows: who leads.
    let client = Client::builder().owner(&name).connect(endpoints.split(',')).await?;
    let mut terminated = signal(SignalKind::terminate())?;

    while let Some(lock) = win(&client, &mut terminated).await? {
        println!("{name} leads under token {}", lock.token());
        let told_to_stop = tokio::select! {
            // Pushed at the lock's own deadline, also when no server answers.
            loss = lock.lost() => { println!("{name} stands down: {loss}"); false }
            result = lead(&lock, &name, &ledger) => { result?; false }
            _ = terminated.recv() => true,
        };
        // By now the work has stopped, so the next one may begin; it needn't wait for the TTL.
        let released = lock.release().await;
        if told_to_stop {
            println!("{name} resigns");
            released?;
            break;
        }
        // The release of a lock that was lost has nothing to add. Candidate again.
    }
    client.close().await;
    Ok(())
}

/// Waits for as long as it takes to be the one who leads; `None` when told to stop.
async fn win(client: &Client, terminated: &mut Signal) -> Result<Option<HeldLock>, Error> {
    loop {
        // The TTL bounds how long nobody leads after a leader has died.
        let request = client.lock("election/scheduler").ttl(Duration::from_secs(3));
        let error = tokio::select! {
            acquired = request.acquire() => match acquired {
                Ok(lock) => return Ok(Some(lock)),
                Err(error) => error,
            },
            // The request that is dropped here leaves the queue on the server.
            _ = terminated.recv() => return Ok(None),
        };
        match error.retry() {
            Retry::Never => return Err(error),
            Retry::Anytime => sleep(Duration::from_millis(100)).await,
            Retry::After(pause) => sleep(pause).await,
        }
        println!("still a candidate: {error}");
    }
}

/// What only the leader does. Returns when new work shouldn't start.
async fn lead(lock: &HeldLock, name: &str, ledger: &str) -> std::io::Result<()> {
    while lock.check().is_ok() {
        // Whatever a leader changes should compare this token, and refuse a smaller one than it has seen.
        let line = format!("{} {name}\n", lock.token());
        fs::File::options().create(true).append(true).open(ledger)?.write_all(line.as_bytes())?;
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
