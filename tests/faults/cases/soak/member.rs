//! One client of a thousand: what it does, round after round, until the soak ends.

use super::beliefs::Beliefs;
use super::renewals::Renewals;
use super::tally::Tally;
use crate::clock::now_us;
use kunci_client::{Certainty, Client, Error, ErrorKind, HeldLock, InDoubt};
use kunci_oracle::Random;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Resources that everybody wants.
const HOT: u64 = 60;
/// An acquire that takes so much longer than its wait hangs.
const HANGS_AFTER: Duration = Duration::from_secs(25);

/// What all clients share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) doors: Vec<String>,
    pub(super) seed: u64,
    pub(super) ends_us: u64,
    pub(super) beliefs: Arc<Beliefs>,
    pub(super) renewals: Renewals,
    pub(super) tally: Arc<Tally>,
}

/// A client and its chance.
pub(super) struct Member {
    shared: Shared,
    number: u64,
    random: Random,
    client: Client,
}

impl Shared {
    fn is_over(&self) -> bool {
        now_us() >= self.ends_us
    }

    /// Connects under the name of a member; a node that is just dead makes it try again.
    async fn connect(&self, number: u64) -> Client {
        loop {
            let builder = Client::builder().owner(format!("member-{number}"));
            match builder.connector(Arc::new(self.renewals.clone())).connect(self.doors.clone()).await {
                Ok(client) => return client,
                Err(error) => self.tally.failed(&error),
            }
            sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Lives until the soak ends, and leaves nothing behind.
pub(super) async fn live(shared: Shared, number: u64) {
    let mut random = Random::new(shared.seed, number);
    sleep(ms(random.between(0, 3_000))).await;
    let client = shared.connect(number).await;
    let mut member = Member { shared, number, random, client };
    while !member.shared.is_over() {
        member.round().await;
        let pause = ms(member.random.between(2_000, 16_000));
        member.spend(pause).await;
        if member.random.percent(1) {
            member.client.close().await;
            member.client = member.shared.connect(number).await;
            member.shared.tally.add("clients made anew");
        }
    }
    member.client.close().await;
}

impl Member {
    async fn round(&mut self) {
        match self.random.between(0, 99) {
            0..30 => self.own().await,
            30..75 => self.hot().await,
            75..87 => self.abandoned().await,
            87..92 => self.several().await,
            _ => self.tried().await,
        }
    }

    /// A lock that nobody else wants, held for longer than its lease lasts: it has to be renewed.
    async fn own(&mut self) {
        let ttl = ms(self.random.between(2_000, 10_000));
        let hold = ms(self.random.between(1_000, 20_000));
        let request = self.client.lock(format!("soak/own/{}", self.number)).ttl(ttl).wait(secs(10));
        let acquired = timeout(secs(10) + HANGS_AFTER, request.acquire()).await;
        self.use_it(acquired.map_err(|_| "an acquire"), "own", ttl, hold).await;
    }

    /// A lock that many want, mostly for a moment and sometimes for longer.
    async fn hot(&mut self) {
        let ttl = ms(self.random.between(2_000, 3_000));
        let hold = if self.random.percent(5) { (2_500, 5_000) } else { (0, 200) };
        let hold = ms(self.random.between(hold.0, hold.1));
        let wait = ms(self.random.between(500, 8_000));
        let name = self.hot_name();
        let request = self.client.lock(name).ttl(ttl).wait(wait);
        let acquired = timeout(wait + HANGS_AFTER, request.acquire()).await;
        self.use_it(acquired.map_err(|_| "an acquire"), "hot", ttl, hold).await;
    }

    /// An acquire that is dropped while it waits, or just when it is granted.
    async fn abandoned(&mut self) {
        let patience = ms(self.random.between(0, 600));
        let name = self.hot_name();
        let request = self.client.lock(name).ttl(secs(2));
        match timeout(patience, request.acquire()).await {
            // Whatever became of it on the server is the client's to take back.
            Err(_) => self.shared.tally.add("waits given up"),
            Ok(acquired) => self.use_it(Ok(acquired), "in time", secs(2), Duration::ZERO).await,
        }
    }

    /// Several locks under one deadline.
    async fn several(&mut self) {
        let names: Vec<String> = (0..3).map(|_| self.hot_name()).collect();
        let wait = ms(self.random.between(1_000, 6_000));
        let request = self.client.locks(names).ttl(secs(3)).wait(wait);
        let locks = match timeout(wait + HANGS_AFTER, request.acquire()).await {
            Ok(Ok(locks)) => locks,
            Ok(Err(error)) => return self.failed(&error),
            Err(_) => return self.hangs("an acquire of several locks"),
        };
        let mut beliefs = Vec::new();
        for lock in locks {
            self.shared.tally.got("locks had: several");
            beliefs.extend(self.shared.beliefs.begin(lock));
        }
        sleep(ms(self.random.between(0, 100))).await;
        for belief in beliefs.into_iter().rev() {
            let (lock, had) = self.shared.beliefs.end(belief);
            self.shared.renewals.was_held(had, secs(3));
            self.give_back(lock).await;
        }
    }

    /// A look whether a lock can be had.
    async fn tried(&mut self) {
        let name = self.hot_name();
        let request = self.client.lock(name).ttl(secs(2));
        let acquired = timeout(HANGS_AFTER, request.try_acquire()).await;
        self.use_it(acquired.map_err(|_| "a try"), "tried", secs(2), Duration::ZERO).await;
    }

    /// Believes in a lock for some time, or until it is lost.
    async fn use_it(
        &mut self,
        acquired: Result<Result<HeldLock, Error>, &'static str>,
        how: &str,
        ttl: Duration,
        hold: Duration,
    ) {
        let lock = match acquired {
            Ok(Ok(lock)) => lock,
            Ok(Err(error)) => return self.failed(&error),
            Err(what) => return self.hangs(what),
        };
        let Some(belief) = self.shared.beliefs.begin(lock) else {
            return self.shared.tally.add("locks lost before they were used");
        };
        self.shared.tally.got(&format!("locks had: {how}"));
        let left = self.shared.ends_us.saturating_sub(now_us());
        let hold = hold.min(Duration::from_micros(left));
        match timeout(hold, belief.lock().lost()).await {
            Ok(loss) => self.shared.tally.add(&format!("locks lost: {loss:?}")),
            Err(_) => match belief.lock().check() {
                Err(InDoubt::Uncertain { .. }) => self.shared.tally.add("locks in doubt at their end"),
                Err(InDoubt::Lost(loss)) => self.shared.tally.add(&format!("locks lost: {loss:?}")),
                Ok(()) => {}
            },
        }
        let (lock, had) = self.shared.beliefs.end(belief);
        self.shared.renewals.was_held(had, ttl);
        self.give_back(lock).await;
    }

    async fn give_back(&mut self, lock: HeldLock) {
        if self.random.percent(30) {
            self.shared.tally.add("locks dropped");
            return drop(lock);
        }
        match timeout(secs(6), lock.release()).await {
            Ok(Ok(())) => self.shared.tally.add("locks released"),
            Ok(Err(error)) => self.failed(&error),
            Err(_) => self.hangs("a release"),
        }
    }

    /// A pause that ends with the soak.
    async fn spend(&self, pause: Duration) {
        let left = self.shared.ends_us.saturating_sub(now_us());
        sleep(pause.min(Duration::from_micros(left))).await;
    }

    fn hot_name(&mut self) -> String {
        format!("soak/hot/{}", self.random.between(1, HOT))
    }

    /// An error that a fault explains is counted; any other is a violation.
    fn failed(&self, error: &Error) {
        use ErrorKind::{Held, LeaseEnded, Lost, TimedOut, Unavailable, Unreachable};
        self.shared.tally.failed(error);
        if !matches!(
            error.kind(),
            Held { .. } | LeaseEnded(_) | Lost(_) | TimedOut | Unavailable(_) | Unreachable
        ) {
            self.shared.beliefs.report(format!("nothing explains {error:?}"));
        }
        if matches!(error.kind(), TimedOut | Held { .. }) && error.certainty() != Certainty::NotApplied {
            self.shared.beliefs.report(format!("a refusal that isn't certain: {error:?}"));
        }
    }

    fn hangs(&self, what: &str) {
        self.shared.beliefs.report(format!("{what} of member {} hasn't returned", self.number));
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
