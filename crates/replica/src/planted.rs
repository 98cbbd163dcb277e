//! Where the simulator plants bugs of a replica, and looks into one. In no build but the simulator's
//! (`--cfg kunci_plants`).
//!
//! Owns: the few places where another behaviour can take the place of the product's, and what is shown there. Never: a
//! bug by itself; without a name of a plant a replica is as it is.

use kunci_core::LockTable;
use kunci_core::command::{Command, Entry};
use kunci_core::reply::{Applied, Reply};
use kunci_types::ClusterTime;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

pub use crate::log_store::seen::{Seen, record};

/// What a bug may change. Everything is as it is where a plant says nothing.
pub trait Planted {
    /// Applies a committed entry.
    fn apply(&self, table: &mut LockTable, entry: &Entry) -> Applied {
        table.apply(entry)
    }

    /// A table has been restored from a snapshot.
    fn restored(&self, table: LockTable) -> LockTable {
        table
    }

    /// Answers a command at once, from this node's own table.
    fn answers_alone(&self, _table: &LockTable, _command: &Command) -> Option<Alone> {
        None
    }

    /// What a read looks at instead of the table.
    fn looks_at(&self, _table: &LockTable) -> Option<LockTable> {
        None
    }
}

/// An answer that no quorum was asked for.
pub struct Alone {
    /// What is answered; with `None` nobody can say what became of it.
    pub reply: Option<Reply>,
    /// Whether the command is proposed all the same.
    pub is_proposed: bool,
}

/// A bug of the parts around the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bug {
    /// None.
    #[default]
    None,
    /// A vote is kept in memory alone.
    VoteForgotten,
    /// All nodes but the first say that an entry is on their disks before it is.
    AcknowledgedBeforeSync,
    /// What is due is looked after only when the time is committed anyway.
    ExpiryLate,
    /// A new leader doesn't serve for a while.
    TakeOverLate,
}

/// What the simulator looks at.
pub trait Watching {
    /// An entry is about to be applied.
    fn applies(&self, entry: &Applying<'_>);

    /// This node leads, in this term of the consensus library.
    fn leads(&self, term: u64, node_id: u64);
}

/// An entry that is about to be applied.
pub struct Applying<'a> {
    /// The term in which it was proposed.
    pub term: u64,
    /// Its place in the log.
    pub index: u64,
    /// The state before it.
    pub table: &'a LockTable,
    /// When it is a membership: the sets of voters, of each of which a majority is needed.
    pub voters: Option<Vec<BTreeSet<u64>>>,
}

thread_local! {
    static PLANTED: RefCell<Option<Rc<dyn Planted>>> = const { RefCell::new(None) };
    static BUG: Cell<Bug> = const { Cell::new(Bug::None) };
    static WATCHING: RefCell<Option<Rc<dyn Watching>>> = const { RefCell::new(None) };
}

/// Plants a bug of the parts around the table in every replica of this thread.
pub fn plant_bug(bug: Bug) {
    BUG.set(bug);
}

pub(crate) fn is(bug: Bug) -> bool {
    BUG.get() == bug
}

/// Whether the node of the calling task says too early what is on its disk.
pub(crate) fn acknowledges_before_sync() -> bool {
    is(Bug::AcknowledgedBeforeSync)
        && kunci_process::Process::current().is_some_and(|process| !process.name().starts_with("n1."))
}

/// When a leader looks after a deadline.
pub(crate) fn looked_after(deadline: Option<ClusterTime>) -> Option<ClusterTime> {
    deadline.map(|deadline| if is(Bug::ExpiryLate) { deadline.plus_ms(3_600_000) } else { deadline })
}

/// Who looks into every replica of this thread from now on.
pub fn watch(watching: Option<Rc<dyn Watching>>) {
    WATCHING.set(watching);
}

/// Shows something to whoever looks.
pub(crate) fn show(look: impl FnOnce(&dyn Watching)) {
    if let Some(watching) = WATCHING.with_borrow(Clone::clone) {
        look(&*watching);
    }
}

/// Plants a bug in every replica of this thread.
pub fn plant(planted: Rc<dyn Planted>) {
    PLANTED.set(Some(planted));
}

/// Does something with the planted bug, if there is one.
pub(crate) fn with<R>(work: impl FnOnce(&dyn Planted) -> R) -> Option<R> {
    let planted = PLANTED.with_borrow(Clone::clone)?;
    Some(work(&*planted))
}
