//! A gate that outlives its process.
//!
//! Owns: what callers see. Never: admits a larger token before it is on disk.

mod folder;
mod frame;
mod log;
#[cfg(test)]
mod tests;
mod writer;

use super::kept::{Kept, Verdict};
use super::{AdmitError, Admitted, RESOURCES_MAX};
use folder::Folder;
use kunci_types::{FencingToken, ResourceName};
use log::Log;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use tokio::sync::oneshot;
use writer::{Job, Shared};

/// Why a folder can't be opened as a gate.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was done.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has it.
    #[error(
        "the gate in {} is in use by process {process}: end that one, or take another folder; two that compare alone \
         would each let in what the other has refused",
        folder.display()
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// Its process id; empty when it couldn't be read.
        process: String,
    },
    /// What was on disk for certain isn't as it was.
    #[error(
        "{} is damaged at byte {at}: {what}. Nothing was changed. If it can't be brought back as it was, move it away and \
         begin with a floor: the token of any lease that was just granted, so that everybody before it stays outside",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, in bytes.
        at: usize,
        /// What was found and expected.
        what: &'static str,
    },
    /// A later version wrote it.
    #[error("{} has version {found}, expected 1: open it with the kunci that wrote it, or a later one", path.display())]
    Later {
        /// The file.
        path: PathBuf,
        /// The version that was found.
        found: u32,
    },
}

/// A gate in a folder of its own. A larger token is admitted once it is on disk, so that it is compared with after any
/// crash; tokens that come at the same time share a sync. Equal and older ones need no disk.
///
/// One process has a folder at a time. What is kept is bounded, as it is for [`Gate`](super::Gate). Dropping the gate
/// waits for the disk.
///
/// # Example
/// ```
/// use kunci_fence::gate::FileGate;
/// use kunci_types::{FencingToken, ResourceName};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// let orders = ResourceName::parse("orders/42").unwrap();
/// let token = |number| FencingToken::presented(number).unwrap();
///
/// let gate = FileGate::open(folder).unwrap();
/// gate.admit_blocking(&orders, token(7)).unwrap();
/// drop(gate);
///
/// let gate = FileGate::open(folder).unwrap();
/// assert!(gate.admit_blocking(&orders, token(6)).is_err());
/// ```
#[derive(Debug)]
pub struct FileGate {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl FileGate {
    /// Opens the gate in this folder, which is made if it isn't there. Reads all of it; what a crash left unfinished at
    /// its end was never admitted and is dropped.
    ///
    /// # Errors
    /// [`OpenError`]; damage is never repaired silently.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Self::open_keeping(folder, RESOURCES_MAX)
    }

    /// As [`FileGate::open`], for at most this many resources.
    ///
    /// # Errors
    /// As [`FileGate::open`].
    pub fn open_keeping(folder: &Path, resources_max: usize) -> Result<Self, OpenError> {
        let mut kept = Kept::new(resources_max);
        let log = Log::open(Folder::take(folder)?, &mut kept)?;
        Self::over(log, kept).map_err(folder::doing("start the writing thread for", folder))
    }

    fn over(log: Log, kept: Kept) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(kept));
        let of_writer = Arc::clone(&shared);
        let writer =
            std::thread::Builder::new().name("kunci-gate".to_owned()).spawn(move || of_writer.run(log))?;
        Ok(Self { shared, writer: Some(writer) })
    }

    /// Compares the token with the kept one, and keeps it if it is larger, in one step; returns once it is on disk.
    ///
    /// A future that is dropped may still have moved the resource up: then older tokens are rejected, as they will be
    /// anyway when the same token comes again.
    ///
    /// # Errors
    /// [`AdmitError`].
    pub async fn admit(&self, resource: &ResourceName, token: FencingToken) -> Result<Admitted, AdmitError> {
        match self.begin(resource, token) {
            Begun::Now(answer) => answer,
            Begun::OnDisk(answer) => self.answered(answer.await),
        }
    }

    /// [`FileGate::admit`] for threads that may wait.
    ///
    /// # Errors
    /// [`AdmitError`].
    pub fn admit_blocking(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Admitted, AdmitError> {
        match self.begin(resource, token) {
            Begun::Now(answer) => answer,
            Begun::OnDisk(answer) => self.answered(wait(answer)),
        }
    }

    /// The kept token of a resource; for one that isn't kept the floor, if there is one.
    pub fn kept_of(&self, resource: &ResourceName) -> Option<FencingToken> {
        self.shared.state().kept.of(resource)
    }

    /// As [`Gate::raise_floor`](super::Gate::raise_floor); returns once the floor is on disk. For threads that may wait.
    ///
    /// # Errors
    /// [`AdmitError`], but never as rejected.
    pub fn raise_floor(&self, floor: FencingToken) -> Result<usize, AdmitError> {
        let (answer, answered) = oneshot::channel();
        let mut state = self.shared.state();
        if state.kept.floor().is_some_and(|present| present >= floor) {
            return Ok(0);
        }
        self.shared.push(&mut state, Job::Floor { floor, answer })?;
        drop(state);
        self.answered(wait(answered))
    }

    /// How many resources are kept.
    pub fn resources(&self) -> usize {
        self.shared.state().kept.len()
    }

    /// Whether it still admits newer tokens.
    ///
    /// # Errors
    /// [`AdmitError::Stopped`] after a disk that failed.
    pub fn check(&self) -> Result<(), AdmitError> {
        self.shared.state().check()
    }

    fn begin(&self, resource: &ResourceName, token: FencingToken) -> Begun {
        let mut state = self.shared.state();
        match state.kept.weigh(resource, token) {
            Verdict::Older(rejected) => return Begun::Now(Err(rejected.into())),
            // Not by a gate that has stopped: it admits nothing.
            Verdict::Equal => return Begun::Now(state.check().map(|()| Admitted::Equal)),
            Verdict::Newer => {}
        }
        let (answer, answered) = oneshot::channel();
        let job = Job::Admit { resource: resource.clone(), token, answer };
        match self.shared.push(&mut state, job) {
            Ok(()) => Begun::OnDisk(answered),
            Err(error) => Begun::Now(Err(error)),
        }
    }

    /// Without an answer the thread has ended, and said why.
    fn answered<T>(
        &self,
        answer: Result<Result<T, AdmitError>, oneshot::error::RecvError>,
    ) -> Result<T, AdmitError> {
        answer.unwrap_or_else(|_| {
            self.check()?;
            Err(AdmitError::Stopped { why: "its thread has ended".to_owned() })
        })
    }
}

impl Drop for FileGate {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(writer) = self.writer.take() {
            // If it panicked there is nothing left to wait for.
            let _ = writer.join();
        }
    }
}

/// An admission on its way.
enum Begun {
    Now(Result<Admitted, AdmitError>),
    OnDisk(oneshot::Receiver<Result<Admitted, AdmitError>>),
}

/// Waits for an answer, in whatever thread: tokio's own waiting panics in the threads of a runtime.
fn wait<T>(answer: oneshot::Receiver<T>) -> Result<T, oneshot::error::RecvError> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut answer = pin!(answer);
    loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
