//! Cluster time, and the intervals that callers choose. All in whole milliseconds.
//!
//! Never: a wall clock or a local instant; those don't leave the process that read them.

use core::fmt;

/// Milliseconds since the cluster's first log entry, as carried in the log: the only time the locks know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClusterTime(u64);

impl ClusterTime {
    /// The cluster's first instant.
    pub const START: Self = Self(0);

    /// Wraps milliseconds since the first log entry.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the first log entry.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The instant `ms` later; the last one there is when that would pass it.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this; 0 when `earlier` isn't earlier.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

macro_rules! milliseconds {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Wraps milliseconds; the policy decides at apply whether it is allowed.
            pub const fn from_ms(ms: u64) -> Self {
                Self(ms)
            }

            /// Milliseconds.
            pub const fn as_ms(self) -> u64 {
                self.0
            }
        }
    )*};
}
milliseconds!(
    /// How long a lease lasts from its grant or last renewal.
    Ttl,
    /// How long a resource stays closed after a lease on it expired or was forced.
    LockDelay
);

/// What an acquire does when it can't have the resource at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wait {
    /// Is refused.
    Try,
    /// Queues for this many milliseconds, at least 1.
    UpToMs(u64),
}

impl Wait {
    /// Reads the form that HTTP uses, in which 0 means [`Wait::Try`].
    pub const fn from_ms(ms: u64) -> Self {
        if ms == 0 { Self::Try } else { Self::UpToMs(ms) }
    }
}
