//! Tasks that belong to a process.
//!
//! Owns: starting one, and whether it is polled. Never: polls what belongs to a process that is dead or stands still.

use crate::current::{self, Scope};
use crate::process::{Parked, Process};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::{AbortHandle, JoinError, JoinHandle, JoinSet};

/// Starts a task that belongs to the process of the caller. In a program, `tokio::spawn`.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    spawn_as(current::current(), future)
}

/// Starts a task of the set that belongs to the process of the caller. In a program, `JoinSet::spawn`.
#[track_caller]
pub fn spawn_into<F>(set: &mut JoinSet<F::Output>, future: F) -> AbortHandle
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let process = current::current();
    let key = process.as_ref().map_or(0, Process::admit);
    let abort = set.spawn(Belonging::new(process.clone(), key, future));
    if let Some(process) = process {
        process.started(key, abort.clone());
    }
    abort
}

#[track_caller]
pub(crate) fn spawn_as<F>(process: Option<Process>, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let key = process.as_ref().map_or(0, Process::admit);
    let handle = tokio::spawn(Belonging::new(process.clone(), key, future));
    if let Some(process) = process {
        process.started(key, handle.abort_handle());
    }
    handle
}

/// Does work that would hold up other tasks. In a program on a thread of its own; in a simulated process, where nothing
/// takes time that the world doesn't give it, here and now.
///
/// # Errors
/// When the work panicked, or the runtime ended before it began.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    match current::look(|_| ()) {
        Some(()) => Ok(work()),
        None => tokio::task::spawn_blocking(work).await,
    }
}

pin_project! {
    /// A future that runs only while its process does, and in its name.
    struct Belonging<F> {
        #[pin]
        future: Option<F>,
        // `None` is the real process.
        process: Option<Process>,
        key: u64,
        parked: Option<Parked>,
    }

    impl<F> PinnedDrop for Belonging<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.process.is_none() {
                return;
            }
            // Destructors start tasks and read clocks, too.
            let scope = Scope::enter(this.process);
            this.future.set(None);
            drop(scope);
            if let Some(process) = this.process.take() {
                process.ended(*this.key);
            }
        }
    }
}

impl<F> Belonging<F> {
    const fn new(process: Option<Process>, key: u64, future: F) -> Self {
        Self { future: Some(future), process, key, parked: None }
    }
}

impl<F: Future> Future for Belonging<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(future) = this.future.as_pin_mut() else { return Poll::Pending };
        let Some(process) = this.process.as_ref() else { return future.poll(context) };
        if !process.lets_run(this.parked, context.waker()) {
            return Poll::Pending;
        }
        let scope = Scope::enter(this.process);
        let polled = future.poll(context);
        drop(scope);
        // Whoever was killed meanwhile tells nobody how it ended.
        if this.process.as_ref().is_some_and(Process::is_killed) { Poll::Pending } else { polled }
    }
}
