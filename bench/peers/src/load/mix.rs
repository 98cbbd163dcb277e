//! An open loop: leases are held, and so many are acquired, renewed and released in each second.

use super::{Measured, WARM_UP, latencies, measured, note};
use crate::driver::System;
use anyhow::Context;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Callers that share the locks.
const CALLERS: usize = 256;
/// A latency counts from the time at which the operation was to start. A system that doesn't keep up gets fewer done than
/// the rate, and they begin ever later; what wasn't begun at the end is in no figure.
pub(crate) async fn run(
    system: &mut dyn System,
    held: usize,
    rate: u32,
    lasts: Duration,
) -> anyhow::Result<Measured> {
    let callers = system.callers(CALLERS).await.context("connect the callers")?;
    let each = held.div_ceil(CALLERS);
    let mut filling = JoinSet::new();
    for (number, mut caller) in callers.into_iter().enumerate() {
        filling.spawn(async move {
            for place in 0..each {
                caller.acquire(&format!("mix/{number}/{place}")).await.context("fill")?;
            }
            anyhow::Ok((number, caller))
        });
    }
    let mut filled = Vec::new();
    while let Some(ended) = filling.join_next().await {
        filled.push(ended.context("a caller")??);
    }

    let first = Instant::now();
    let begin = first + WARM_UP;
    let end = begin + lasts;
    let every = Duration::from_secs(1) * u32::try_from(CALLERS).unwrap_or(u32::MAX) / rate;
    let mut running = JoinSet::new();
    for (number, mut caller) in filled {
        running.spawn(async move {
            let mut mine: VecDeque<usize> = (0..each).collect();
            let (mut turns, mut acquires) = (0_u64, latencies()?);
            let mut due = first + every * u32::try_from(number)? / u32::try_from(CALLERS)?;
            let mut next = each;
            while due.max(Instant::now()) < end {
                sleep_until(due).await;
                caller.acquire(&format!("mix/{number}/{next}")).await.context("acquire")?;
                let acquired = due.elapsed();
                mine.push_back(next);
                next += 1;
                if let Some(oldest) = mine.pop_front() {
                    caller.renew(&format!("mix/{number}/{oldest}")).await.context("renew")?;
                    caller.release(&format!("mix/{number}/{oldest}")).await.context("release")?;
                }
                if due >= begin {
                    turns += 1;
                    note(&mut acquires, acquired);
                }
                due += every;
            }
            anyhow::Ok((turns, acquires))
        });
    }
    measured(system, running, begin, lasts).await
}
