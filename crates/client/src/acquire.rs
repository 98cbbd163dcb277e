//! One acquire, from the first try to a lock that can be handed out.
//!
//! Owns: request ids, repeating until the outcome is known, and the sharp deadline after a wait. Never: leaves a
//! request behind: one that nobody waits for any more is taken back.

use crate::client::Core;
use crate::clock::Moment;
use crate::decide;
use crate::error::{Certainty, Error};
use crate::held::HeldLock;
use crate::keeper::{Lease, Order, Orders, Request};
use crate::random;
use crate::renew;
use crate::renewer::{Failure, Granted, Renewal};
use crate::state::Ending;
use crate::timing::Timing;
use crate::wire::PAUSE;
use kunci_api::native::{self, Outcome, WaitFor};
use kunci_api::parse_lease_id;
use kunci_process::sleep;
use kunci_types::{FencingToken, LockDelay, Owner, ResourceName, Ttl};
use std::time::Duration;

/// What to do when the resource isn't free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Be refused.
    Try,
    /// Queue for this long.
    UpTo(Duration),
    /// Queue for as long as it takes.
    NoLimit,
}

impl Wait {
    /// What is left of it after `waited`; `None` when it is over.
    pub(crate) fn after(self, waited: Duration) -> Option<Self> {
        let Self::UpTo(all) = self else { return Some(self) };
        let left = all.saturating_sub(waited);
        (left >= Duration::from_millis(1)).then_some(Self::UpTo(left))
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) resource: ResourceName,
    pub(crate) owner: Owner,
    pub(crate) timing: Timing,
    pub(crate) wait: Wait,
    pub(crate) lock_delay: Duration,
}

/// How one request id ended.
enum Decision {
    Granted(native::Grant, Moment),
    /// The server has closed it: nothing to take back.
    Over(Error),
}

/// A request that the server may know. Dropped before it is closed, it is cancelled in the background.
struct Open<'a> {
    orders: &'a Orders,
    request: Option<Request>,
}

impl Open<'_> {
    fn close(mut self) {
        self.request = None;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            // Without a keeper nobody is left to cancel; the connection goes too, and the waiter with it.
            let _ = self.orders.send(Order::TakeBack(request));
        }
    }
}

/// Acquires a lock, or says why not. Dropped: the request is cancelled, and a grant that came first released.
pub(crate) async fn acquire(core: &Core, wanted: &Wanted) -> Result<HeldLock, Error> {
    let _under_way = core.acquiring.token();
    // What is dropped here is cancelled, as if the caller had dropped it.
    let acquired = core.closed.run_until_cancelled(repeat(core, wanted)).await;
    acquired.unwrap_or_else(|| Err(Error::closed(Certainty::Unknown)))
}

/// Asks under one request id after another, until there is a lock or nothing to wait for any more.
async fn repeat(core: &Core, wanted: &Wanted) -> Result<HeldLock, Error> {
    let began_at = core.clock.now();
    let mut asked_at = began_at;
    loop {
        let wait = wanted.wait.after(asked_at.since(began_at)).ok_or_else(Error::timed_out)?;
        let request = Request {
            resource: wanted.resource.clone(),
            owner: wanted.owner.clone(),
            request_id: random::request_id(&*core.randomness)?,
        };
        let open = Open { orders: &core.orders, request: Some(request.clone()) };
        let refused = match decide(core, wanted, &request, wait).await {
            Ok(Decision::Granted(grant, sent_at)) => match hand_out(core, wanted, &grant, sent_at).await? {
                Ok(lock) => {
                    open.close();
                    return Ok(lock);
                }
                Err(ending) => Error::lease_ended(ending),
            },
            Ok(Decision::Over(error)) => error,
            Err(error) => {
                if error.certainty() == Certainty::NotApplied {
                    open.close();
                }
                return Err(error);
            }
        };
        open.close();
        if !may_begin_anew(wanted.wait, &refused) {
            return Err(refused);
        }
        if core.clock.now().since(asked_at) < PAUSE {
            sleep(PAUSE).await;
        }
        asked_at = core.clock.now();
    }
}

/// Whether a refusal ends only its request id, and not the wait as a whole.
fn may_begin_anew(wait: Wait, refused: &Error) -> bool {
    use crate::error::ErrorKind::{LeaseEnded, TimedOut};
    match (wait, refused.kind()) {
        // The policy's longest wait is over.
        (Wait::NoLimit, TimedOut) => true,
        // Granted while nobody could hear it, and over since.
        (Wait::NoLimit | Wait::UpTo(_), LeaseEnded(_)) => true,
        _ => false,
    }
}

/// Repeats one request id until a server has decided it.
async fn decide(core: &Core, wanted: &Wanted, request: &Request, wait: Wait) -> Result<Decision, Error> {
    let (outcome, sent_at) = decide::decided(core, &ask(wanted, request, wait)).await?;
    decision(outcome, sent_at)
}

fn ask(wanted: &Wanted, request: &Request, wait: Wait) -> native::Request {
    native::Request::Acquire(native::Acquire {
        key: request.resource.clone(),
        ttl: Ttl::from_ms(as_ms(wanted.timing.ttl)),
        wait: match wait {
            Wait::Try => WaitFor::Once,
            Wait::UpTo(wait) => WaitFor::UpToMs(as_ms(wait).max(1)),
            Wait::NoLimit => WaitFor::AsLongAsAllowed,
        },
        request_id: Some(request.request_id.clone()),
        owner: Some(request.owner.clone()),
        lock_delay: LockDelay::from_ms(as_ms(wanted.lock_delay)),
    })
}

fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn decision(outcome: Outcome, sent_at: Moment) -> Result<Decision, Error> {
    Ok(match outcome {
        Outcome::Granted(grant) => Decision::Granted(grant, sent_at),
        Outcome::TimedOut { .. } => Decision::Over(Error::timed_out()),
        Outcome::Cancelled { .. } => Decision::Over(Error::cancelled()),
        Outcome::Held(held) => Decision::Over(Error::held(held)),
        Outcome::Error(refused) => match renew::ended(&refused) {
            Some(ending) => Decision::Over(Error::lease_ended(ending)),
            None => Decision::Over(Error::refused(&refused)),
        },
        _ => return Err(Error::astray()),
    })
}

/// Makes a grant a lock that the caller can count on, or says how the lease ended before that.
async fn hand_out(
    core: &Core,
    wanted: &Wanted,
    grant: &native::Grant,
    sent_at: Moment,
) -> Result<Result<HeldLock, Ending>, Error> {
    let lease_id = parse_lease_id(&grant.lease).map_err(|_| Error::astray())?;
    let token = FencingToken::presented(grant.token).map_err(|_| Error::astray())?;
    let lease = Lease { resource: wanted.resource.clone(), lease_id };
    let timing = wanted.timing;
    let (mut sent_at, mut remaining, mut is_final) = (sent_at, Duration::from_millis(grant.ttl_ms), false);
    let answered_at = core.clock.now();
    // Nobody knows when within the call the lease began: after a wait that could be nearly all of it. And of a grant that is
    // told again little may be left. A renewal makes it sharp and whole.
    if answered_at.since(sent_at) > timing.margin() || remaining < timing.ttl / 2 {
        match sharpen(core, &lease, timing, answered_at).await? {
            Ok(renewed) => (sent_at, remaining, is_final) = renewed,
            Err(ending) => return Ok(Err(ending)),
        }
    }
    let granted = Granted { timing, sent_at, remaining, is_final, jitter: random::jitter(&*core.randomness) };
    HeldLock::keep(core, lease, token, granted).map(Ok)
}

/// Renews at once; tries again for as long as patience and the lease may last.
async fn sharpen(
    core: &Core,
    lease: &Lease,
    timing: Timing,
    answered_at: Moment,
) -> Result<Result<(Moment, Duration, bool), Ending>, Error> {
    let mut failed: u32 = 0;
    loop {
        match renew::try_once(&core.links, lease, timing.answer_within).await {
            Renewal::Renewed { sent_at, remaining, is_final } => {
                return Ok(Ok((sent_at, remaining, is_final)));
            }
            Renewal::Ended(ending) => return Ok(Err(ending)),
            Renewal::Failed(_) if core.clock.now().since(answered_at) >= timing.ttl.min(core.patience) => {
                return Err(Error::lost_touch());
            }
            Renewal::Failed(Failure::Refused { .. }) => sleep(timing.retry_after()).await,
            Renewal::Failed(Failure::NoAnswer { connections }) => {
                failed = failed.saturating_add(1);
                if failed.is_multiple_of(connections.max(1)) {
                    sleep(timing.retry_after()).await;
                }
            }
        }
    }
}
