//! The disks of a simulated world: files in memory that forget at a crash what was not synced.
//!
//! Owns: what a disk keeps, how long a sync takes, and its faults. Never: what is in a file: the product writes and reads
//! its own bytes here, also the damaged ones. Next: `disk/content.rs` is one file's bytes, `disk/names.rs` the folders,
//! `disk/mount.rs` what the product sees.
//!
//! What a crash of the machine leaves is drawn from the seed, within what real file systems do:
//! - of a file, everything that was synced, and any prefix of what was written later; or its length reached the disk
//!   before its last sectors did, which are zeros then;
//! - of a folder, its changes up to some point, in their order; different folders are independent, and so are a file's
//!   name and its bytes.
//!
//! A process that dies alone leaves the page cache as it is: what it wrote is there, synced or not.

mod content;
#[cfg(kunci_plants)]
mod durable;
mod mount;
mod names;

use crate::randomness::Seeded;
use content::Content;
#[cfg(kunci_plants)]
pub(crate) use durable::Durable;
use kunci_replica::Storage;
use mount::Mount;
use names::Names;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long a sync usually takes, in microseconds. The clock of a world goes by milliseconds; less than half of one is
/// none.
const SYNC_US: (u64, u64) = (100, 3_000);

/// One node's disk. It outlives the node's processes. A clone is another handle to the same.
#[derive(Clone)]
pub struct Disk {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// How many writes there were to each part, in the order of `Part`.
    written: watch::Sender<[u64; 3]>,
    hangs: watch::Sender<bool>,
}

struct State {
    random: Seeded,
    names: Names,
    /// The newest mount. An older one reaches nothing.
    mount: u64,
    /// Who holds the lock of which file.
    locked: Option<(PathBuf, u64)>,
    /// How many bytes fit on it; without a number, as many as anybody wants.
    room: Option<u64>,
    sync_us: (u64, u64),
    fails: bool,
    counts: Counts,
    /// What was ever on it of the log, for each time that it was empty.
    #[cfg(kunci_plants)]
    durable: Vec<Durable>,
}

/// What was done on a disk so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Syncs that ended, well or not.
    pub syncs: u64,
    /// Syncs that failed.
    pub failed_syncs: u64,
    /// Writes that found no room.
    pub full_writes: u64,
    /// Files whose unsynced end a crash left cut in the middle or as zeros.
    pub torn_files: u64,
}

/// A part of a data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The log and the vote.
    Log,
    /// The snapshots, also a half written one.
    Snapshots,
    /// Who the node is.
    Identity,
}

impl Part {
    fn of(path: &Path) -> Self {
        match path.extension().and_then(std::ffi::OsStr::to_str) {
            Some("wal") => Self::Log,
            _ if path.parent().is_some_and(|folder| folder.ends_with("snapshots")) => Self::Snapshots,
            _ => Self::Identity,
        }
    }
}

/// How much of what wasn't synced is gone after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All of it.
    All,
    /// Nothing: it had reached the disk by chance.
    Nothing,
    /// Whatever the seed says, for each file and folder.
    Some,
    /// The last write to the log is cut in its middle; of the rest, whatever the seed says.
    Torn,
}

impl Disk {
    /// An empty disk.
    pub fn new(random: Seeded) -> Self {
        let state = State {
            random,
            names: Names::default(),
            mount: 0,
            locked: None,
            room: None,
            sync_us: SYNC_US,
            fails: false,
            counts: Counts::default(),
            #[cfg(kunci_plants)]
            durable: vec![Durable::default()],
        };
        let (written, hangs) = (watch::Sender::new([0; 3]), watch::Sender::new(false));
        Self { shared: Arc::new(Shared { state: Mutex::new(state), written, hangs }) }
    }

    /// Gives the disk to a new process of the node. An older one reaches it no more.
    pub fn storage(&self) -> Storage {
        self.cut();
        let number = self.state().mount;
        Storage::on(Mount::new(self.clone(), number))
    }

    /// Takes the disk away from the process that has it, which is about to die. What it wrote stays as it is.
    pub fn cut(&self) {
        let mut state = self.state();
        state.mount += 1;
        state.locked = None;
    }

    /// Crashes the machine: the process loses the disk, and what wasn't synced is lost as the seed says. Faults of the
    /// disk itself stay. Says in words what was lost, for the trace.
    pub fn lose_power(&self, loss: Loss) -> String {
        self.cut();
        self.state().lose_power(loss)
    }

    /// Empties it, as for a new machine. No fault stays.
    pub fn wipe(&self) {
        self.cut();
        let mut state = self.state();
        state.names = Names::default();
        #[cfg(kunci_plants)]
        state.durable.push(Durable::default());
        (state.room, state.sync_us, state.fails) = (None, SYNC_US, false);
        drop(state);
        self.set_hanging(false);
    }

    /// How long a sync takes from now on; `None`: as usual.
    pub fn set_sync_time(&self, between: Option<(Duration, Duration)>) {
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.state().sync_us = between.map_or(SYNC_US, |(least, most)| (micros(least), micros(most)));
    }

    /// Whether syncs never end, until this is called again.
    pub fn set_hanging(&self, hangs: bool) {
        self.shared.hangs.send_replace(hangs);
    }

    /// Whether syncs fail with an I/O error.
    pub fn set_failing(&self, fails: bool) {
        self.state().fails = fails;
    }

    /// Leaves room for so many bytes more; `None`: room for everything.
    pub fn set_room(&self, bytes: Option<u64>) {
        let mut state = self.state();
        state.room = bytes.map(|free| state.names.bytes().saturating_add(free));
    }

    /// Flips one bit of what is on the disk in that part, in the middle of a node's life or after its end. Says which in
    /// words. `None` if nothing there can be damaged: no byte, or a torn end, where damage and a crash can't be told
    /// apart any more.
    pub fn flip_bit(&self, part: Part) -> Option<String> {
        self.state().flip_bit(part)
    }

    /// Waits until something is written to a part that isn't synced yet.
    pub async fn written(&self, part: Part) {
        let mut written = self.shared.written.subscribe();
        let before = written.borrow_and_update()[part as usize];
        // The sender lives as long as this handle.
        drop(written.wait_for(|written| written[part as usize] > before).await);
    }

    /// What was done on it so far.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Every file with what is in it, by name.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let state = self.state();
        state.names.files().map(|(path, file)| (path.clone(), content::lock(file).bytes().to_vec())).collect()
    }

    /// How often it was emptied.
    #[cfg(kunci_plants)]
    pub(crate) fn wipes(&self) -> usize {
        self.state().durable.len() - 1
    }

    /// Looks at what was ever on it of the log, after it had been emptied so often.
    #[cfg(kunci_plants)]
    pub(crate) fn look_at_log<R>(&self, wipes: usize, look: impl FnOnce(&Durable) -> R) -> Option<R> {
        let mut state = self.state();
        state.note_log();
        state.durable.get(wipes).map(look)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.state().names.bytes()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_write(&self, part: Part) {
        self.shared.written.send_modify(|written| written[part as usize] += 1);
    }
}

impl State {
    /// Takes note of what is on the disk of the log now.
    #[cfg(kunci_plants)]
    fn note_log(&mut self) {
        if let Some(durable) = self.durable.last_mut() {
            durable.note(&self.names);
        }
    }

    fn lose_power(&mut self, loss: Loss) -> String {
        let loss = match loss {
            Loss::Some => {
                *self.random.pick(&[Loss::All, Loss::Nothing, Loss::Some, Loss::Some]).unwrap_or(&loss)
            }
            chosen => chosen,
        };
        let last_log = self.names.files().filter(|(path, _)| Part::of(path) == Part::Log).last();
        let last_log = last_log.map(|(_, file)| Arc::clone(file));
        let mut lost = Vec::new();
        for (path, file) in self.names.all_files() {
            let mut content = content::lock(&file);
            if !content.is_unsynced() {
                continue;
            }
            let is_last_log = last_log.as_ref().is_some_and(|last| Arc::ptr_eq(last, &file));
            let tail = match (loss, is_last_log) {
                (Loss::Torn, true) => Loss::Torn,
                (Loss::Torn, false) => Loss::Some,
                (other, _) => other,
            };
            let what = content.crash(tail, &mut self.random);
            self.counts.torn_files += u64::from(content.is_torn());
            lost.push(format!("{}: {what}", path.display()));
        }
        lost.extend(self.names.crash(loss, &mut self.random));
        if lost.is_empty() { "nothing was unsynced".to_owned() } else { lost.join("; ") }
    }

    fn flip_bit(&mut self, part: Part) -> Option<String> {
        // A half written new identity is only overwritten.
        let counts = |path: &Path| part != Part::Identity || path.ends_with("identity");
        let files = self.names.files().filter(|(path, _)| Part::of(path) == part && counts(path));
        let files: Vec<_> = files.collect();
        let is_sound = |file: &Arc<Mutex<Content>>| {
            let content = content::lock(file);
            content.synced() > 0 && !content.is_torn()
        };
        let sound: Vec<_> = files.iter().filter(|(_, file)| is_sound(file)).collect();
        if part == Part::Log && sound.len() < files.len() {
            return None;
        }
        let (path, file) = self.random.pick(&sound)?;
        let bit = content::lock(file).flip(&mut self.random);
        Some(format!("bit {bit} of {}", path.display()))
    }
}
