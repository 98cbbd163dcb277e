//! Getting the lock over HTTP.
//!
//! Owns: the order acquire, take back, sharpen. Never: starts the command.

use super::keeper::Settings;
use super::lock::Lock;
use super::renewing::{Renewing, Schedule, answer_within};
use super::{NotTaken, signalled_with_the_grant, wanted};
use crate::acquire::{Acquiring, Grant};
use crate::args::ExecArgs;
use crate::door::Door;
use crate::exit::{Exit, Failure};
use crate::lease::{Lease, RELEASE_MAX, Renewal};
use crate::output::Output;
use crate::signals::Signals;
use kunci_client::{BootClock, Clock as _};
use rustix::process::Signal;
use std::time::Duration;
use tokio::time::sleep;

/// A grant whose call took longer may have waited in the queue, and its lease may be half over.
const SHARP: Duration = Duration::from_millis(50);

/// Gets the lock, or leaves nothing behind.
pub(super) async fn take(
    args: &ExecArgs,
    door: &Door,
    settings: Settings,
    signals: &mut Signals,
    output: &Output,
) -> Result<Lock, NotTaken> {
    let wanted = wanted(args);
    let mut acquiring = Acquiring::new(door, output, &wanted);
    let acquired = tokio::select! {
        biased;
        signal = signals.next_ending() => Err(signal),
        acquired = acquiring.run() => Ok(acquired),
    };
    let grant = match acquired {
        Ok(Ok(grant)) => grant,
        Ok(Err(failure)) => {
            if failure.exit == Exit::Unknown {
                take_back(&acquiring, output).await;
            }
            return Err(NotTaken::Refused(failure));
        }
        Err(signal) => {
            take_back(&acquiring, output).await;
            return Err(NotTaken::Interrupted(signal));
        }
    };
    match sharpen(&grant, settings, signals).await {
        Ok(schedule) => Ok(Lock::http(grant.token, Renewing::new(grant.lease, schedule))),
        Err(not_kept) => {
            give_back(&grant.lease, output).await;
            Err(not_kept.into_not_taken(&args.resource))
        }
    }
}

async fn take_back(acquiring: &Acquiring<'_>, output: &Output) {
    if let Err(why) = acquiring.take_back().await {
        output.say(&format!("cancel the wait: {why}; the server drops it by itself"));
    }
}

async fn give_back(lease: &Lease, output: &Output) {
    if let Err(why) = lease.release(RELEASE_MAX).await {
        output.say(&format!("release {}: {why}; its lease ends by itself", lease.resource));
    }
}

/// Why the command isn't started although there was a grant.
enum NotKept {
    Interrupted(Signal),
    Ended(String),
    Unreachable(String),
}

impl NotKept {
    fn into_not_taken(self, resource: &str) -> NotTaken {
        match self {
            Self::Interrupted(signal) => NotTaken::Interrupted(signal),
            Self::Ended(text) => NotTaken::Lost(Failure::new(
                Exit::Busy,
                format!("the lock on {resource} was lost before the command was started: {text}"),
            )),
            Self::Unreachable(text) => NotTaken::Lost(Failure::new(
                Exit::Unavailable,
                format!("the lock on {resource} couldn't be kept: {text}; the command was not started"),
            )),
        }
    }
}

/// Learns how long the lease lasts, counted from a moment just passed, and checks that nobody wants to stop.
async fn sharpen(grant: &Grant, settings: Settings, signals: &mut Signals) -> Result<Schedule, NotKept> {
    let schedule = Schedule::new(settings, &grant.lease.lease_id, grant.sent_at, grant.remaining);
    let is_sharp = grant.answered_at.since(grant.sent_at) <= SHARP
        && grant.remaining + SHARP >= settings.ttl()
        && BootClock.now() < schedule.terminate_at();
    let sharp = async { if is_sharp { Ok(schedule) } else { renewed(grant, settings, schedule).await } };
    let schedule = tokio::select! {
        biased;
        signal = signals.next_ending() => return Err(NotKept::Interrupted(signal)),
        sharp = sharp => sharp?,
    };
    match signalled_with_the_grant(signals).await {
        Some(signal) => Err(NotKept::Interrupted(signal)),
        None => Ok(schedule),
    }
}

/// Renews once, trying for as long as the lease can last at most.
async fn renewed(grant: &Grant, settings: Settings, mut schedule: Schedule) -> Result<Schedule, NotKept> {
    let give_up_at = grant.answered_at.plus(settings.ttl());
    loop {
        let renewal = grant.lease.renew(answer_within(settings.ttl())).await;
        let now = BootClock.now();
        match &renewal {
            Renewal::Ended(text) => return Err(NotKept::Ended(text.clone())),
            Renewal::Failed(text) if now >= give_up_at => return Err(NotKept::Unreachable(text.clone())),
            Renewal::Failed(_) => sleep(Duration::from_millis(100)).await,
            Renewal::Renewed { .. } => {
                schedule.told(renewal, now);
                if now < schedule.terminate_at() {
                    return Ok(schedule);
                }
                if now >= give_up_at {
                    return Err(NotKept::Unreachable("each renewal took too long".to_owned()));
                }
            }
        }
    }
}
