//! Closed loops of acquire and release on names of one's own.

use super::{Measured, WARM_UP, latencies, measured, note};
use crate::driver::System;
use anyhow::Context;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A cycle is counted that begins after the warm-up and before the end.
pub(crate) async fn run(
    system: &mut dyn System,
    callers: usize,
    lasts: Duration,
) -> anyhow::Result<Measured> {
    let callers = system.callers(callers).await.context("connect the callers")?;
    let begin = Instant::now() + WARM_UP;
    let end = begin + lasts;
    let mut running = JoinSet::new();
    for (number, mut caller) in callers.into_iter().enumerate() {
        running.spawn(async move {
            let resource = format!("cycles/{number}");
            let (mut cycles, mut acquires) = (0_u64, latencies()?);
            loop {
                let start = Instant::now();
                if start >= end {
                    return anyhow::Ok((cycles, acquires));
                }
                caller.acquire(&resource).await.context("acquire")?;
                let acquired = start.elapsed();
                caller.release(&resource).await.context("release")?;
                if start >= begin {
                    cycles += 1;
                    note(&mut acquires, acquired);
                }
            }
        });
    }
    measured(system, running, begin, lasts).await
}
