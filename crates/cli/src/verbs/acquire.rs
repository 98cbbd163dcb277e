//! `kunci acquire`.

use crate::acquire::{Acquiring, Wanted};
use crate::answer::{shown, shown_ms};
use crate::args::AcquireArgs;
use crate::door::Door;
use crate::exit::{Exit, Failure};
use crate::identity::default_owner;
use crate::output::{Output, card};
use crate::signals::Signals;

/// Gets the lock, and leaves nothing behind when interrupted.
pub(crate) async fn run(args: &AcquireArgs, door: &Door, output: &Output) -> Result<Exit, Failure> {
    let wanted = Wanted {
        resource: args.resource.clone(),
        owner: args.asking.owner.clone().unwrap_or_else(default_owner),
        request_id: args.request_id.clone(),
        ttl: args.ttl,
        wait: args.waiting.wait(),
        lock_delay: args.asking.lock_delay,
        metadata: args.asking.metadata.clone(),
        patience: args.asking.patience,
    };
    let mut signals = Signals::catch_ending().map_err(|error| {
        Failure::new(Exit::Unavailable, format!("catch signals: {error}; nothing was asked"))
    })?;
    let mut acquiring = Acquiring::new(door, output, &wanted);
    let acquired = tokio::select! {
        biased;
        signal = signals.next_ending() => Err(signal),
        acquired = acquiring.run() => Ok(acquired),
    };
    match acquired {
        Ok(Ok(grant)) => {
            let title = format!("{} is yours", args.resource);
            output.answer(&grant.body, |body| {
                card(
                    &title,
                    &[
                        ("lease", shown(body, "leaseId")),
                        ("token", shown(body, "fencingToken")),
                        ("ends in", shown_ms(body, "remainingMs")),
                        ("ends at", shown(body, "expiresAt")),
                        ("request", shown(body, "requestId")),
                    ],
                )
            })?;
            Ok(Exit::Done)
        }
        Ok(Err(failure)) if failure.exit == Exit::Unknown => Err(acquiring.name_request(failure)),
        Ok(Err(failure)) => Err(failure),
        Err(signal) => {
            if let Err(why) = acquiring.take_back().await {
                output.say(&format!("cancel the wait: {why}; the server drops it by itself"));
            }
            Ok(Exit::Signal(signal.as_raw()))
        }
    }
}
