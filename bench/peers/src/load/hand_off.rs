//! One name that all callers want: how long it belongs to nobody.

use super::{Measured, WARM_UP, latencies, note};
use crate::driver::System;
use anyhow::Context;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

const RESOURCE: &str = "hot";

/// A hand-off is from the moment that the holder asks to release to the moment that the next knows of its grant.
pub(crate) async fn run(
    system: &mut dyn System,
    callers: usize,
    lasts: Duration,
) -> anyhow::Result<Measured> {
    let callers = system.callers(callers).await.context("connect the callers")?;
    let begin = Instant::now() + WARM_UP;
    let end = begin + lasts;
    let released: Arc<Mutex<Option<Instant>>> = Arc::default();
    let mut running = JoinSet::new();
    for mut caller in callers {
        let released = Arc::clone(&released);
        running.spawn(async move {
            let (mut count, mut gaps) = (0_u64, latencies()?);
            while Instant::now() < end {
                caller.acquire(RESOURCE).await.context("acquire")?;
                let now = Instant::now();
                let before = lock(&released).replace(now);
                if let Some(before) = before.filter(|before| *before >= begin && now < end) {
                    count += 1;
                    note(&mut gaps, now - before);
                }
                lock(&released).replace(Instant::now());
                caller.release(RESOURCE).await.context("release")?;
            }
            anyhow::Ok((count, gaps))
        });
    }
    sleep_until(begin).await;
    let cpu_before = system.servers().cpu()?;
    sleep_until(end).await;
    let cpu = system.servers().cpu()?.saturating_sub(cpu_before);
    let memory = system.servers().memory_max()?;
    let (mut count, mut gaps) = (0, latencies()?);
    while let Some(ended) = running.join_next().await {
        let (more, some) = ended.context("a caller")??;
        count += more;
        gaps.add(some)?;
    }
    Ok(Measured::of(count, lasts, cpu, memory, &gaps))
}

fn lock(released: &Mutex<Option<Instant>>) -> std::sync::MutexGuard<'_, Option<Instant>> {
    released.lock().unwrap_or_else(PoisonError::into_inner)
}
