//! The thread that puts tokens on disk.
//!
//! Owns: the queue, and one sync for everything that came during the one before. Never: admits what isn't on disk.

use super::frame::{self, Body};
use super::log::{AppendError, Log};
use crate::gate::kept::{Kept, Verdict};
use crate::gate::{AdmitError, Admitted, Rejected};
use kunci_types::{FencingToken, ResourceName};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot::Sender;

/// How many may wait for the disk.
const WAITING_MAX: usize = 65_536;
/// How many go into one frame.
const BATCH_MAX: usize = 2_048;

pub(super) type Answer<T> = Sender<Result<T, AdmitError>>;

/// Something to put on disk.
#[derive(Debug)]
pub(super) enum Job {
    Admit { resource: ResourceName, token: FencingToken, answer: Answer<Admitted> },
    Floor { floor: FencingToken, answer: Answer<usize> },
}

/// What callers and the thread share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    /// What is on disk, nothing else.
    pub(super) kept: Kept,
    queue: VecDeque<Job>,
    is_closed: bool,
    stopped: Option<String>,
}

impl Shared {
    pub(super) fn new(kept: Kept) -> Self {
        let state = State { kept, queue: VecDeque::new(), is_closed: false, stopped: None };
        Self { state: Mutex::new(state), wake: Condvar::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a job in the queue.
    pub(super) fn push(&self, state: &mut State, job: Job) -> Result<(), AdmitError> {
        state.check()?;
        if state.queue.len() >= WAITING_MAX {
            return Err(AdmitError::Busy { waiting: state.queue.len() });
        }
        state.queue.push_back(job);
        self.wake.notify_one();
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.state().queue.len()
    }

    /// The thread ends once the queue is empty.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.wake.notify_one();
    }

    /// Puts on disk what is in the queue, until it is closed or the disk fails.
    pub(super) fn run(self: &Arc<Self>, mut log: Log) {
        let _stopped = StopAtEnd(self);
        while let Some(jobs) = self.next(&mut log) {
            if let Err(why) = self.put(&mut log, jobs) {
                self.stop(&why);
                return;
            }
        }
        log.mark();
    }

    /// The next jobs for one sync; waits for them. A floor goes alone.
    fn next(&self, log: &mut Log) -> Option<Vec<Job>> {
        let mut state = self.state();
        if state.queue.is_empty() && !state.is_closed {
            // Nobody waits: there is time for the mark.
            drop(state);
            log.mark();
            state = self.state();
        }
        while state.queue.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_admit = |job: &Job| matches!(job, Job::Admit { .. });
        let admits = state.queue.iter().take(BATCH_MAX).take_while(|job| is_admit(job)).count();
        Some(state.queue.drain(..admits.max(1)).collect())
    }

    /// Puts jobs on disk and answers them. Fails when the disk can't be trusted any more.
    fn put(&self, log: &mut Log, jobs: Vec<Job>) -> Result<(), String> {
        let mut batch = Batch::default();
        let mut state = self.state();
        for job in jobs {
            batch.add(&state.kept, job);
        }
        drop(state);
        if batch.is_empty() {
            return Ok(());
        }
        match log.append(&batch.body()) {
            Ok(()) => {}
            Err(AppendError::Full(error)) => {
                batch.refuse(&AdmitError::NotKept { why: error.to_string() });
                return Ok(());
            }
            Err(AppendError::Unknown(error)) => {
                let why = error.to_string();
                batch.refuse(&AdmitError::Stopped { why: why.clone() });
                return Err(why);
            }
        }
        state = self.state();
        batch.finish(&mut state.kept);
        if !log.is_long() {
            return Ok(());
        }
        let bytes = frame::file_of(&state.kept);
        drop(state);
        match log.begin_anew(&bytes) {
            Ok(()) => Ok(()),
            Err(AppendError::Full(error) | AppendError::Unknown(error)) => Err(error.to_string()),
        }
    }

    fn stop(&self, why: &str) {
        let mut state = self.state();
        state.stopped.get_or_insert_with(|| why.to_owned());
        // Whoever waits learns it as its answer is dropped.
        state.queue.clear();
    }
}

/// However the thread ends, nobody goes on waiting for it.
struct StopAtEnd<'a>(&'a Shared);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop("it was closed");
    }
}

impl State {
    /// Whether anything newer can be admitted.
    pub(super) fn check(&self) -> Result<(), AdmitError> {
        match &self.stopped {
            Some(why) => Err(AdmitError::Stopped { why: why.clone() }),
            None => Ok(()),
        }
    }
}

/// What one sync puts on disk.
#[derive(Debug, Default)]
struct Batch {
    /// The largest token of each resource.
    staged: HashMap<ResourceName, FencingToken>,
    /// How many of them aren't kept yet.
    new: usize,
    admits: Vec<(ResourceName, FencingToken, Answer<Admitted>)>,
    floor: Option<(FencingToken, Answer<usize>)>,
}

impl Batch {
    /// Adds a job, or answers it if that needs no disk.
    fn add(&mut self, kept: &Kept, job: Job) {
        let (resource, token, answer) = match job {
            Job::Floor { floor, answer } => {
                self.floor = Some((floor, answer));
                return;
            }
            Job::Admit { resource, token, answer } => (resource, token, answer),
        };
        let at_once = match kept.weigh(&resource, token) {
            Verdict::Older(rejected) => Err(rejected.into()),
            Verdict::Equal => Ok(Admitted::Equal),
            Verdict::Newer => match self.stage(kept, &resource, token) {
                Ok(()) => {
                    self.admits.push((resource, token, answer));
                    return;
                }
                Err(error) => Err(error),
            },
        };
        // A caller that has gone needs no answer.
        let _ = answer.send(at_once);
    }

    fn stage(&mut self, kept: &Kept, resource: &ResourceName, token: FencingToken) -> Result<(), AdmitError> {
        if let Some(staged) = self.staged.get_mut(resource) {
            *staged = token.max(*staged);
            return Ok(());
        }
        kept.has_room(resource, self.new)?;
        self.new += usize::from(!kept.holds(resource));
        self.staged.insert(resource.clone(), token);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.admits.is_empty() && self.floor.is_none()
    }

    fn body(&self) -> Body {
        let mut body = Body::default();
        if let Some((floor, _)) = &self.floor {
            body.floor(*floor);
        }
        for (resource, token) in &self.staged {
            body.kept(resource, *token);
        }
        body
    }

    /// It is on disk: keeps it and answers.
    fn finish(self, kept: &mut Kept) {
        if let Some((floor, answer)) = self.floor {
            let _ = answer.send(Ok(kept.raise_floor(floor)));
        }
        for (resource, token) in &self.staged {
            kept.restore(resource.clone(), *token);
        }
        for (resource, found, answer) in self.admits {
            // One that came with a larger one was before it, and would only be outdated at once.
            let _ = answer.send(match self.staged.get(&resource) {
                Some(kept) if found < *kept => Err(Rejected { resource, found, kept: *kept }.into()),
                _ => Ok(Admitted::Newer),
            });
        }
    }

    fn refuse(self, error: &AdmitError) {
        for (_, _, answer) in self.admits {
            let _ = answer.send(Err(error.clone()));
        }
        if let Some((_, answer)) = self.floor {
            let _ = answer.send(Err(error.clone()));
        }
    }
}
