//! Another machine, as far as a program can see: so that a seed isn't one world here and another there.
//!
//! Owns: the differences: the host's name, the number of cores, the environment, the working folder. Never: says whether a
//! world cares.

use std::process::Command;

/// The argument that makes a process go there, before it runs its seed.
pub(crate) const ARGUMENT: &str = "--elsewhere";

/// What the environment is there.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("HOME", "/nowhere"),
    ("HOSTNAME", "elsewhere"),
    ("LANG", "tr_TR.UTF-8"),
    ("RUST_LOG", "trace"),
    ("TZ", "Pacific/Kiritimati"),
    ("USER", "nobody"),
];

/// Lets a process begin there.
pub(crate) fn begin(command: &mut Command) {
    command.env_clear().envs(ENVIRONMENT).current_dir("/").arg(ARGUMENT);
}

/// Goes there. Without the right to it the host keeps its name; the rest differs all the same.
pub(crate) fn go() {
    system::use_one_core();
    system::change_host_name();
}

#[expect(unsafe_code, reason = "calls of libc, whose arguments are raw")]
mod system {
    const NAME: &[u8] = b"elsewhere";

    /// This process has one core from now on.
    pub(super) fn use_one_core() {
        // SAFETY: a set of processors is plain bits, and all of them may be 0.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: `set` may be written, and is as large as said.
        if unsafe { libc::sched_getaffinity(0, size, &raw mut set) } != 0 {
            return;
        }
        let all = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
        // SAFETY: `core` is smaller than the number of bits in the set.
        let Some(core) = (0..all).find(|core| unsafe { libc::CPU_ISSET(*core, &set) }) else { return };
        // SAFETY: both only touch `set`.
        unsafe {
            libc::CPU_ZERO(&mut set);
            libc::CPU_SET(core, &mut set);
        }
        // SAFETY: `set` may be read, and is as large as said. A refusal changes nothing.
        unsafe { libc::sched_setaffinity(0, size, &raw const set) };
    }

    /// The host has another name for this process from now on, and for nobody else.
    pub(super) fn change_host_name() {
        // SAFETY: it takes no pointer. The process has one thread so far.
        if unsafe { libc::unshare(libc::CLONE_NEWUTS) } == 0 {
            // SAFETY: `NAME` may be read, and is as long as said. A refusal changes nothing.
            unsafe { libc::sethostname(NAME.as_ptr().cast(), NAME.len()) };
        }
    }
}
