//! The runtime that the consensus library runs on: tokio, through the process that the node is.
//!
//! Owns: that the library's tasks belong to the node's process, and its clock is that process's. Never: a channel or
//! a generator of its own; those are the library's.

use kunci_process::{Sleep, Timeout};
use openraft::async_runtime::AsyncRuntime;
use openraft::impls::TokioRuntime;
use openraft::{Instant, OptionalSend};
use std::io;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};

/// The library's own tokio runtime, except for what belongs to a process.
#[derive(Debug)]
pub struct Runtime(TokioRuntime);

impl AsyncRuntime for Runtime {
    type JoinError = JoinError;
    type JoinHandle<T: OptionalSend + 'static> = JoinHandle<T>;
    type Sleep = Sleep;
    type Instant = LocalInstant;
    type TimeoutError = kunci_process::Elapsed;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = Timeout<T>;
    type ThreadLocalRng = <TokioRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <TokioRuntime as AsyncRuntime>::Mpsc;
    type Watch = <TokioRuntime as AsyncRuntime>::Watch;
    type Oneshot = <TokioRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        kunci_process::spawn(future)
    }

    fn sleep(duration: Duration) -> Sleep {
        kunci_process::sleep(duration)
    }

    fn sleep_until(deadline: LocalInstant) -> Sleep {
        kunci_process::sleep_until(deadline.0)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Timeout<F> {
        kunci_process::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: LocalInstant, future: F) -> Timeout<F> {
        kunci_process::timeout_at(deadline.0, future)
    }

    fn is_panic(error: &JoinError) -> bool {
        error.is_panic()
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        TokioRuntime::thread_rng()
    }

    fn new(threads: usize) -> Self {
        Self(TokioRuntime::new(threads))
    }

    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.0.block_on(future)
    }

    async fn spawn_blocking<F, T>(work: F) -> Result<T, io::Error>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        kunci_process::blocking(work).await.map_err(io::Error::other)
    }
}

/// An instant of the node's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalInstant(tokio::time::Instant);

impl Instant for LocalInstant {
    fn now() -> Self {
        Self(kunci_process::now())
    }
}

impl Add<Duration> for LocalInstant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

impl AddAssign<Duration> for LocalInstant {
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration;
    }
}

impl Sub<Duration> for LocalInstant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0 - duration)
    }
}

impl SubAssign<Duration> for LocalInstant {
    fn sub_assign(&mut self, duration: Duration) {
        self.0 -= duration;
    }
}

impl Sub for LocalInstant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0 - earlier.0
    }
}
