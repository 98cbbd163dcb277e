//! The network of a simulated world: byte streams between hosts, with everything that TCP lets happen to them.
//!
//! Owns: hosts, their doors, what is on its way and when it arrives. Never: loses a byte out of the middle of a stream, or
//! swaps two: TCP doesn't. What is lost on the way is sent again later, and what is late arrives after newer connections'
//! bytes.
//!
//! One task moves everything: it sleeps until the next arrival, hands over all that is due, and wakes who waits for it.

mod connection;
mod delivery;
mod ends;
mod path;
mod replay;
mod state;
mod stream;
mod trouble;

pub use ends::{Door, Plug};
pub use path::Quality;
pub use stream::SimStream;

use crate::randomness::Seeded;
use crate::trace::Trace;
use state::State;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The port of every HTTP door.
pub const HTTP: u16 = 7400;
/// The port of every native door.
pub const NATIVE: u16 = 7401;
/// The port of every peer door.
pub const PEER: u16 = 7402;

/// How a host stops being on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Its process ends: the system closes its connections, and refuses new ones.
    Process,
    /// Its machine ends: nobody hears a word.
    Machine,
}

/// One world's network. A clone is another handle to the same.
#[derive(Clone)]
pub struct Network {
    shared: Arc<Shared>,
}

/// What all handles share.
struct Shared {
    state: Mutex<State>,
}

impl Shared {
    /// Does something with the state, and afterwards wakes whoever it woke.
    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        let (result, woken) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let result = work(&mut state);
            (result, std::mem::take(&mut state.woken))
        };
        woken.into_iter().for_each(Waker::wake);
        result
    }
}

impl Network {
    /// A network without hosts, whose every delay follows from the seed.
    pub fn new(seed: u64, quality: Quality, trace: Trace) -> Self {
        let state = State::new(Seeded::of(seed, "network"), quality, trace);
        Self { shared: Arc::new(Shared { state: Mutex::new(state) }) }
    }

    /// Moves everything. It never returns.
    pub async fn run(self) {
        let began = self.shared.with(|state| state.trace.began());
        let mut timer = pin!(sleep_until(Instant::now() + NOT_SOON));
        poll_fn(|cx| {
            loop {
                let now = Instant::now();
                crate::clock::show(began);
                let next = self.shared.with(|state| {
                    state.move_all(now);
                    state.set_mover(cx.waker());
                    state.next_due()
                });
                timer.as_mut().reset(next.unwrap_or(now + NOT_SOON));
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::<()>::Pending;
                }
            }
        })
        .await;
    }

    /// Puts a host on the network, or puts it back. What an earlier plug of the name did isn't known any more.
    pub fn plug(&self, name: &str) -> Plug {
        let incarnation = self.shared.with(|state| state.plug(name));
        Plug::new(Arc::clone(&self.shared), name.to_owned(), incarnation)
    }

    /// Takes a host off the network; what its process still does reaches nobody.
    pub fn unplug(&self, name: &str, how: Leaving) {
        self.shared.with(|state| state.unplug(name, how));
    }

    /// From now on nothing gets from one host to another, one way.
    pub fn cut(&self, from: &str, to: &str) {
        self.shared.with(|state| state.cut(from, to));
    }

    /// Ends a cut.
    pub fn mend(&self, from: &str, to: &str) {
        self.shared.with(|state| state.mend(from, to));
    }

    /// Ends every cut, and gives every way its usual quality.
    pub fn mend_all(&self) {
        self.shared.with(State::mend_all);
    }

    /// Gives one way another quality.
    pub fn set_quality(&self, from: &str, to: &str, quality: Quality) {
        self.shared.with(|state| state.set_quality(from, to, quality));
    }

    /// Breaks an open connection of a host in the middle of what is on its way. Says between whom, if there was one.
    pub fn break_one(&self, host: &str, random: &mut Seeded) -> Option<String> {
        self.shared.with(|state| state.break_one(host, random))
    }

    /// Makes an open connection of a host slow: what is on its way, and will be, comes so much later.
    pub fn slow_one(&self, host: &str, by: Duration, random: &mut Seeded) -> Option<String> {
        self.shared.with(|state| state.slow_one(host, by, random))
    }

    /// What a client said on a connection to a native door that has ended, to be said again.
    pub fn recorded(&self, random: &mut Seeded) -> Option<bytes::Bytes> {
        self.shared.with(|state| state.recordings.pick(random))
    }

    /// Every host that was ever plugged in, by the order of that.
    pub fn hosts(&self) -> Vec<String> {
        self.shared.with(|state| state.hosts.iter().map(|host| host.name.clone()).collect())
    }

    /// How every way is while no fault changes it.
    pub fn usual(&self) -> Quality {
        self.shared.with(|state| state.paths.usual())
    }

    /// How many connections there are, open or half open.
    pub fn connection_count(&self) -> usize {
        self.shared.with(|state| state.connections.len())
    }
}

/// For when nothing is on its way.
const NOT_SOON: Duration = Duration::from_secs(60 * 60);

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("connections", &self.connection_count()).finish()
    }
}
