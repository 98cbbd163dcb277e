//! The terminal, when `exec` is run by hand.
//!
//! Owns: which process group has the foreground. Never: reads or writes the terminal.

use rustix::process::{Pid, getpgrp};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

/// A terminal that this process has in the foreground and may lend to the command.
#[derive(Debug)]
pub(super) struct Terminal {
    own_group: Pid,
    stdin: io::Stdin,
}

impl Terminal {
    /// Takes charge of the terminal; `None` when there is none to lend.
    ///
    /// Input and output both have to be the terminal. With `kunci exec … | less` it stays with the pipeline, or
    /// `less` couldn't read its keys; the command then gets Ctrl-C from us.
    pub(super) fn take_charge() -> Option<Self> {
        let (stdin, own_group) = (io::stdin(), getpgrp());
        if !isatty(&stdin) || !isatty(io::stdout()) || tcgetpgrp(&stdin) != Ok(own_group) {
            return None;
        }
        // From the background, lending and taking back would stop this process with TTOU.
        mask(libc::SIG_BLOCK).ok()?;
        Some(Self { own_group, stdin })
    }

    /// Lends the foreground to a group again, unless somebody else has it now.
    pub(super) fn lend_to(&self, group: Pid) {
        if tcgetpgrp(self.stdin()) == Ok(self.own_group) {
            // Without the terminal the command stops when it reads; that is seen and passed on.
            let _ = tcsetpgrp(self.stdin(), group);
        }
    }

    /// Takes the foreground back from `group`.
    pub(super) fn take_back_from(&self, group: Pid) {
        if tcgetpgrp(self.stdin()) == Ok(group) {
            // A terminal that is gone can't be taken back and needn't be.
            let _ = tcsetpgrp(self.stdin(), self.own_group);
        }
    }

    fn stdin(&self) -> BorrowedFd<'_> {
        self.stdin.as_fd()
    }
}

/// In the child, after the fork: takes the foreground for its own group before the command runs, so that the
/// command's first read finds it there. Only async-signal-safe calls.
pub(super) fn take_in_child() {
    #[expect(unsafe_code, reason = "io::stdin() takes a lock, which isn't safe after a fork")]
    // SAFETY: descriptor 0 is open: the parent found it to be its terminal, and nothing closes it in between.
    let stdin = unsafe { BorrowedFd::borrow_raw(0) };
    let _ = tcsetpgrp(stdin, getpgrp());
    let _ = mask(libc::SIG_UNBLOCK);
}

/// Blocks or unblocks TTOU in the calling thread.
#[expect(unsafe_code, reason = "rustix leaves signal masks to the C library")]
fn mask(how: libc::c_int) -> io::Result<()> {
    let mut only_ttou = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` fills the set in before anything reads it; the others get pointers to that set, which
    // outlives the calls, and a null pointer where the old mask isn't wanted.
    let result = unsafe {
        libc::sigemptyset(only_ttou.as_mut_ptr());
        libc::sigaddset(only_ttou.as_mut_ptr(), libc::SIGTTOU);
        libc::pthread_sigmask(how, only_ttou.as_ptr(), std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}
