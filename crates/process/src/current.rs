//! Which process runs on this thread.
//!
//! Owns: the answer, for each thread. Never: touches the thread's memory in a program that simulates nothing.

use crate::process::Process;
use std::cell::RefCell;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether there ever was a simulated process. While not, nobody has to look which one runs.
static IS_SIMULATING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// `None` is the real process.
    static CURRENT: RefCell<Option<Process>> = const { RefCell::new(None) };
}

/// From now on there may be simulated processes.
pub(crate) fn simulate() {
    IS_SIMULATING.store(true, Ordering::Relaxed);
}

/// The simulated process that runs, unless the real one does.
pub(crate) fn current() -> Option<Process> {
    look(Clone::clone)
}

/// What `read` says of the simulated process that runs.
pub(crate) fn look<R>(read: impl FnOnce(&Process) -> R) -> Option<R> {
    if !IS_SIMULATING.load(Ordering::Relaxed) {
        return None;
    }
    // A thread that ends has no process any more.
    CURRENT.try_with(|current| current.borrow().as_ref().map(read)).ok().flatten()
}

/// While it lives, `process` runs on this thread. It holds whichever ran before in the meantime.
pub(crate) struct Scope<'a> {
    process: &'a mut Option<Process>,
}

impl<'a> Scope<'a> {
    pub(crate) fn enter(process: &'a mut Option<Process>) -> Self {
        exchange(process);
        Self { process }
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        exchange(self.process);
        if std::thread::panicking()
            && let Some(process) = self.process
        {
            process.panicked();
        }
    }
}

fn exchange(process: &mut Option<Process>) {
    // Without the thread's memory nothing asks who runs.
    let _ = CURRENT.try_with(|current| mem::swap(&mut *current.borrow_mut(), process));
}
