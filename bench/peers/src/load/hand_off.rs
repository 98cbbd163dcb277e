//! One name that all callers want: how long it belongs to nobody.

use super::{Measured, WARM_UP, latencies, measured, note};
use crate::driver::System;
use anyhow::Context;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

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
    measured(system, running, begin, lasts).await
}

fn lock(released: &Mutex<Option<Instant>>) -> std::sync::MutexGuard<'_, Option<Instant>> {
    released.lock().unwrap_or_else(PoisonError::into_inner)
}
