//! What a bench does: which workload, how fast, for how long.
//!
//! Owns: the choices, their defaults, and which can't work together. Never: talks to a cluster.

use std::num::NonZeroU32;
use std::time::Duration;

/// The most clients: each is a task with at most one request under way.
const CLIENTS_MAX: u32 = 65_536;
/// The most connections. A cluster's node lets in 20,000 by itself.
const CONNECTIONS_MAX: u32 = 1_024;
/// A connection carries 4,096 requests; a few are the bench's own.
const CLIENTS_PER_CONNECTION_MAX: u32 = 4_000;
/// The most locks to hold: what the policy lets a namespace have by itself.
const HELD_MAX: u32 = 1_000_000;
/// The highest rate that a start is computed for.
const PER_SECOND_MAX: u32 = 1_000_000;
/// Below it a lease may be over before its next turn whatever the rate.
const TTL_MIN: Duration = Duration::from_secs(2);

/// What the clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Each client takes a resource of its own, gives it back, and so on.
    AcquireRelease,
    /// Locks are held; in turn one more is acquired, the oldest lease is renewed, and the next oldest released. So each
    /// lock is acquired, renewed once, and released, and as many stay held.
    Mix {
        /// How many, in all.
        held: u32,
    },
    /// All clients want one resource: whoever gets it gives it back and queues again.
    HandOff,
    /// Each client asks how resources stand that the clients hold.
    Reads,
}

impl Workload {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AcquireRelease => "acquire-release",
            Self::Mix { .. } => "mix",
            Self::HandOff => "hand-off",
            Self::Reads => "reads",
        }
    }
}

/// When a client's next operation starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As soon as its last one is answered.
    Closed,
    /// At a fixed rate, whatever the cluster does.
    Open {
        /// Operations of all clients together.
        per_second: NonZeroU32,
    },
}

/// What a bench does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the clients do.
    pub workload: Workload,
    /// How fast.
    pub pace: Pace,
    /// How many operations may be under way at once, from 1 (2 for hand-off) to 65,536.
    pub clients: u32,
    /// How many `kunci-client` objects the clients share, each with a connection to every address, or two to a single
    /// one; 1 to 1,024.
    pub connections: u32,
    /// How long a lease lasts without renewal: at least 2 s, within the cluster's policy.
    pub ttl: Duration,
    /// At first nothing is counted for this long.
    pub warm_up: Duration,
    /// Then operations that start within this time are.
    pub duration: Duration,
}

/// A plan that can't work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPlan {
    /// A number outside its bounds.
    #[error("{found} {what}: expected {min} to {max}")]
    OutOfBounds {
        /// What it is a number of.
        what: &'static str,
        /// As given.
        found: u32,
        /// The smallest that works.
        min: u32,
        /// The largest that works.
        max: u32,
    },
    /// More requests than the connections carry.
    #[error("{clients} clients on {connections} connections: use at least {needed} connections")]
    TooFewConnections {
        /// As given.
        clients: u32,
        /// As given.
        connections: u32,
        /// How many it takes.
        needed: u32,
    },
    /// Leases would always be over before anything is done with them.
    #[error("a ttl of {found:?}: expected at least {TTL_MIN:?}")]
    TtlTooShort {
        /// As given.
        found: Duration,
    },
    /// Nothing would be counted.
    #[error("a duration of nothing: expected more, such as 10s")]
    NoDuration,
    /// At this rate locks expire between two operations on them.
    #[error(
        "{found} {what} at {per_second} operations a second: each has its turn every {every:?}, too late for a ttl of \
         {ttl:?}: use fewer of them, a higher rate or a longer ttl"
    )]
    TooSlowForTtl {
        /// As given.
        found: u32,
        /// Clients or locks.
        what: &'static str,
        /// As given.
        per_second: u32,
        /// From one operation on a lease to the next.
        every: Duration,
        /// As given.
        ttl: Duration,
    },
}

impl Plan {
    /// A plan with everything else as it is by itself: 10 s after 2 s of warm-up, a TTL of 30 s, and in a closed loop 16
    /// clients. An open loop has as many as it starts operations in a second, up to 256: an answer may take so long before
    /// an operation is late.
    pub fn new(workload: Workload, pace: Pace) -> Self {
        let clients = match pace {
            Pace::Closed => 16,
            Pace::Open { per_second } => per_second.get().min(256),
        };
        let clients = clients.max(min_clients(workload));
        Self {
            workload,
            pace,
            clients,
            connections: Self::connections_for(clients),
            ttl: Duration::from_secs(30),
            warm_up: Duration::from_secs(2),
            duration: Duration::from_secs(10),
        }
    }

    /// How many connections so many clients have by themselves: one each, up to 16, and more for more than 1,000 each.
    pub fn connections_for(clients: u32) -> u32 {
        clients.clamp(1, 16).max(clients.div_ceil(1_000)).min(CONNECTIONS_MAX)
    }

    /// Checks the choices against each other.
    ///
    /// # Errors
    /// For the first that can't work, with what would.
    pub fn check(&self) -> Result<(), InvalidPlan> {
        within("clients", self.clients, min_clients(self.workload), CLIENTS_MAX)?;
        within("connections", self.connections, 1, CONNECTIONS_MAX)?;
        let needed = self.clients.div_ceil(CLIENTS_PER_CONNECTION_MAX);
        if self.connections < needed {
            let (clients, connections) = (self.clients, self.connections);
            return Err(InvalidPlan::TooFewConnections { clients, connections, needed });
        }
        if let Workload::Mix { held } = self.workload {
            within("held locks", held, 0, HELD_MAX)?;
        }
        if self.ttl < TTL_MIN {
            return Err(InvalidPlan::TtlTooShort { found: self.ttl });
        }
        if self.duration.is_zero() {
            return Err(InvalidPlan::NoDuration);
        }
        let Pace::Open { per_second } = self.pace else { return Ok(()) };
        within("operations a second", per_second.get(), 1, PER_SECOND_MAX)?;
        self.check_turns(per_second.get())
    }

    /// Whether every lease has its next operation in time, with a third of it to spare.
    fn check_turns(&self, per_second: u32) -> Result<(), InvalidPlan> {
        let (found, what, operations) = match self.workload {
            Workload::AcquireRelease => (self.clients, "clients", u64::from(self.clients)),
            // Of three operations two take the oldest lease.
            Workload::Mix { held } => (held, "held locks", u64::from(held) * 3 / 2),
            // Whoever has the resource has the next turn, and a read needs no lease.
            Workload::HandOff | Workload::Reads => return Ok(()),
        };
        let every = Duration::from_millis(operations * 1_000 / u64::from(per_second));
        if every <= self.ttl * 2 / 3 {
            return Ok(());
        }
        Err(InvalidPlan::TooSlowForTtl { found, what, per_second, every, ttl: self.ttl })
    }
}

fn min_clients(workload: Workload) -> u32 {
    match workload {
        // One gives, another takes.
        Workload::HandOff => 2,
        Workload::AcquireRelease | Workload::Mix { .. } | Workload::Reads => 1,
    }
}

fn within(what: &'static str, found: u32, min: u32, max: u32) -> Result<(), InvalidPlan> {
    if (min..=max).contains(&found) {
        return Ok(());
    }
    Err(InvalidPlan::OutOfBounds { what, found, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(per_second: u32) -> Pace {
        Pace::Open { per_second: NonZeroU32::new(per_second).unwrap() }
    }

    fn refusal(plan: Plan) -> String {
        plan.check().unwrap_err().to_string()
    }

    #[test]
    fn every_workload_works_by_itself_at_any_pace() {
        let workloads =
            [Workload::AcquireRelease, Workload::Mix { held: 0 }, Workload::HandOff, Workload::Reads];
        for workload in workloads {
            for pace in [Pace::Closed, open(1), open(6_000), open(PER_SECOND_MAX)] {
                assert_eq!(Plan::new(workload, pace).check(), Ok(()), "{workload:?} {pace:?}");
            }
        }
    }

    #[test]
    fn what_can_not_work_is_refused_by_its_number() {
        let plan = Plan::new(Workload::AcquireRelease, Pace::Closed);
        assert_eq!(refusal(Plan { clients: 0, ..plan }), "0 clients: expected 1 to 65536");
        let alone = Plan { clients: 1, ..Plan::new(Workload::HandOff, Pace::Closed) };
        assert_eq!(refusal(alone), "1 clients: expected 2 to 65536");
        assert_eq!(
            refusal(Plan { clients: 10_000, connections: 2, ..plan }),
            "10000 clients on 2 connections: use at least 3 connections"
        );
        assert!(refusal(Plan { ttl: Duration::from_secs(1), ..plan }).contains("ttl of 1s"));
        assert!(refusal(Plan { duration: Duration::ZERO, ..plan }).contains("such as 10s"));
    }

    #[test]
    fn a_rate_at_which_the_held_locks_would_expire_is_refused() {
        let target = Plan::new(Workload::Mix { held: 20_000 }, open(6_000));
        assert_eq!(target.check(), Ok(()));
        assert_eq!(
            refusal(Plan { pace: open(100), ..target }),
            "20000 held locks at 100 operations a second: each has its turn every 300s, too late for a ttl of 30s: use \
             fewer of them, a higher rate or a longer ttl"
        );
        let idle = Plan { clients: 256, ..Plan::new(Workload::AcquireRelease, open(5)) };
        assert!(refusal(idle).starts_with("256 clients at 5 operations a second"));
    }

    #[test]
    fn ten_thousand_clients_have_connections_enough() {
        for (clients, connections) in [(1, 1), (12, 12), (512, 16), (10_000, 16), (40_000, 40)] {
            assert_eq!(Plan::connections_for(clients), connections);
        }
    }
}
