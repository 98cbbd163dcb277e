//! `kunci exec`: a command that runs only while a lock is held.
//!
//! Owns: the order acquire, start, supervise, release, and the exit code. Never: lets the command run without the
//! lock, or releases the lock while a process of the command's group lives.

mod group;
mod help;
mod keeper;
mod lookup;
mod supervise;
mod terminal;

use crate::acquire::{Acquiring, Grant, Wanted};
use crate::args::ExecArgs;
use crate::client::Client;
use crate::clock::Moment;
use crate::exit::{Exit, Failure};
use crate::identity::default_owner;
use crate::lease::{Lease, RELEASE_MAX, Renewal};
use crate::output::Output;
use crate::signals::Signals;
use group::{Ended, Foreground, Group};
pub(crate) use help::{CODES, LONG_HELP};
use keeper::{Keeper, Settings, Why};
use lookup::{Found, look_up};
use rustix::process::Signal;
use std::io;
use std::time::Duration;
use supervise::{Gone, Outcome, Supervisor};
use terminal::Terminal;
use tokio::time::sleep;

/// A grant whose call took longer may have waited in the queue, and its lease may be half over.
const SHARP: Duration = Duration::from_millis(50);
/// After a loss one release is tried for this long: nobody is to wait longer than needed, nor are we.
const RELEASE_AFTER_LOSS: Duration = Duration::from_secs(1);

/// Runs the command under the lock.
pub(crate) async fn run(args: &ExecArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let settings = Settings::new(args.ttl, args.grace).map_err(|error| Failure::usage(error.to_string()))?;
    is_there(args)?;
    let mut signals = Signals::catch_all().map_err(|error| {
        Failure::new(Exit::Unavailable, format!("catch signals: {error}; nothing was started"))
    })?;
    let wanted = wanted(args);
    let grant = match acquire(args, client, &wanted, &mut signals, output).await? {
        Ok(grant) => grant,
        Err(exit) => return Ok(exit),
    };
    let keeper = match sharpen(&grant, settings, &mut signals).await {
        Ok(keeper) => keeper,
        Err(not_started) => {
            give_back(&grant.lease, RELEASE_MAX, output).await;
            return match not_started {
                NotStarted::Interrupted(signal) => Ok(Exit::Signal(signal.as_raw())),
                NotStarted::Ended(text) => Err(Failure::new(
                    Exit::Busy,
                    format!("the lock on {} was lost before the command was started: {text}", args.resource),
                )),
                NotStarted::Unreachable(text) => Err(Failure::new(
                    Exit::Unavailable,
                    format!(
                        "the lock on {} couldn't be kept: {text}; the command was not started",
                        args.resource
                    ),
                )),
            };
        }
    };
    let terminal = Terminal::take_charge();
    let foreground = if terminal.is_some() { Foreground::Take } else { Foreground::Leave };
    let started = Group::start(&args.command, &variables(client, &wanted, &grant), foreground);
    let group = match started {
        Ok(group) => group,
        Err(error) => {
            give_back(&grant.lease, RELEASE_MAX, output).await;
            return Err(cannot_start(args, &error));
        }
    };
    let supervisor = Supervisor { group, keeper, settings, lease: &grant.lease, terminal, signals, output };
    let outcome = supervisor.run().await.map_err(|error| {
        Failure::new(
            Exit::Lost,
            format!("set a timer: {error}; the command was started and isn't watched over"),
        )
    })?;
    Ok(conclude(outcome, &grant.lease, output).await)
}

/// Refuses what a shell would refuse, before anything is asked of the server.
fn is_there(args: &ExecArgs) -> Result<(), Failure> {
    let Some(command) = args.command.first() else { return Err(Failure::usage("name a command after --")) };
    match look_up(command, std::env::var_os("PATH").as_deref()) {
        Found::Executable => Ok(()),
        Found::NotExecutable => Err(Failure::new(
            Exit::NotExecutable,
            format!("{} can't be executed; the lock wasn't asked for", command.display()),
        )),
        Found::Nothing => Err(Failure::new(
            Exit::NotFound,
            format!("{} isn't there; the lock wasn't asked for", command.display()),
        )),
    }
}

fn cannot_start(args: &ExecArgs, error: &io::Error) -> Failure {
    let command = args.command.first().map(|command| command.display().to_string()).unwrap_or_default();
    let exit = if error.kind() == io::ErrorKind::NotFound { Exit::NotFound } else { Exit::NotExecutable };
    Failure::new(exit, format!("start {command}: {error}; the lock was given back"))
}

fn wanted(args: &ExecArgs) -> Wanted {
    Wanted {
        resource: args.resource.clone(),
        owner: args.asking.owner.clone().unwrap_or_else(default_owner),
        request_id: None,
        ttl: Some(args.ttl),
        wait: args.waiting.wait(),
        lock_delay: args.asking.lock_delay,
        metadata: args.asking.metadata.clone(),
        patience: args.asking.patience,
    }
}

/// Gets the lock, or says with which code to end.
async fn acquire(
    args: &ExecArgs,
    client: &Client,
    wanted: &Wanted,
    signals: &mut Signals,
    output: &Output,
) -> Result<Result<Grant, Exit>, Failure> {
    let mut acquiring = Acquiring::new(client, output, wanted);
    let acquired = tokio::select! {
        biased;
        signal = signals.next_ending() => Err(signal),
        acquired = acquiring.run() => Ok(acquired),
    };
    let failure = match acquired {
        Ok(Ok(grant)) => return Ok(Ok(grant)),
        Ok(Err(failure)) => failure,
        Err(signal) => {
            take_back(&acquiring, output).await;
            return Ok(Err(Exit::Signal(signal.as_raw())));
        }
    };
    if failure.exit == Exit::Unknown {
        take_back(&acquiring, output).await;
    }
    let exit = not_acquired(&failure);
    if exit == Exit::Busy && args.skip_ok {
        output.say(&format!("{}: {failure}; the command was skipped", args.resource));
        return Ok(Err(Exit::Done));
    }
    let text = format!("{}: {failure}; the command was not started", args.resource);
    Err(Failure { exit, text, ..failure })
}

async fn take_back(acquiring: &Acquiring<'_>, output: &Output) {
    if let Err(why) = acquiring.take_back().await {
        output.say(&format!("cancel the wait: {why}; the server drops it by itself"));
    }
}

/// The code for a lock that wasn't got.
fn not_acquired(failure: &Failure) -> Exit {
    match failure.exit {
        Exit::Refused => match crate::answer::text(&failure.body, "code") {
            Some("held" | "timed_out" | "lock_delay" | "cancelled" | "lease_ended") => Exit::Busy,
            _ => Exit::NotAllowed,
        },
        Exit::Unknown => Exit::Unavailable,
        other => other,
    }
}

/// Why the command isn't started although there was a grant.
enum NotStarted {
    Interrupted(Signal),
    Ended(String),
    Unreachable(String),
}

/// Learns how long the lease lasts, counted from a moment just passed, and checks that nobody wants to stop.
async fn sharpen(grant: &Grant, settings: Settings, signals: &mut Signals) -> Result<Keeper, NotStarted> {
    let keeper = Keeper::new(settings, &grant.lease.lease_id, grant.sent_at, grant.remaining);
    let is_sharp = grant.answered_at.since(grant.sent_at) <= SHARP
        && grant.remaining + SHARP >= settings.ttl()
        && Moment::now() < keeper.terminate_at();
    let sharp = async { if is_sharp { Ok(keeper) } else { renewed(grant, settings, keeper).await } };
    let keeper = tokio::select! {
        biased;
        signal = signals.next_ending() => return Err(NotStarted::Interrupted(signal)),
        sharp = sharp => sharp?,
    };
    // A signal that came together with the grant is seen after one turn of the runtime.
    sleep(Duration::from_millis(1)).await;
    match signals.ending_by_now() {
        Some(signal) => Err(NotStarted::Interrupted(signal)),
        None => Ok(keeper),
    }
}

/// Renews once, trying for as long as the lease can last at most.
async fn renewed(grant: &Grant, settings: Settings, mut keeper: Keeper) -> Result<Keeper, NotStarted> {
    let give_up_at = grant.answered_at.plus(settings.ttl());
    loop {
        let renewal = grant.lease.renew(settings.answer_within()).await;
        let now = Moment::now();
        match &renewal {
            Renewal::Ended(text) => return Err(NotStarted::Ended(text.clone())),
            Renewal::Failed(text) if now >= give_up_at => return Err(NotStarted::Unreachable(text.clone())),
            Renewal::Failed(_) => sleep(Duration::from_millis(100)).await,
            Renewal::Renewed { .. } => {
                keeper.told(renewal, now);
                if now < keeper.terminate_at() {
                    return Ok(keeper);
                }
                if now >= give_up_at {
                    return Err(NotStarted::Unreachable("each renewal took too long".to_owned()));
                }
            }
        }
    }
}

fn variables(client: &Client, wanted: &Wanted, grant: &Grant) -> [(&'static str, String); 5] {
    [
        ("KUNCI_FENCING_TOKEN", grant.token.to_string()),
        ("KUNCI_LEASE_ID", grant.lease.lease_id.clone()),
        ("KUNCI_RESOURCE", wanted.resource.clone()),
        ("KUNCI_OWNER", wanted.owner.clone()),
        ("KUNCI_URL", client.url().to_owned()),
    ]
}

/// Releases the lock once the group is gone, and turns its end into an exit code.
async fn conclude(outcome: Outcome, lease: &Lease, output: &Output) -> Exit {
    match (&outcome.lost, outcome.gone) {
        (_, Gone::NotAll) => output.say(&format!(
            "a process of the command outlived KILL, so the lock on {} isn't given back; its lease ends by itself",
            lease.resource
        )),
        // Released, expired or forced: there is nothing to give back.
        (Some(Why::Ended(_)), Gone::All) => {}
        (Some(_), Gone::All) => give_back(lease, RELEASE_AFTER_LOSS, output).await,
        (None, Gone::All) => give_back(lease, RELEASE_MAX, output).await,
    }
    match (outcome.lost, outcome.ended) {
        (Some(_), _) | (None, None) => Exit::Lost,
        (None, Some(Ended::Code(code))) => Exit::Child(code),
        (None, Some(Ended::Signal(number))) => Exit::Signal(number),
    }
}

async fn give_back(lease: &Lease, at_most: Duration, output: &Output) {
    if let Err(why) = lease.release(at_most).await {
        output.say(&format!("release {}: {why}; its lease ends by itself", lease.resource));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> Failure {
        let mut failure = Failure::new(Exit::Refused, "no");
        failure.body["code"] = code.into();
        failure
    }

    /// C73, C90: each way of not getting the lock has a code that the command can hardly have.
    #[test]
    fn a_busy_lock_is_told_from_no_quorum_and_from_other_refusals() {
        for code in ["held", "timed_out", "lock_delay", "cancelled"] {
            assert_eq!(not_acquired(&refused(code)), Exit::Busy, "{code}");
        }
        assert_eq!(not_acquired(&refused("over_limit")), Exit::NotAllowed);
        assert_eq!(not_acquired(&Failure::new(Exit::Unknown, "?")), Exit::Unavailable);
        assert_eq!(not_acquired(&Failure::new(Exit::Unavailable, "?")), Exit::Unavailable);
        assert_eq!(not_acquired(&Failure::usage("?")), Exit::Usage);
    }
}
