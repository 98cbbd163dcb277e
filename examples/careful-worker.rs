//! A worker that starts nothing new while its lock is in doubt, and stops in the middle of its work when it is lost.
//!
//! `cargo run -p kunci-client --example careful-worker -- NAME LEDGER`, with the cluster's addresses in `KUNCI_ENDPOINTS`.
//! Run `bash examples/careful-worker.sh` to see one that was frozen for longer than its lease, and one whose servers fall
//! silent. Exit code 3 when the lock was lost.
//!
//! Owns: what the three states of a lock mean for work. Never: goes on after a loss, whatever the work thinks of that.
#![expect(
    clippy::disallowed_methods,
    reason = "the ban is for the client itself: a program has tokio's clock"
)]
#![expect(clippy::print_stdout, reason = "it talks to whoever tries it out")]

use kunci_client::{Client, HeldLock, InDoubt, Loss, State};
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(ledger)) = (arguments.next(), arguments.next()) else {
        return Err("expected a name for this worker and a file, such as `one ledger.txt`".into());
    };
    let endpoints = std::env::var("KUNCI_ENDPOINTS").unwrap_or_else(|_| "127.0.0.1:7401".to_owned());
    let client = Client::builder().owner(&name).connect(endpoints.split(',')).await?;

    let lock = client.lock("orders/42").ttl(Duration::from_secs(3)).acquire().await?;
    println!("{name} works under token {}", lock.token());
    let loss = work(&lock, &name, &ledger).await?;
    println!("{name} stops: {loss}");
    Ok(ExitCode::from(3))
}

/// One step after another, until the lock is lost.
async fn work(lock: &HeldLock, name: &str, ledger: &str) -> std::io::Result<Loss> {
    for number in 1_u64.. {
        // Read from a clock that goes on while this process or its machine stands still: whoever wakes up after an hour
        // learns it here, before the next step.
        match lock.check() {
            Ok(()) => {}
            Err(InDoubt::Uncertain { remaining }) => {
                println!("{name} starts nothing new: no renewal gets through, {remaining:?} left");
                no_longer_in_doubt(lock).await;
                continue;
            }
            Err(InDoubt::Lost(loss)) => return Ok(loss),
        }
        // A step that takes long is left in the middle when the lock is lost meanwhile. It is pushed: nobody has to
        // ask, and no server has to answer.
        tokio::select! {
            biased;
            loss = lock.lost() => return Ok(loss),
            done = step(lock, name, ledger, number) => done?,
        }
    }
    Ok(lock.lost().await)
}

/// Returns when a renewal has been answered after all, or the lock is lost.
async fn no_longer_in_doubt(lock: &HeldLock) {
    let mut states = lock.states();
    while states.next().await == Some(State::Uncertain) {}
}

/// A step of the work. A process can be frozen between the look at the lock and the write: only the token, compared by
/// whatever is written to, closes that gap. A file compares nothing; see `docs/clients.md`.
async fn step(lock: &HeldLock, name: &str, ledger: &str, number: u64) -> std::io::Result<()> {
    let line = format!("{} {name} {number}\n", lock.token());
    fs::File::options().create(true).append(true).open(ledger)?.write_all(line.as_bytes())?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}
