//! Getting the lock through native doors: `kunci_client` acquires, renews and releases.
//!
//! Owns: the connection, and what a refusal reads like. Never: renews by itself, or starts the command.

use super::keeper::Settings;
use super::lock::Lock;
use super::{NotTaken, signalled_with_the_grant, wanted};
use crate::acquire::{SAID_AFTER, Wait, Wanted};
use crate::args::ExecArgs;
use crate::door::{Native, answer_to_error};
use crate::exit::{Exit, Failure};
use crate::lease::RELEASE_MAX;
use crate::output::Output;
use crate::patience::{CHECK, Patience};
use crate::signals::Signals;
use kunci_client::{BootClock, Client, Clock as _, Error, ErrorKind, HeldLock};
use kunci_types::Owner;
use tokio::time::sleep;

/// Gets the lock, or leaves nothing behind.
pub(super) async fn take(
    args: &ExecArgs,
    doors: &Native,
    settings: Settings,
    signals: &mut Signals,
    output: &Output,
) -> Result<Lock, NotTaken> {
    let wanted = wanted(args);
    check(&wanted).map_err(|text| NotTaken::Refused(Failure::usage(text)))?;
    let client = tokio::select! {
        biased;
        signal = signals.next_ending() => return Err(NotTaken::Interrupted(signal)),
        client = connected(doors, &wanted, output) => client.map_err(NotTaken::Refused)?,
    };
    let acquired = tokio::select! {
        biased;
        signal = signals.next_ending() => Err(NotTaken::Interrupted(signal)),
        acquired = acquire(&client, &wanted, settings, output) => {
            acquired.map_err(|error| NotTaken::Refused(failure(&error)))
        }
    };
    let mut lock = match acquired {
        Ok(lock) => Lock::native(client, lock),
        Err(not_taken) => {
            // What was given up is cancelled on the server, and a grant that came first is released.
            client.close().await;
            return Err(not_taken);
        }
    };
    if let Some(signal) = signalled_with_the_grant(signals).await {
        lock.give_back(RELEASE_MAX, output).await;
        return Err(NotTaken::Interrupted(signal));
    }
    if BootClock.now() >= settings.terminate_at(lock.facts().deadline) {
        lock.give_back(RELEASE_MAX, output).await;
        let text = format!("the lock on {} was nearly over when it was got", args.resource);
        return Err(NotTaken::Lost(Failure::new(
            Exit::Unavailable,
            format!("{text}; the command was not started"),
        )));
    }
    Ok(lock)
}

/// Refuses names that no server would take, in the words of a server.
fn check(wanted: &Wanted) -> Result<(), String> {
    kunci_api::resource(&wanted.resource).map_err(|invalid| invalid.to_string())?;
    Owner::parse(&wanted.owner).map(|_| ()).map_err(|invalid| format!("clientId: {invalid}"))
}

async fn connected(doors: &Native, wanted: &Wanted, output: &Output) -> Result<Client, Failure> {
    let mut patience = Patience::new(wanted.patience);
    loop {
        match doors.connect(wanted.patience).await {
            Ok(client) => return Ok(client),
            Err(error) => {
                patience.judge(Err(error), output).await?;
            }
        }
    }
}

/// Waits for the lock as long as was asked; a wait that takes a while is talked about.
async fn acquire(
    client: &Client,
    wanted: &Wanted,
    settings: Settings,
    output: &Output,
) -> Result<HeldLock, Error> {
    let request = client.lock(&wanted.resource).ttl(settings.ttl()).owner(&wanted.owner);
    let request = request.lock_delay(wanted.lock_delay.unwrap_or_default());
    let mut acquiring = std::pin::pin!(async {
        match wanted.wait {
            Wait::Try => request.try_acquire().await,
            Wait::UpTo(wait) => request.wait(wait).acquire().await,
            Wait::NoLimit => request.acquire().await,
        }
    });
    tokio::select! {
        biased;
        acquired = &mut acquiring => return acquired,
        () = sleep(SAID_AFTER) => output.say(&format!("waiting for {}", wanted.resource)),
    }
    acquiring.await
}

fn failure(error: &Error) -> Failure {
    match error.kind() {
        ErrorKind::Unreachable | ErrorKind::Closed | ErrorKind::NoRandomness => {
            Failure::new(Exit::Unavailable, format!("{error}; {CHECK}"))
        }
        _ => Failure::refusal(&answer_to_error(error)),
    }
}
