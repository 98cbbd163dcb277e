//! Where the simulator plants bugs of a replica. In no build but the simulator's (`--cfg kunci_plants`).
//!
//! Owns: the few places where another behaviour can take the place of the product's. Never: a bug of its own.

use kunci_core::LockTable;
use kunci_core::command::{Command, Entry};
use kunci_core::reply::{Applied, Reply};
use std::cell::RefCell;
use std::rc::Rc;

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
    /// What is answered.
    pub reply: Reply,
    /// Whether the command is proposed all the same.
    pub is_proposed: bool,
}

thread_local! {
    static PLANTED: RefCell<Option<Rc<dyn Planted>>> = const { RefCell::new(None) };
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
