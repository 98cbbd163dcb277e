//! Who believes to hold what, at this moment.
//!
//! Owns: the check that no two believe in one lock at one time, and that tokens grow; it is made whenever a belief
//! begins, so that a soak of hours needs no more memory than one of a minute. Never: samples: an overlap of a
//! microsecond is found.

use crate::clock::now_us;
use kunci_client::{FencingToken, HeldLock};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The table of all beliefs. One process, one monotonic clock.
#[derive(Default)]
pub(super) struct Beliefs {
    resources: Mutex<HashMap<String, Resource>>,
    violations: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Resource {
    newest: Option<FencingToken>,
    /// Those who haven't given up the lock yet; who has lost it may still be among them.
    open: Vec<Arc<HeldLock>>,
}

/// One client's belief that it holds a lock.
pub(super) struct Belief {
    lock: Arc<HeldLock>,
    began_us: u64,
}

impl Beliefs {
    /// A client has got a lock. `None` when it knows by now that the lock is lost: it never believed.
    pub(super) fn begin(&self, lock: HeldLock) -> Option<Belief> {
        let lock = Arc::new(lock);
        let mut resources = self.resources.lock().unwrap();
        let resource = resources.entry(lock.resource().to_string()).or_default();
        let others: Vec<_> = resource.open.iter().filter(|other| !other.remaining().is_zero()).collect();
        // Read after theirs. A lock that is lost stays lost, so whoever has time left now had it a moment ago.
        let remaining = lock.remaining();
        if remaining.is_zero() {
            return None;
        }
        for other in others {
            self.report(format!("at {} us {other:?} and {lock:?} are both believed in", now_us()));
        }
        if let Some(newest) = resource.newest.filter(|newest| *newest >= lock.token()) {
            self.report(format!("{lock:?} comes after token {newest}"));
        }
        resource.newest = Some(lock.token());
        resource.open.push(lock.clone());
        Some(Belief { lock, began_us: now_us() })
    }

    /// The belief ends, before the lock is given back. Returns for how long it was had.
    pub(super) fn end(&self, belief: Belief) -> (HeldLock, Duration) {
        let Belief { lock, began_us } = belief;
        let mut resources = self.resources.lock().unwrap();
        let resource = resources.get_mut(lock.resource().as_str()).unwrap();
        resource.open.retain(|other| !Arc::ptr_eq(other, &lock));
        drop(resources);
        let had = Duration::from_micros(now_us() - began_us);
        (Arc::into_inner(lock).expect("nobody else keeps a lock"), had)
    }

    /// How many there are now.
    pub(super) fn count(&self) -> usize {
        self.resources.lock().unwrap().values().map(|resource| resource.open.len()).sum()
    }

    /// Something that must never be.
    pub(super) fn report(&self, what: String) {
        self.violations.lock().unwrap().push(what);
    }

    /// All that must never be, and was.
    pub(super) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }
}

impl Belief {
    /// The lock that is believed in.
    pub(super) fn lock(&self) -> &HeldLock {
        &self.lock
    }
}
