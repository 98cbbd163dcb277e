//! Being on another network.
//!
//! Owns: threads and processes that live in a network namespace. A namespace belongs to a thread, so a client gets a
//! thread and a runtime of its own, whose sockets are all made there.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// Where `ip netns` keeps them.
pub(super) const NAMESPACES: &str = "/run/netns";

/// Runs a future on a thread in a namespace.
pub(super) fn begin<T, F, Fut>(namespace: &str, work: F) -> JoinHandle<T>
where
    T: Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = T>,
{
    let namespace = File::open(Path::new(NAMESPACES).join(namespace)).unwrap();
    std::thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(work())
    })
}

/// Waits for a thread, and goes on with its panic when it had one.
pub(super) fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A command in a namespace. It becomes the program itself, so its process id is the program's; it ends with the
/// thread that starts it, so that a killed test leaves nothing running.
pub(super) fn command(namespace: &str, program: &Path) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={NAMESPACES}/{namespace}"));
    command.args(["--", "setpriv", "--pdeathsig", "KILL", "--"]).arg(program);
    command.stdin(Stdio::null());
    command
}
