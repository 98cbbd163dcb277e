//! The loads that every system gets.
//!
//! Owns: what callers do and when, and what is counted: an operation that fails fails the run, but where a leader is
//! killed. Never: how a system does it.

mod cycles;
mod hand_off;
mod leader_killed;
mod mix;

use crate::driver::System;
use anyhow::Context;
use hdrhistogram::Histogram;
use std::fmt;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// How long nothing is counted.
const WARM_UP: Duration = Duration::from_secs(2);

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Each caller acquires a name of its own, releases it, and so on.
    Cycles { callers: usize },
    /// All callers want one name: from a release to the next grant.
    HandOff { callers: usize },
    /// Leases are held; in each second so many are acquired, renewed and released, whatever the system does.
    Mix { held: usize, rate: u32 },
    /// The leader is killed under so many acquires a second: until the next grant of one that was begun after.
    LeaderKilled { rate: u32 },
}

impl Workload {
    pub(crate) fn all() -> Vec<Self> {
        vec![
            Self::Cycles { callers: 1 },
            Self::Cycles { callers: 64 },
            Self::Cycles { callers: 512 },
            Self::HandOff { callers: 2 },
            Self::HandOff { callers: 100 },
            Self::HandOff { callers: 10_000 },
            Self::Mix { held: 2_000, rate: 500 },
            Self::LeaderKilled { rate: 200 },
        ]
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Cycles { callers } => format!("cycles-{callers}"),
            Self::HandOff { callers } => format!("hand-off-{callers}"),
            Self::Mix { rate, .. } => format!("mix-{rate}"),
            Self::LeaderKilled { rate } => format!("leader-killed-{rate}"),
        }
    }

    pub(crate) fn title(&self) -> String {
        match self {
            Self::Cycles { callers } => {
                format!("acquire and release, closed loop, {callers} callers, a name each")
            }
            Self::HandOff { callers } => format!("hand-off of one name among {callers} callers"),
            Self::Mix { held, rate } => {
                format!(
                    "open loop: {held} held, {rate} each of acquire, renew and release a second, a lease per lock"
                )
            }
            Self::LeaderKilled { rate } => format!("leader killed under {rate} acquires a second"),
        }
    }

    /// Puts the load on a system that has just been started.
    pub(crate) async fn run(&self, system: &mut dyn System, lasts: Duration) -> anyhow::Result<Measured> {
        match self {
            Self::Cycles { callers } => cycles::run(system, *callers, lasts).await,
            Self::HandOff { callers } => hand_off::run(system, *callers, lasts).await,
            Self::Mix { held, rate } => mix::run(system, *held, *rate, lasts).await,
            Self::LeaderKilled { rate } => leader_killed::run(system, *rate).await,
        }
    }
}

/// What came of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Of what the workload counts, per second.
    pub(crate) per_second: Option<f64>,
    /// Of an acquire or a hand-off, or the gap: median, in milliseconds.
    pub(crate) p50_ms: f64,
    /// 99 of 100 are as fast, in milliseconds.
    pub(crate) p99_ms: Option<f64>,
    /// CPU milliseconds of all servers for each operation counted.
    pub(crate) cpu_ms: Option<f64>,
    /// Resident memory of the largest server, in MiB.
    pub(crate) memory_mib: Option<f64>,
}

/// What a caller counted, and its latencies; the run fails with it.
type Counted = anyhow::Result<(u64, Histogram<u64>)>;

/// Waits until the callers are through, and tells what they and the servers did between `begin` and `lasts` later.
async fn measured(
    system: &mut dyn System,
    mut callers: JoinSet<Counted>,
    begin: Instant,
    lasts: Duration,
) -> anyhow::Result<Measured> {
    sleep_until(begin).await;
    let cpu_before = system.servers().cpu()?;
    sleep_until(begin + lasts).await;
    let cpu = system.servers().cpu()?.saturating_sub(cpu_before);
    let memory = system.servers().memory_max()?;
    let (mut count, mut all) = (0, latencies()?);
    while let Some(ended) = callers.join_next().await {
        let (more, some) = ended.context("a caller")??;
        count += more;
        all.add(some)?;
    }
    Ok(Measured::of(count, lasts, cpu, memory, &all))
}

impl Measured {
    /// Of `operations` in `seconds`, whose latencies in microseconds are in `latencies`.
    fn of(operations: u64, lasted: Duration, cpu: Duration, memory: u64, latencies: &Histogram<u64>) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "figures for people, far below 2^52")]
        let (count, bytes) = (operations as f64, memory as f64);
        Self {
            per_second: Some(count / lasted.as_secs_f64()),
            p50_ms: ms(latencies.value_at_quantile(0.5)),
            p99_ms: Some(ms(latencies.value_at_quantile(0.99))),
            cpu_ms: (operations > 0).then(|| cpu.as_secs_f64() * 1_000.0 / count),
            memory_mib: Some(bytes / f64::from(1 << 20)),
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(per_second) = self.per_second {
            write!(f, "{per_second:.0}/s, ")?;
        }
        write!(f, "p50 {:.2} ms", self.p50_ms)?;
        if let (Some(p99), Some(cpu), Some(memory)) = (self.p99_ms, self.cpu_ms, self.memory_mib) {
            write!(f, ", p99 {p99:.2} ms, {cpu:.3} CPU-ms each, {memory:.0} MiB")?;
        }
        Ok(())
    }
}

/// A histogram of microseconds up to a minute, right to one in a thousand.
fn latencies() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}

fn note(latencies: &mut Histogram<u64>, latency: Duration) {
    latencies.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
}

fn ms(microseconds: u64) -> f64 {
    Duration::from_micros(microseconds).as_secs_f64() * 1_000.0
}
