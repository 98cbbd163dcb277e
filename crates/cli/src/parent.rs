//! A child that doesn't outlive its parent.
//!
//! Owns: the tie between the two. Never: starts a child.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::io;

/// To be called in a child between fork and exec: the kernel kills it when `parent` ends, however that ends.
///
/// The tie is to the thread that forked; it has to live as long as the child is wanted. Makes system calls alone:
/// allocates nothing and takes no lock.
pub(crate) fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the line above.
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}
