//! A simulated process.
//!
//! Owns: its life, the list of its tasks, its clocks. Never: the disk and the network that it uses; whoever kills a
//! process cuts them first, so that the destructors of its tasks reach nobody.

use crate::clock::{Clocks, Which};
use crate::current::{self, Scope};
use crate::task;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

const RUNS: u8 = 0;
const STANDS_STILL: u8 = 1;
const KILLED: u8 = 2;

/// The process died before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Killed;

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the process was killed")
    }
}

impl std::error::Error for Killed {}

/// A simulated process: its tasks, and those that they start, run only while it does.
///
/// All of a world's processes live on one thread, in one runtime with a paused clock.
#[derive(Clone)]
pub struct Process {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    life: AtomicU8,
    tasks: Mutex<Tasks>,
    clocks: Mutex<Clocks>,
    all_ended: Notify,
}

#[derive(Default)]
struct Tasks {
    /// By the order in which they were started, which is the order in which they end at a kill.
    alive: BTreeMap<u64, Option<AbortHandle>>,
    admitted: u64,
    /// Whom to wake at the resume, in the order in which they were woken meanwhile.
    parked: Vec<Waker>,
    /// Counts the times that it stood still.
    pauses: u64,
    has_panicked: bool,
}

/// Where a task waits for the resume: during which pause, and in which place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parked {
    pause: u64,
    place: usize,
}

impl Process {
    /// A process that runs and has no task yet. Its clocks show the time of the runtime that it is made in.
    pub fn new(name: impl Into<String>) -> Self {
        current::simulate();
        let inner = Inner {
            name: name.into(),
            life: AtomicU8::new(RUNS),
            tasks: Mutex::default(),
            clocks: Mutex::new(Clocks::start(Instant::now())),
            all_ended: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The simulated process that the caller belongs to; `None` in the real one.
    pub fn current() -> Option<Self> {
        current::current()
    }

    /// What it was called at its making.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Starts a task in it. In a killed process the future is dropped without being polled.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        task::spawn_as(Some(self.clone()), future)
    }

    /// Runs a future in it, as a task that ends when this call is dropped.
    ///
    /// # Errors
    /// When the process is killed before the future is done, or the future panics, which kills its process.
    pub async fn run<F>(&self, future: F) -> Result<F::Output, Killed>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let mut task = Aborted(self.spawn(future));
        (&mut task.0).await.map_err(|_| Killed)
    }

    /// Does something in its name, at once and whether it runs or not: making what reads its clocks, for example.
    pub fn enter<R>(&self, work: impl FnOnce() -> R) -> R {
        let mut process = Some(self.clone());
        let _scope = Scope::enter(&mut process);
        work()
    }

    /// Stops it as SIGSTOP would: nothing of it is polled until the resume, while its clocks and the world go on. A task
    /// that is being polled gets to its next wait.
    pub fn pause(&self) {
        let mut tasks = self.tasks();
        if self.inner.life.load(Ordering::Relaxed) == RUNS {
            tasks.pauses += 1;
            self.inner.life.store(STANDS_STILL, Ordering::Relaxed);
        }
    }

    /// Stops it as the suspend of its machine would: a pause during which only its boot clock goes on.
    pub fn suspend(&self) {
        self.pause();
        self.clocks().set_suspended(Instant::now(), true);
    }

    /// Ends a pause or suspend. What was woken meanwhile runs, in the order in which it was woken.
    pub fn resume(&self) {
        self.clocks().set_suspended(Instant::now(), false);
        let parked = {
            let mut tasks = self.tasks();
            if self.inner.life.load(Ordering::Relaxed) == STANDS_STILL {
                self.inner.life.store(RUNS, Ordering::Relaxed);
            }
            std::mem::take(&mut tasks.parked)
        };
        parked.into_iter().for_each(Waker::wake);
    }

    /// Kills it as SIGKILL would: nothing of it is polled any more, and its futures are dropped in the order in which
    /// they were started, during the runtime's next turns (see [`Process::ended_all`]). Their destructors run in its name:
    /// whatever they start is dropped too. A task that kills its own process gets to its next wait.
    pub fn kill(&self) {
        let (alive, parked) = {
            let mut tasks = self.tasks();
            if self.is_killed() {
                return;
            }
            self.inner.life.store(KILLED, Ordering::Relaxed);
            let alive: Vec<_> = tasks.alive.values().flatten().cloned().collect();
            (alive, std::mem::take(&mut tasks.parked))
        };
        drop(parked);
        alive.iter().for_each(AbortHandle::abort);
    }

    /// Whether it was killed, or died of a panic.
    pub fn is_killed(&self) -> bool {
        self.inner.life.load(Ordering::Relaxed) == KILLED
    }

    /// Whether a pause or suspend lasts.
    pub fn is_paused(&self) -> bool {
        self.inner.life.load(Ordering::Relaxed) == STANDS_STILL
    }

    /// Whether one of its tasks panicked: that kills a process here as it does in the product.
    pub fn has_panicked(&self) -> bool {
        self.tasks().has_panicked
    }

    /// How many of its tasks haven't ended.
    pub fn task_count(&self) -> usize {
        self.tasks().alive.len()
    }

    /// Returns once none of its tasks is left. Nobody in the process itself can wait for that.
    pub async fn ended_all(&self) {
        loop {
            let mut all_ended = std::pin::pin!(self.inner.all_ended.notified());
            all_ended.as_mut().enable();
            if self.task_count() == 0 {
                return;
            }
            all_ended.await;
        }
    }

    /// From now on its clocks go faster than the world's by so many millionths; slower when negative. A timer that runs
    /// rings by the new rate, but never before the world's time by the old one.
    pub fn set_rate(&self, rate_ppm: i32) {
        self.clocks().set_rate(Instant::now(), rate_ppm);
    }

    /// What its clock shows that stands still during suspend.
    pub fn now(&self) -> Instant {
        self.clocks().at(Instant::now(), Which::Monotonic)
    }

    /// What its clock shows that goes on during suspend.
    pub fn boot_now(&self) -> Instant {
        self.clocks().at(Instant::now(), Which::Boot)
    }

    pub(crate) fn clocks(&self) -> MutexGuard<'_, Clocks> {
        self.inner.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a task that is about to start, and says what it is known by.
    pub(crate) fn admit(&self) -> u64 {
        let mut tasks = self.tasks();
        tasks.admitted += 1;
        let key = tasks.admitted;
        tasks.alive.insert(key, None);
        key
    }

    /// The task has been started.
    pub(crate) fn started(&self, key: u64, abort: AbortHandle) {
        if self.is_killed() {
            abort.abort();
        }
        if let Some(task) = self.tasks().alive.get_mut(&key) {
            *task = Some(abort);
        }
    }

    /// The task's future is gone.
    pub(crate) fn ended(&self, key: u64) {
        // The handle may be the last thing that holds what the task ended with: not to be dropped under the lock.
        let (task, is_last) = {
            let mut tasks = self.tasks();
            (tasks.alive.remove(&key), tasks.alive.is_empty())
        };
        drop(task);
        if is_last {
            self.inner.all_ended.notify_waiters();
        }
    }

    /// A panic went through one of its tasks.
    pub(crate) fn panicked(&self) {
        self.tasks().has_panicked = true;
        self.kill();
    }

    /// Whether a task may be polled. If not yet, it is woken at the resume.
    pub(crate) fn lets_run(&self, parked: &mut Option<Parked>, waker: &Waker) -> bool {
        match self.inner.life.load(Ordering::Relaxed) {
            RUNS => true,
            STANDS_STILL => {
                self.park(parked, waker);
                false
            }
            _ => false,
        }
    }

    fn park(&self, parked: &mut Option<Parked>, waker: &Waker) {
        let mut tasks = self.tasks();
        let pause = tasks.pauses;
        match parked.filter(|parked| parked.pause == pause) {
            Some(Parked { place, .. }) => {
                if let Some(there) = tasks.parked.get_mut(place) {
                    there.clone_from(waker);
                }
            }
            None => {
                *parked = Some(Parked { pause, place: tasks.parked.len() });
                tasks.parked.push(waker.clone());
            }
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Process").field(&self.inner.name).finish()
    }
}

/// A task that nobody waits for any more ends.
struct Aborted<T>(JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
