//! Requests of one resource, let through in the order of their tokens.
//!
//! Owns: who is on the way, and who waits for whom. Never: compares tokens (the gate does), or knows what a request is.
//!
//! A check alone isn't enough where requests take time: an older one that passed the check may still be on its way when a
//! newer one passes too, and land last. So a newer one waits until every older one has ended for certain, or until the
//! time is over in which what was lost sight of could still have an effect.

mod any_gate;
mod ways;

pub use any_gate::AnyGate;

use crate::gate::{AdmitError, Rejected};
use kunci_types::{FencingToken, ResourceName};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use ways::{Obstacle, Ways, raise};

/// When to try again while an older request is still on its way.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How many wait for one resource; more are refused at once, so that one that is stuck doesn't take all room.
const WAITING_MAX: usize = 128;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How long a newer request waits for older ones; then it is refused, and may come again.
    pub drain: Duration,
    /// How long a request can have an effect after it was lost sight of. What only the protected side can know: here it is
    /// believed.
    pub settle: Duration,
}

/// Why a request isn't let through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PassError {
    /// The gate doesn't admit its token.
    #[error(transparent)]
    Gate(#[from] AdmitError),
    /// An older one hasn't ended for certain. The token is kept: nothing older gets in any more.
    #[error(
        "a request for {resource} under the older fencing token {older} {state}: {found} waited {waited_ms} ms for it; \
         try again",
        state = if *.is_lost { "was lost sight of and may still have an effect" } else { "is still on its way" }
    )]
    Undrained {
        /// What both are for.
        resource: ResourceName,
        /// The token that waited.
        found: FencingToken,
        /// The smallest that it waited for.
        older: FencingToken,
        /// Whether that one was lost sight of; otherwise it is still on its way.
        is_lost: bool,
        /// How long it waited, in milliseconds.
        waited_ms: u64,
        /// When to try again, in milliseconds.
        retry_after_ms: u64,
    },
}

/// The way to one protected place, for all its resources. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Passages(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    gate: AnyGate,
    times: Times,
    /// What the process before this one had on the way isn't known, until then.
    doubtful_until: Option<Instant>,
    ways: Mutex<Ways>,
    rejected: AtomicU64,
}

impl Passages {
    /// The way to a place that this gate keeps.
    pub fn new(gate: impl Into<AnyGate>, times: Times) -> Self {
        Self::beginning(gate.into(), times, None)
    }

    /// As [`Passages::new`], after a process that may have left requests on the way: for the settle time a token that
    /// moves a resource up waits as if one of the token before had just been lost sight of.
    pub fn in_doubt(gate: impl Into<AnyGate>, times: Times) -> Self {
        Self::beginning(gate.into(), times, Some(Instant::now() + times.settle))
    }

    fn beginning(gate: AnyGate, times: Times, doubtful_until: Option<Instant>) -> Self {
        let (ways, rejected) = (Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Inner { gate, times, doubtful_until, ways, rejected }))
    }

    /// Waits until a request may go on. It is on the way until its [`Pass`] is settled or dropped.
    ///
    /// # Errors
    /// [`PassError`]. Nothing may be done then.
    pub async fn enter(&self, resource: &ResourceName, token: FencingToken) -> Result<Pass, PassError> {
        self.doubt(resource, token);
        if let Err(error) = self.0.gate.admit(resource, token).await {
            return Err(self.refused(error));
        }
        let begun = Instant::now();
        let deadline = begun + self.0.times.drain;
        loop {
            let (obstacle, _waiting, mut ended) = match self.step(resource, token)? {
                Step::Passed(pass) => return Ok(pass),
                Step::Wait { obstacle, waiting, ended } => (obstacle, waiting, ended),
            };
            let wake_at = obstacle.until.map_or(deadline, |until| until.min(deadline));
            tokio::select! {
                // The sender lives as long as somebody waits.
                _ = ended.changed() => {}
                () = sleep_until(wake_at) => {}
            }
            let now = Instant::now();
            if let Some(obstacle) = self.obstacle(resource, token).filter(|_| now >= deadline) {
                return Err(self.undrained(resource, token, obstacle, now - begun));
            }
        }
    }

    /// Lets a request through, or says what it has to wait for. One step, so that nothing comes between.
    fn step(&self, resource: &ResourceName, token: FencingToken) -> Result<Step, PassError> {
        let mut ways = self.ways();
        let ways = &mut *ways;
        // Looked at under the lock: whoever moves the resource up comes here afterwards, and finds this one on the way.
        if let Some(kept) = self.0.gate.kept_of(resource).filter(|kept| *kept > token) {
            let rejected = Rejected { resource: resource.clone(), found: token, kept };
            return Err(self.refused(rejected.into()));
        }
        let way = ways.by_resource.entry(resource.clone()).or_default();
        if let Some(obstacle) = way.obstacle(token) {
            if way.waiting >= WAITING_MAX {
                return Err(self.undrained(resource, token, obstacle, Duration::ZERO));
            }
            way.waiting += 1;
            if way.newest.send_if_modified(|newest| raise(newest, token)) {
                // Whoever waits under an older token is rejected now.
                way.ended.send_replace(());
            }
            let ended = way.ended.subscribe();
            ways.waiting += 1;
            let waiting = Waiting { passages: self.clone(), resource: resource.clone() };
            return Ok(Step::Wait { obstacle, waiting, ended });
        }
        *way.on_the_way.entry(token).or_default() += 1;
        let newest = way.newest.subscribe();
        ways.on_the_way += 1;
        Ok(Step::Passed(Pass {
            passages: self.clone(),
            resource: resource.clone(),
            token,
            newest,
            is_settled: false,
        }))
    }

    fn obstacle(&self, resource: &ResourceName, token: FencingToken) -> Option<Obstacle> {
        self.ways().by_resource.get(resource).and_then(|way| way.obstacle(token))
    }

    /// Before a token moves a resource up for the first time: what was on the way to it under the token before isn't known.
    fn doubt(&self, resource: &ResourceName, token: FencingToken) {
        let Some(until) = self.0.doubtful_until else { return };
        let mut ways = self.ways();
        if until <= Instant::now() {
            ways.moved_up = HashSet::new();
            return;
        }
        let before = self.0.gate.kept_of(resource);
        if before.is_none_or(|before| before < token) && ways.moved_up.insert(resource.clone()) {
            before.into_iter().for_each(|before| ways.lose(resource, before, until));
        }
    }

    fn refused(&self, error: AdmitError) -> PassError {
        if matches!(error, AdmitError::Rejected(_)) {
            self.0.rejected.fetch_add(1, Ordering::Relaxed);
        }
        error.into()
    }

    fn undrained(
        &self,
        resource: &ResourceName,
        found: FencingToken,
        obstacle: Obstacle,
        waited: Duration,
    ) -> PassError {
        let left =
            obstacle.until.map_or(RETRY_AFTER, |until| until.saturating_duration_since(Instant::now()));
        PassError::Undrained {
            resource: resource.clone(),
            found,
            older: obstacle.older,
            is_lost: obstacle.until.is_some(),
            waited_ms: ms(waited),
            retry_after_ms: ms(left).max(1),
        }
    }

    /// The gate.
    pub fn gate(&self) -> &AnyGate {
        &self.0.gate
    }

    /// How many requests are on the way.
    pub fn on_the_way(&self) -> usize {
        self.ways().on_the_way
    }

    /// Whether nothing is on the way, and nothing that was lost sight of can still have an effect.
    pub fn is_quiet(&self) -> bool {
        let ways = self.ways();
        ways.on_the_way == 0 && ways.lost.is_empty()
    }

    /// How many wait for older ones.
    pub fn waiting(&self) -> usize {
        self.ways().waiting
    }

    /// How many tokens were rejected since the start.
    pub fn rejected(&self) -> u64 {
        self.0.rejected.load(Ordering::Relaxed)
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        let mut ways = self.0.ways.lock().unwrap_or_else(PoisonError::into_inner);
        ways.settle(Instant::now());
        ways
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

enum Step {
    Passed(Pass),
    Wait { obstacle: Obstacle, waiting: Waiting, ended: watch::Receiver<()> },
}

/// Somebody who waits.
struct Waiting {
    passages: Passages,
    resource: ResourceName,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut ways = self.passages.ways();
        let ways = &mut *ways;
        ways.waiting -= 1;
        if let Some(way) = ways.by_resource.get_mut(&self.resource) {
            way.waiting -= 1;
        }
        ways.drop_if_idle(&self.resource);
    }
}

/// A request that is on the way. Dropped without [`Pass::settle`] it counts as lost sight of, for the settle time.
#[derive(Debug)]
#[must_use = "a pass that is dropped was lost sight of: settle it once the request has ended"]
pub struct Pass {
    passages: Passages,
    resource: ResourceName,
    token: FencingToken,
    newest: watch::Receiver<Option<FencingToken>>,
    is_settled: bool,
}

impl Pass {
    /// What the request is for.
    pub fn resource(&self) -> &ResourceName {
        &self.resource
    }

    /// Its token.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// The request has ended: it will have no effect that it doesn't have by now.
    pub fn settle(mut self) {
        self.is_settled = true;
    }

    /// Returns once a newer token waits for this request to end.
    pub fn superseded(&self) -> impl Future<Output = ()> + Send + 'static {
        let (mut newest, token) = (self.newest.clone(), self.token);
        async move {
            // The sender is gone only when nobody is on the way any more.
            if newest.wait_for(|newest| newest.is_some_and(|newest| newest > token)).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let now = Instant::now();
        let settle = self.passages.0.times.settle;
        let mut ways = self.passages.ways();
        let ways = &mut *ways;
        ways.on_the_way -= 1;
        if !self.is_settled && !settle.is_zero() {
            ways.lose(&self.resource, self.token, now + settle);
        }
        if let Some(way) = ways.by_resource.get_mut(&self.resource) {
            if let Some(count) = way.on_the_way.get_mut(&self.token) {
                *count -= 1;
                if *count == 0 {
                    way.on_the_way.remove(&self.token);
                }
            }
            way.ended.send_replace(());
        }
        ways.drop_if_idle(&self.resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Gate;
    use crate::gate::tests::{name, token};
    use std::collections::HashMap;

    const TIMES: Times = Times { drain: Duration::from_secs(10), settle: Duration::from_secs(5) };

    fn passages() -> Passages {
        Passages::new(Gate::default(), TIMES)
    }

    /// Whether `pass` is ready without any time going by.
    async fn is_through(pass: &mut (impl Future + Unpin)) -> bool {
        tokio::time::timeout(Duration::from_millis(1), pass).await.is_ok()
    }

    /// S9 where writes take time.
    #[tokio::test(start_paused = true)]
    async fn a_newer_one_waits_until_every_older_one_has_ended() {
        let passages = passages();
        let r = name("r");
        let (first, second) =
            (passages.enter(&r, token(1)).await.unwrap(), passages.enter(&r, token(1)).await.unwrap());
        let superseded = first.superseded();
        let mut newer = Box::pin(passages.enter(&r, token(2)));
        assert!(!is_through(&mut newer).await);
        superseded.await;
        assert!(matches!(passages.enter(&r, token(1)).await, Err(PassError::Gate(_))), "older ones stay out");
        first.settle();
        assert!(!is_through(&mut newer).await, "the second is still on its way");
        assert!(passages.enter(&name("q"), token(1)).await.is_ok(), "other resources don't wait");
        second.settle();
        newer.await.unwrap().settle();
        assert_eq!((passages.on_the_way(), passages.waiting(), passages.rejected()), (0, 0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_lost_sight_of_keeps_newer_ones_out_for_the_settle_time_and_equal_ones_never() {
        let passages = passages();
        let r = name("r");
        let begun = Instant::now();
        drop(passages.enter(&r, token(1)).await.unwrap());
        passages.enter(&r, token(1)).await.unwrap().settle();
        assert_eq!(begun.elapsed(), Duration::ZERO);
        passages.enter(&r, token(2)).await.unwrap().settle();
        assert!(begun.elapsed() >= TIMES.settle, "{:?}", begun.elapsed());
        passages.enter(&r, token(3)).await.unwrap().settle();
        assert!(begun.elapsed() < 2 * TIMES.settle);
        assert!(passages.ways().by_resource.is_empty(), "nothing idle is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_bounded_and_what_it_waited_for_is_named() {
        let passages = passages();
        let r = name("r");
        let stuck = passages.enter(&r, token(1)).await.unwrap();
        let refused = passages.enter(&r, token(2)).await.unwrap_err();
        let waited = "request for r under the older fencing token 1 is still on its way: 2 waited 10";
        assert!(refused.to_string().contains(waited), "{refused}");
        // It goes on being refused, and the older one too: nobody passes whom another could overtake.
        assert!(matches!(passages.enter(&r, token(2)).await, Err(PassError::Undrained { .. })));
        assert!(matches!(passages.enter(&r, token(1)).await, Err(PassError::Gate(_))));
        stuck.settle();
        passages.enter(&r, token(2)).await.unwrap().settle();
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_that_is_stuck_does_not_keep_everybody_waiting() {
        let passages = passages();
        let stuck = passages.enter(&name("r"), token(1)).await.unwrap();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..WAITING_MAX {
            let passages = passages.clone();
            waiting.spawn(async move { passages.enter(&name("r"), token(2)).await.unwrap().settle() });
        }
        while passages.waiting() < WAITING_MAX {
            tokio::task::yield_now().await;
        }
        let begun = Instant::now();
        assert!(matches!(passages.enter(&name("r"), token(2)).await, Err(PassError::Undrained { .. })));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        stuck.settle();
        waiting.join_all().await;
        assert_eq!((passages.on_the_way(), passages.waiting()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn of_those_that_wait_only_the_newest_goes_on_and_the_others_learn_it_at_once() {
        let passages = passages();
        let r = name("r");
        let oldest = passages.enter(&r, token(1)).await.unwrap();
        let mut second = Box::pin(passages.enter(&r, token(2)));
        assert!(!is_through(&mut second).await);
        let mut third = Box::pin(passages.enter(&r, token(3)));
        assert!(!is_through(&mut third).await);
        let rejected = second.await.unwrap_err();
        assert!(rejected.to_string().contains("token 2 for r is rejected: 3 was admitted"), "{rejected}");
        oldest.settle();
        third.await.unwrap().settle();
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_goes_away_leaves_nothing_behind() {
        let passages = passages();
        let r = name("r");
        let first = passages.enter(&r, token(1)).await.unwrap();
        let mut gone = Box::pin(passages.enter(&r, token(2)));
        assert!(!is_through(&mut gone).await);
        drop(gone);
        assert_eq!(passages.waiting(), 0);
        first.settle();
        assert!(passages.ways().by_resource.is_empty());
    }

    /// A process that died may have left a write on its way to the protected side.
    #[tokio::test(start_paused = true)]
    async fn after_a_crash_only_the_kept_token_goes_on_at_once() {
        let gate = Gate::default();
        gate.admit(&name("r"), token(1)).unwrap();
        let passages = Passages::in_doubt(gate, TIMES);
        let begun = Instant::now();
        passages.enter(&name("r"), token(1)).await.unwrap().settle();
        for number in [1, 2] {
            passages.enter(&name("new"), token(number)).await.unwrap().settle();
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "nothing of it was on the way to a resource that is new");
        let (second, third) = (name("r"), name("r"));
        let waits = [passages.enter(&second, token(2)), passages.enter(&third, token(3))];
        let [second, third] = waits.map(|wait| {
            let mut wait = Box::pin(wait);
            std::future::poll_fn(move |context| wait.as_mut().poll(context))
        });
        let (second, third) = tokio::join!(second, third);
        assert!(matches!(second, Err(PassError::Gate(AdmitError::Rejected(_)))), "{second:?}");
        third.unwrap().settle();
        assert!(begun.elapsed() >= TIMES.settle);
        passages.enter(&name("r"), token(4)).await.unwrap().settle();
        assert!(begun.elapsed() < TIMES.settle + Duration::from_secs(1));
    }

    /// Many writers of a few resources: nobody ever begins while an older one is on its way, or after a newer one began.
    #[tokio::test(start_paused = true)]
    async fn whatever_comes_tokens_on_the_way_never_sink() {
        let passages = Passages::new(Gate::default(), Times { drain: Duration::from_secs(60), ..TIMES });
        let landed: Arc<Mutex<HashMap<u64, u64>>> = Arc::default();
        let mut tasks = tokio::task::JoinSet::new();
        for number in 1..=600_u64 {
            let (passages, landed) = (passages.clone(), Arc::clone(&landed));
            tasks.spawn(async move {
                tokio::time::sleep(Duration::from_millis(number * 7919 % 400)).await;
                let place = number % 3;
                let entered = passages.enter(&name(&format!("r/{place}")), token(number / 9 + 1)).await;
                let Ok(pass) = entered else { return false };
                tokio::time::sleep(Duration::from_millis(number * 31 % 50)).await;
                let mut landed = landed.lock().unwrap();
                let last = landed.entry(place).or_default();
                assert!(*last <= pass.token().get(), "{} lands after {last}", pass.token());
                *last = pass.token().get();
                drop(landed);
                pass.settle();
                true
            });
        }
        let through = tasks.join_all().await.into_iter().filter(|through| *through).count();
        assert!(through >= 3, "{through}");
        assert_eq!((passages.on_the_way(), passages.waiting()), (0, 0));
        assert!(passages.ways().by_resource.is_empty());
    }
}
