//! Where a node keeps its data: the files of the system, or those of a simulated disk.
//!
//! Owns: the few file operations that a data folder needs, and which log stands on them. Never: what is in a file, or
//! the order of write, sync and rename; that is the business of whoever owns the file.
//!
//! Only a sync takes time here. The system's files block their thread for it, so such work is done beside the tasks
//! (`work`); a simulated disk lets the task wait, and simulated time passes.

mod system;

use futures::future::BoxFuture;
use std::any::Any;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
pub(crate) use system::SystemFiles;
use tokio::sync::oneshot;

/// Where a node keeps its data. A clone is another handle to the same.
#[derive(Clone, Debug)]
pub struct Storage {
    files: Arc<dyn Files>,
    log: LogKind,
}

/// Which log stands on the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogKind {
    /// The log library's, which brings its own files and thread.
    Library,
    /// Ours, with the library's records, for files that the library can't use.
    Plain,
}

/// The end of a sync. What was written before it was asked for is on disk once it says so.
pub type Synced = BoxFuture<'static, io::Result<()>>;

/// The files of one disk. Every operation but the syncs is done when it returns, as far as the page cache.
pub trait Files: fmt::Debug + Send + Sync {
    /// Whether a sync blocks the thread instead of letting the task wait.
    fn blocks(&self) -> bool;
    /// Whether anything has this name.
    fn exists(&self, path: &Path) -> bool;
    /// Whether there is a folder of this name.
    fn is_folder(&self, path: &Path) -> bool;
    /// Makes a folder in one that is there.
    ///
    /// # Errors
    /// As the system's.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// What is in a folder, in no order.
    ///
    /// # Errors
    /// As the system's.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// All bytes of a file.
    ///
    /// # Errors
    /// As the system's.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Opens a file.
    ///
    /// # Errors
    /// As the system's.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn OpenFile>>;
    /// Gives a file another name, in place of a file that has that name.
    ///
    /// # Errors
    /// As the system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Takes a file's name away. Who has it open keeps it.
    ///
    /// # Errors
    /// As the system's.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes new, changed and removed names of a folder durable.
    fn sync_folder(&self, folder: &Path) -> Synced;
    /// Takes a file, made if it is missing, for this process alone.
    ///
    /// # Errors
    /// As the system's.
    fn lock(&self, path: &Path) -> io::Result<Lock>;
    /// Bytes that may still be written to the disk under a folder.
    ///
    /// # Errors
    /// As the system's.
    fn free_bytes(&self, folder: &Path) -> io::Result<u64>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read what is there.
    Read,
    /// To write behind what is there, or to cut it.
    Append,
    /// As a new file; an error if the name is taken.
    New,
    /// As an empty file, whatever was there.
    Replace,
}

/// One open file. It stays usable when its name is taken away.
pub trait OpenFile: fmt::Debug + Send + Sync {
    /// How long it is.
    ///
    /// # Errors
    /// As the system's.
    fn bytes(&self) -> io::Result<u64>;
    /// Reads from an offset; says how much it was, 0 at the end.
    ///
    /// # Errors
    /// As the system's.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of it behind what is there.
    ///
    /// # Errors
    /// As the system's; a part of it may be there then.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts it to a length.
    ///
    /// # Errors
    /// As the system's.
    fn cut(&self, bytes: u64) -> io::Result<()>;
    /// Makes content and length durable.
    fn sync_data(&self) -> Synced;
    /// Makes content, length and what else the system keeps of a file durable.
    fn sync_all(&self) -> Synced;
}

/// What became of the wish to have a file alone.
#[derive(Debug)]
pub enum Lock {
    /// This process has it until this is dropped.
    Held(Hold),
    /// Another process has it, and left its id there.
    Taken(Option<String>),
}

/// Whatever holds a lock: it ends when this is dropped.
pub struct Hold {
    _held: Box<dyn Any + Send + Sync>,
}

impl Hold {
    /// A lock that lives as long as `held`.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hold")
    }
}

impl Storage {
    /// The files of the system.
    pub fn system() -> Self {
        Self { files: Arc::new(SystemFiles), log: LogKind::Library }
    }

    /// Other files, with the log as plain files among them. For a simulated disk.
    pub fn on(files: impl Files + 'static) -> Self {
        Self { files: Arc::new(files), log: LogKind::Plain }
    }

    pub(crate) fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    pub(crate) fn log_kind(&self) -> LogKind {
        self.log
    }
}

/// Does work with files without holding up other tasks.
pub(crate) async fn work<T: Send + 'static>(
    files: &Arc<dyn Files>,
    work: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    if !files.blocks() {
        return work.await;
    }
    kunci_process::blocking(move || at_once(work)).await.map_err(io::Error::other)?
}

/// How much less than other threads one in the background gets: about a tenth, where they leave nothing.
const BACKGROUND_NICE: i32 = 10;

/// As [`work`], for what takes long and nobody waits for: other threads of the node, and those of other programs, go first.
pub(crate) async fn background_work<T: Send + 'static>(
    files: &Arc<dyn Files>,
    work: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    if !files.blocks() {
        return work.await;
    }
    let (done, outcome) = oneshot::channel();
    let run = move || {
        // A thread that has stood back can't come forward again without privileges, so it isn't one of a pool. The
        // system takes this thread's number for what other systems would call a process.
        if let Err(error) = rustix::process::setpriority_process(None, BACKGROUND_NICE) {
            tracing::debug!(%error, "could not let other threads go first");
        }
        // Nobody may be there any more.
        drop(done.send(at_once(work)));
    };
    std::thread::Builder::new().name("background".to_owned()).spawn(run)?;
    outcome.await.map_err(|_| io::Error::other("the work panicked; the reason is on stderr"))?
}

/// Does work with the system's files, which never lets anybody wait: it blocks the thread instead.
pub(crate) fn at_once<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        std::thread::yield_now();
    }
}
