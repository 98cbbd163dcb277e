//! Moves money between two accounts, each of which is a file, under the locks of both.
//!
//! `cargo run -p kunci-client --example several-locks -- FOLDER FROM TO AMOUNT`, with the cluster's addresses in
//! `KUNCI_ENDPOINTS`. Run `bash examples/several-locks.sh` to see twelve of them go in circles without a deadlock.
//!
//! Owns: the two locks and the two files. Never: touches an account without both locks.
#![expect(
    clippy::disallowed_methods,
    reason = "the ban is for the client itself: a program has tokio's clock"
)]
#![expect(clippy::print_stdout, reason = "it talks to whoever tries it out")]

use kunci_client::Client;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, from, to, amount] = &arguments[..] else {
        return Err("expected a folder, two accounts and an amount, such as `. alice bob 10`".into());
    };
    let amount: i64 = amount.parse()?;
    if from == to {
        return Err("an account can't pay itself".into());
    }
    let endpoints = std::env::var("KUNCI_ENDPOINTS").unwrap_or_else(|_| "127.0.0.1:7401".to_owned());
    let client = Client::connect(endpoints.split(',')).await?;

    // In which order they are named doesn't matter: everybody takes them in the order of their names, so that two who go
    // opposite ways never each hold what the other waits for. The wait is for both together; when it is over, none is kept.
    let accounts = [from, to].map(|account| format!("accounts/{account}"));
    let ten_seconds = Duration::from_secs(10);
    let locks = client.locks(accounts).ttl(ten_seconds).wait(ten_seconds).acquire().await?;

    let folder = Path::new(folder);
    let (rich, poor) = (balance(folder, from)?, balance(folder, to)?);
    // Time for somebody else to read the same balances, if locks didn't keep them out.
    tokio::time::sleep(Duration::from_millis(20)).await;
    // Between the look and the writes nothing is awaited. What makes it sure is a token that the account itself compares.
    locks.check()?;
    fs::write(folder.join(from), (rich - amount).to_string())?;
    fs::write(folder.join(to), (poor + amount).to_string())?;

    for lock in locks.iter() {
        println!("{} under token {}", lock.resource(), lock.token());
    }
    locks.release().await?;
    client.close().await;
    Ok(())
}

fn balance(folder: &Path, account: &str) -> Result<i64, Box<dyn Error>> {
    Ok(fs::read_to_string(folder.join(account))?.trim().parse()?)
}
