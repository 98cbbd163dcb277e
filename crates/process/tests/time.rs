//! What a simulated process promises about its clocks and timers.

use kunci_process::{Process, boot_now, boot_sleep_until, interval, now, since, sleep, sleep_until, timeout};
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

const HOUR: Duration = Duration::from_secs(3_600);
const SECOND: Duration = Duration::from_secs(1);

fn near(found: Duration, expected: Duration) -> bool {
    found.abs_diff(expected) <= Duration::from_millis(2)
}

/// Case C29: two machines' clocks drift apart, and each one's timers go by its own.
#[tokio::test(start_paused = true)]
async fn a_process_sees_and_sleeps_by_its_own_clock() {
    let world = Instant::now();
    for (rate_ppm, took_ms) in [(0, 3_600_000), (500, 3_598_201), (-500, 3_601_801), (100_000, 3_272_728)] {
        let process = Process::new("one");
        process.set_rate(rate_ppm);
        let begin = Instant::now();
        let seen = process.run(async {
            let began = now();
            sleep(HOUR).await;
            since(began)
        });
        assert!(near(seen.await.unwrap(), HOUR), "{rate_ppm}");
        assert!(near(begin.elapsed(), Duration::from_millis(took_ms)), "{rate_ppm}: {:?}", begin.elapsed());
    }
    assert!(world.elapsed() > HOUR * 3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_far_away_by_its_own_clock_is_kept_to_the_millisecond() {
    let process = Process::new("one");
    process.set_rate(-500);
    let late = process.run(async {
        let began = now();
        for second in 1..=3_600_u32 {
            sleep_until(began + SECOND * second).await;
        }
        since(began + HOUR)
    });
    assert!(late.await.unwrap() <= Duration::from_millis(2));
}

#[tokio::test(start_paused = true)]
async fn a_timer_never_rings_early_when_the_clock_slows_down() {
    let process = Process::new("one");
    let began = process.now();
    let slept = process.spawn(async move {
        sleep(HOUR).await;
        now() >= began + HOUR
    });
    tokio::time::sleep(HOUR / 2).await;
    process.set_rate(-10_000);
    assert!(slept.await.unwrap());
}

/// Case C31: what was suspended doesn't count as time that passed, except by the clock that the leases go by.
#[tokio::test(start_paused = true)]
async fn a_suspend_stops_one_clock_and_its_timers_and_not_the_other() {
    let process = Process::new("one");
    let began = Instant::now();
    let monotonic = process.spawn(async move {
        sleep(SECOND * 10).await;
        began.elapsed()
    });
    let boot = process.spawn(async move {
        boot_sleep_until(boot_now() + SECOND * 10).await;
        began.elapsed()
    });
    let timed_out = process.spawn(async move {
        let never = timeout(SECOND * 10, std::future::pending::<()>()).await;
        (never.is_err(), began.elapsed())
    });
    tokio::time::sleep(SECOND).await;
    process.suspend();
    tokio::time::sleep(SECOND * 60).await;
    process.resume();
    assert!(near(boot.await.unwrap(), SECOND * 61));
    assert!(near(process.now() - began, SECOND));
    assert!(near(process.boot_now() - began, SECOND * 61));
    assert!(near(monotonic.await.unwrap(), SECOND * 70));
    let (is_over, after) = timed_out.await.unwrap();
    assert!(is_over && near(after, SECOND * 70));
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_someone_else_polls_during_a_suspend_waits_on() {
    let process = Process::new("one");
    let began = Instant::now();
    let mut slept = pin!(process.enter(|| sleep(SECOND)));
    process.suspend();
    assert!(tokio::time::timeout(HOUR, slept.as_mut()).await.is_err());
    process.resume();
    slept.await;
    assert!(near(began.elapsed(), HOUR + SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_timer_can_be_set_anew_and_waits_as_long_as_can_be_written() {
    for process in [None, Some(Process::new("one"))] {
        let set = async {
            let began = now();
            let mut timer = pin!(sleep(Duration::MAX));
            assert!(timeout(HOUR, timer.as_mut()).await.is_err());
            timer.as_mut().reset(began + HOUR * 2);
            assert_eq!(timer.deadline(), began + HOUR * 2);
            timer.as_mut().await;
            assert!(timer.is_elapsed());
            near(since(began), HOUR * 2)
        };
        assert!(match process {
            None => set.await,
            Some(process) => process.run(set).await.unwrap(),
        });
    }
}

#[tokio::test(start_paused = true)]
async fn an_interval_ticks_at_once_and_after_a_late_tick_a_whole_period_later() {
    let process = Process::new("one");
    let began = Instant::now();
    let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
    process.spawn(async move {
        let mut every = interval(SECOND);
        loop {
            every.tick().await;
            let _ = say.send(began.elapsed());
        }
    });
    tokio::time::sleep(SECOND * 2 + SECOND / 2).await;
    process.pause();
    tokio::time::sleep(SECOND * 10).await;
    process.resume();
    tokio::time::sleep(SECOND + SECOND / 2).await;
    let mut ticks = Vec::new();
    while let Ok(tick) = said.try_recv() {
        ticks.push(tick.as_millis());
    }
    let expected = [0, 1_000, 2_000, 12_500, 13_500];
    assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
    assert!(ticks.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= 3), "{ticks:?}");
}
