//! The leader dies under load: how long nothing is granted.

use super::{Measured, WARM_UP};
use crate::driver::System;
use anyhow::{Context, bail};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Callers that take turns; more than can be stuck at a time.
const CALLERS: usize = 400;
/// A caller whose connection died with the leader begins anew after so long, as a job would.
const STUCK_MAX: Duration = Duration::from_secs(2);
/// How long a system may take.
const WITHIN: Duration = Duration::from_secs(30);

/// The gap is from the kill to the first grant of an acquire that began after it.
pub(crate) async fn run(system: &mut dyn System, rate: u32) -> anyhow::Result<Measured> {
    let callers = system.callers(CALLERS).await.context("connect the callers")?;
    let first = Instant::now();
    let every = Duration::from_secs(1) * u32::try_from(CALLERS)? / rate;
    let (granted, mut grants) = mpsc::unbounded_channel();
    let mut running = JoinSet::new();
    for (number, mut caller) in callers.into_iter().enumerate() {
        let granted = granted.clone();
        running.spawn(async move {
            let mut due = first + every * u32::try_from(number)? / u32::try_from(CALLERS)?;
            let mut turn = 0_u64;
            loop {
                sleep_until(due).await;
                let (start, resource) = (Instant::now(), format!("killed/{number}/{turn}"));
                // One that fails or hangs isn't granted: the next turn tries another name.
                if let Ok(Ok(())) = timeout(STUCK_MAX, caller.acquire(&resource)).await {
                    granted.send((start, Instant::now()))?;
                    let _ = timeout(STUCK_MAX, caller.release(&resource)).await;
                }
                turn += 1;
                due = (due + every).max(Instant::now());
            }
            #[expect(unreachable_code, reason = "says what the loop's errors are")]
            anyhow::Ok(())
        });
    }
    sleep(WARM_UP).await;
    let leader = system.leader().await.context("find the leader")?;
    system.servers().kill(leader)?;
    let killed = Instant::now();
    loop {
        match timeout(WITHIN, grants.recv()).await {
            Ok(Some((start, at))) if start > killed => {
                let p50_ms = (at - killed).as_secs_f64() * 1_000.0;
                return Ok(Measured { p50_ms, ..Measured::default() });
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => bail!("nothing was granted for {} s after", WITHIN.as_secs()),
        }
    }
}
