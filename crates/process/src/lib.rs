//! The process that a task belongs to.
//!
//! Owns: how a task is started, who may still run, and the clock that its process reads. Never: decides when a process
//! dies or stands still; a simulated world does.
//!
//! A program is one process, and there everything here is tokio's own, for the price of a branch. A simulated world has
//! many processes on one thread: whatever a task starts belongs to the process of that task.

mod clock;
mod current;
mod process;
mod task;
mod time;

pub use process::{Killed, Process};
pub use task::{blocking, spawn, spawn_into};
pub use time::{
    Elapsed, Interval, Sleep, Timeout, boot_now, boot_sleep_until, interval, now, since, sleep, sleep_until,
    timeout, timeout_at,
};
