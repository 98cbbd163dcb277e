//! A job that cron starts on every machine of a fleet at the same minute, and that only one of them does.
//!
//! `cargo run -p kunci-client --example fleet-job -- LEDGER PERIOD`, with the cluster's addresses in `KUNCI_ENDPOINTS`.
//! Run `bash examples/fleet-job.sh` to see five machines do it at once, and one of them die in the middle.
//!
//! Owns: the lock, and the record of what is done. Never: waits for the lock: whoever comes second has nothing to do.
#![expect(
    clippy::disallowed_methods,
    reason = "the ban is for the client itself: a program has tokio's clock"
)]
#![expect(clippy::print_stdout, reason = "it talks to whoever tries it out")]

use kunci_client::{Client, ErrorKind, HeldLock};
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::time::Duration;

const PAGES: u32 = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(ledger), Some(period)) = (arguments.next(), arguments.next()) else {
        return Err("expected a file and a period, such as `report.txt 2026-11-29`".into());
    };
    let endpoints = std::env::var("KUNCI_ENDPOINTS").unwrap_or_else(|_| "127.0.0.1:7401".to_owned());
    let client = Client::connect(endpoints.split(',')).await?;

    // The TTL is how long the others have to wait when this machine dies; it says nothing about how long the job takes,
    // since the client renews the lease for as long as `lock` lives.
    let request = client.lock("jobs/nightly-report").ttl(Duration::from_secs(5));
    let lock = match request.try_acquire().await {
        Ok(lock) => lock,
        Err(error) => {
            return match error.kind() {
                ErrorKind::Held { holder, .. } => {
                    println!("{holder} does it");
                    Ok(())
                }
                // Nobody may be doing it: that is for cron to report.
                _ => Err(error.into()),
            };
        }
    };

    // The lock keeps two from doing it at once, not from doing it one after the other: a machine whose clock is a minute
    // late comes when the lock is free again. What is done is written down where the job's own data is.
    if is_done(&ledger, &period) {
        println!("{period} is done already");
    } else {
        println!("does {period} under fencing token {}", lock.token());
        report(&lock, &ledger, &period).await?;
    }
    lock.release().await?;
    // Lets the client finish what it does in the background.
    client.close().await;
    Ok(())
}

/// The work, page by page. Before each page it asks whether it may still go on.
async fn report(lock: &HeldLock, ledger: &str, period: &str) -> Result<(), Box<dyn Error>> {
    for page in 1..=PAGES {
        lock.check()?;
        write(ledger, &format!("{period} {} page-{page}", lock.token()))?;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    lock.check()?;
    Ok(write(ledger, &format!("{period} {} done", lock.token()))?)
}

fn is_done(ledger: &str, period: &str) -> bool {
    let text = fs::read_to_string(ledger).unwrap_or_default();
    text.lines().any(|line| line.starts_with(&format!("{period} ")) && line.ends_with(" done"))
}

fn write(ledger: &str, line: &str) -> std::io::Result<()> {
    let mut file = fs::File::options().create(true).append(true).open(ledger)?;
    // One write: lines of two processes don't mix.
    file.write_all(format!("{line}\n").as_bytes())
}
