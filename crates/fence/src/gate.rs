//! The gate: the largest token that was admitted for each resource, and the comparison.
//!
//! Owns: compare and keep in one step, in memory here and on disk in [`FileGate`]. Never: a clock, or a way to take a
//! kept token back.

mod file;
mod kept;

pub use file::{FileGate, OpenError};

use kept::{Kept, Verdict};
use kunci_types::{FencingToken, ResourceName};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many resources a gate keeps unless it is told otherwise: about 150 bytes of memory each.
pub const RESOURCES_MAX: usize = 1_000_000;

/// How a token was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It was the kept one already: its holder writes once more.
    Equal,
    /// It is larger than any before, and kept from now on.
    Newer,
}

/// A token that isn't admitted, since a larger one was. For its holder this is final: the lease was lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "fencing token {found} for {resource} is rejected: {kept} was admitted, so expected at least that; the lease of \
     {found} has ended: stop, and acquire anew"
)]
pub struct Rejected {
    /// What the token is for.
    pub resource: ResourceName,
    /// The token that was presented.
    pub found: FencingToken,
    /// The largest that was admitted, or the floor.
    pub kept: FencingToken,
}

/// Why a token isn't admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmitError {
    /// It is older than the kept one.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The resource is new, and there is no room to keep one more.
    #[error(
        "the gate is full: it keeps {resources_max} resources; raise the floor to a token whose holders are all gone, \
         which forgets the older ones, or let it keep more"
    )]
    Full {
        /// The most that it keeps.
        resources_max: usize,
    },
    /// Too many wait for the disk.
    #[error("{waiting} tokens wait for the gate's disk: try again")]
    Busy {
        /// How many.
        waiting: usize,
    },
    /// The token couldn't be put on disk, so it isn't admitted; the next one may be.
    #[error("the gate can't keep the token: {why}; free some space, then try again")]
    NotKept {
        /// What the system said.
        why: String,
    },
    /// Nothing newer is admitted any more, as what is on disk isn't known.
    #[error("the gate has stopped: {why}; look after the disk, then start again")]
    Stopped {
        /// What the system said.
        why: String,
    },
}

/// A gate in memory: for a resource that lives no longer than the process does.
///
/// What it keeps is bounded by the number of resources; a resource more is refused, as dropping any of the kept ones
/// would let late writers in. [`Gate::raise_floor`] makes room without that.
///
/// # Example
/// ```
/// use kunci_fence::gate::{AdmitError, Admitted, Gate};
/// use kunci_types::{FencingToken, ResourceName};
///
/// let gate = Gate::default();
/// let orders = ResourceName::parse("orders/42").unwrap();
/// let token = |number| FencingToken::presented(number).unwrap();
///
/// assert_eq!(gate.admit(&orders, token(7)), Ok(Admitted::Newer));
/// assert_eq!(gate.admit(&orders, token(7)), Ok(Admitted::Equal));
/// let Err(AdmitError::Rejected(rejected)) = gate.admit(&orders, token(6)) else { panic!() };
/// assert_eq!((rejected.found, rejected.kept), (token(6), token(7)));
/// ```
#[derive(Debug)]
pub struct Gate {
    kept: Mutex<Kept>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::keeping(RESOURCES_MAX)
    }
}

impl Gate {
    /// A gate that keeps at most this many resources.
    pub fn keeping(resources_max: usize) -> Self {
        Self { kept: Mutex::new(Kept::new(resources_max)) }
    }

    /// Compares the token with the kept one, and keeps it if it is larger, in one step.
    ///
    /// # Errors
    /// [`AdmitError::Rejected`] for an older token, [`AdmitError::Full`] for a new resource without room for it.
    pub fn admit(&self, resource: &ResourceName, token: FencingToken) -> Result<Admitted, AdmitError> {
        let mut kept = self.kept();
        match kept.weigh(resource, token) {
            Verdict::Older(rejected) => Err(rejected.into()),
            Verdict::Equal => Ok(Admitted::Equal),
            Verdict::Newer => {
                kept.keep(resource, token)?;
                Ok(Admitted::Newer)
            }
        }
    }

    /// The kept token of a resource; for one that isn't kept the floor, if there is one.
    pub fn kept_of(&self, resource: &ResourceName) -> Option<FencingToken> {
        self.kept().of(resource)
    }

    /// From now on no token below `floor` is admitted for any resource, and what isn't larger is forgotten.
    ///
    /// Safe with any floor, since tokens grow over all resources of a cluster: whoever was rejected before is below
    /// the floor too. A floor that is too high costs those who still hold an older lease: they are rejected. So take
    /// a token that was granted longer ago than any lease lasts, which policy bounds (24 h by default).
    ///
    /// Answers how many resources were forgotten. A floor below the present one changes nothing.
    pub fn raise_floor(&self, floor: FencingToken) -> usize {
        self.kept().raise_floor(floor)
    }

    /// How many resources are kept.
    pub fn resources(&self) -> usize {
        self.kept().len()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    pub(crate) fn name(text: &str) -> ResourceName {
        ResourceName::parse(text).unwrap()
    }

    pub(crate) fn token(number: u64) -> FencingToken {
        FencingToken::presented(number).unwrap()
    }

    /// S9.
    #[test]
    fn equal_passes_larger_moves_it_up_and_smaller_is_rejected_with_both_numbers() {
        let gate = Gate::default();
        assert_eq!(gate.kept_of(&name("r")), None);
        assert_eq!(gate.admit(&name("r"), token(5)), Ok(Admitted::Newer));
        assert_eq!(gate.admit(&name("r"), token(5)), Ok(Admitted::Equal));
        assert_eq!(gate.admit(&name("r"), token(9)), Ok(Admitted::Newer));
        let late = gate.admit(&name("r"), token(8)).unwrap_err();
        assert_eq!(late, Rejected { resource: name("r"), found: token(8), kept: token(9) }.into());
        assert!(late.to_string().starts_with("fencing token 8 for r is rejected: 9 was admitted"), "{late}");
        assert_eq!(gate.admit(&name("R"), token(1)), Ok(Admitted::Newer), "another resource");
    }

    /// S9: compare and keep are one step, whoever comes at the same time.
    #[test]
    fn after_a_token_was_admitted_no_smaller_one_is_however_many_come_at_once() {
        let gate = Gate::default();
        let highest = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for first in 1..=8 {
                let (gate, highest) = (&gate, &highest);
                scope.spawn(move || {
                    for number in (first..4_000).step_by(8) {
                        let before = highest.load(Ordering::SeqCst);
                        if gate.admit(&name("r"), token(number)).is_ok() {
                            assert!(number >= before, "{number} was admitted after {before}");
                            highest.fetch_max(number, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        assert_eq!(gate.kept_of(&name("r")), Some(token(3_999)));
    }

    #[test]
    fn a_full_gate_refuses_new_resources_and_goes_on_with_those_it_keeps() {
        let gate = Gate::keeping(2);
        gate.admit(&name("a"), token(1)).unwrap();
        gate.admit(&name("b"), token(2)).unwrap();
        let full = gate.admit(&name("c"), token(3)).unwrap_err();
        assert_eq!(full, AdmitError::Full { resources_max: 2 });
        assert!(full.to_string().contains("raise the floor"), "{full}");
        assert_eq!(gate.admit(&name("a"), token(4)), Ok(Admitted::Newer));
        assert!(matches!(gate.admit(&name("a"), token(3)), Err(AdmitError::Rejected(_))));
    }

    /// What was forgotten can't come back: an old token is below the floor, as that of any resource is.
    #[test]
    fn a_floor_makes_room_and_lets_no_older_token_in() {
        let gate = Gate::keeping(2);
        gate.admit(&name("a"), token(10)).unwrap();
        gate.admit(&name("b"), token(20)).unwrap();
        assert_eq!(gate.raise_floor(token(15)), 1);
        assert_eq!(gate.resources(), 1);
        for resource in ["a", "c"] {
            let late = gate.admit(&name(resource), token(14)).unwrap_err();
            let kept = token(15);
            assert_eq!(late, Rejected { resource: name(resource), found: token(14), kept }.into());
        }
        assert_eq!(gate.admit(&name("b"), token(20)), Ok(Admitted::Equal), "kept above the floor");
        assert_eq!(gate.admit(&name("a"), token(15)), Ok(Admitted::Equal), "the floor itself passes");
        assert_eq!(gate.raise_floor(token(9)), 0, "a floor never sinks");
        assert_eq!(gate.kept_of(&name("c")), Some(token(15)));
        assert_eq!(gate.admit(&name("c"), token(16)), Ok(Admitted::Newer));
    }
}
