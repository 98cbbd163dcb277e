//! `kunci exec`: a command that runs only while a lock is held.
//!
//! Owns: the order acquire, start, supervise, release, and the exit code. Never: lets the command run without the
//! lock, or releases the lock while a process of the command's group lives.

mod environment;
mod fence_postgres;
mod group;
mod help;
mod keeper;
mod lock;
mod lookup;
mod over_http;
mod over_native;
mod renewing;
mod supervise;
mod terminal;

use crate::acquire::Wanted;
use crate::args::ExecArgs;
use crate::door::Door;
use crate::exit::{Exit, Failure};
use crate::identity::default_owner;
use crate::lease::RELEASE_MAX;
use crate::output::Output;
use crate::signals::Signals;
use environment::Environment;
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

/// After a loss one release is tried for this long: nobody is to wait longer than needed, nor are we.
const RELEASE_AFTER_LOSS: Duration = Duration::from_secs(1);

/// Why there is no lock. Nothing is left behind on the server.
enum NotTaken {
    /// A signal asked to end.
    Interrupted(Signal),
    /// As the server says.
    Refused(Failure),
    /// It was granted, and is over already.
    Lost(Failure),
}

/// Runs the command under the lock.
pub(crate) async fn run(args: &ExecArgs, output: &Output) -> Result<Exit, Failure> {
    let settings = Settings::new(args.ttl, args.grace).map_err(|error| Failure::usage(error.to_string()))?;
    let doors = args.door.doors();
    let door = doors.door(args.asking.needs())?;
    is_there(args)?;
    let options = args.fence_postgres.then(fence_postgres::inherited).transpose()?;
    let mut signals = Signals::catch_all().map_err(|error| {
        Failure::new(Exit::Unavailable, format!("catch signals: {error}; nothing was started"))
    })?;
    let taken = match &door {
        Door::Http(_) => over_http::take(args, &door, settings, &mut signals, output).await,
        Door::Native(native) => over_native::take(args, native, settings, &mut signals, output).await,
    };
    let lock = match taken {
        Ok(lock) => lock,
        Err(NotTaken::Interrupted(signal)) => return Ok(Exit::Signal(signal.as_raw())),
        Err(NotTaken::Refused(failure)) => return refused(args, failure, output),
        Err(NotTaken::Lost(failure)) => return Err(failure),
    };
    let mut environment = Environment::new(&lock, &wanted(args).owner, &doors);
    if let Some(existing) = options {
        let options = fence_postgres::options(&existing, lock.resource(), lock.token());
        environment.set(fence_postgres::VARIABLE, options);
    }
    let terminal = Terminal::take_charge();
    let foreground = if terminal.is_some() { Foreground::Take } else { Foreground::Leave };
    let group = match Group::start(&args.command, &environment, foreground) {
        Ok(group) => group,
        Err(error) => {
            lock.give_back(RELEASE_MAX, output).await;
            return Err(cannot_start(args, &error));
        }
    };
    let keeper = Keeper::new(settings);
    let supervisor = Supervisor { group, keeper, settings, lock, terminal, signals, output };
    Ok(conclude(supervisor.run().await, output).await)
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

/// A signal that came together with the grant: it is seen after one turn of the runtime.
async fn signalled_with_the_grant(signals: &mut Signals) -> Option<Signal> {
    sleep(Duration::from_millis(1)).await;
    signals.ending_by_now()
}

/// How it ends without the lock.
fn refused(args: &ExecArgs, failure: Failure, output: &Output) -> Result<Exit, Failure> {
    let exit = not_acquired(&failure);
    if exit == Exit::Busy && args.skip_ok {
        output.say(&format!("{}: {failure}; the command was skipped", args.resource));
        return Ok(Exit::Done);
    }
    let text = format!("{}: {failure}; the command was not started", args.resource);
    Err(Failure { exit, text, ..failure })
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

/// Releases the lock once the group is gone, and turns its end into an exit code.
async fn conclude(outcome: Outcome, output: &Output) -> Exit {
    let Outcome { lock, ended, lost, gone } = outcome;
    match (&lost, gone) {
        (_, Gone::NotAll) => {
            output.say(&format!(
                "a process of the command outlived KILL, so the lock on {} isn't given back; its lease ends by itself",
                lock.resource()
            ));
            lock.leave();
        }
        // Released, expired or forced: there is nothing to give back.
        (Some(Why::Ended(_)), Gone::All) => {}
        (Some(_), Gone::All) => lock.give_back(RELEASE_AFTER_LOSS, output).await,
        (None, Gone::All) => lock.give_back(RELEASE_MAX, output).await,
    }
    match (lost, ended) {
        (Some(_), _) | (None, None) => Exit::Lost,
        (None, Some(Ended::Code(code))) => Exit::Child(code),
        (None, Some(Ended::Signal(number))) => Exit::Signal(number),
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
