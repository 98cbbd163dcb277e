//! The system's clocks on a thread that simulates.
//!
//! Owns: `clock_gettime` there: what the wall clock shows, which jumps, and what the standard library's `Instant` is. Never:
//! decides anything; whatever matters reads its process's clock.

use std::cell::Cell;
use std::time::Duration;
use tokio::time::Instant;

/// What the wall clock shows at the beginning of every world: 2026-01-01.
const WALL_AT_FIRST: Duration = Duration::from_secs(1_767_225_600);
/// What the monotonic clock shows then: a machine that was started a day ago.
const MONOTONIC_AT_FIRST: Duration = Duration::from_secs(86_400);

/// The clocks of one thread.
#[derive(Clone, Copy)]
struct Shown {
    /// Time since the world began.
    passed: Duration,
    wall_at_first: Duration,
}

thread_local! {
    // No destructor: it can be asked for as long as the thread runs any code.
    static SHOWN: Cell<Option<Shown>> = const { Cell::new(None) };
}

/// This thread's clocks are a world's from now on.
pub(crate) fn begin() {
    SHOWN.set(Some(Shown { passed: Duration::ZERO, wall_at_first: WALL_AT_FIRST }));
}

/// Lets them show the runtime's time, `began` being the world's beginning.
pub(crate) fn show(began: Instant) {
    if let Some(shown) = SHOWN.get() {
        SHOWN.set(Some(Shown { passed: began.elapsed(), ..shown }));
    }
}

/// Whether this thread's clocks are a world's.
pub(crate) fn is_simulated() -> bool {
    SHOWN.get().is_some()
}

/// Moves the wall clock by so many seconds, back or forth.
pub(crate) fn step_wall_clock(seconds: i64) {
    if let Some(shown) = SHOWN.get() {
        let step = Duration::from_secs(seconds.unsigned_abs());
        let moved = if seconds < 0 {
            shown.wall_at_first.checked_sub(step)
        } else {
            shown.wall_at_first.checked_add(step)
        };
        SHOWN.set(Some(Shown { wall_at_first: moved.unwrap_or(WALL_AT_FIRST), ..shown }));
    }
}

/// What clock `id` shows on this thread, if it is a world's.
fn shown(id: libc::clockid_t) -> Option<Duration> {
    let Shown { passed, wall_at_first } = SHOWN.get()?;
    match id {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
            wall_at_first.checked_add(passed)
        }
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => MONOTONIC_AT_FIRST.checked_add(passed),
        // How long a thread has computed is no time of a world.
        _ => None,
    }
}

#[expect(unsafe_code, reason = "it takes the place of a function of libc, whose arguments are raw")]
mod system {
    use libc::{c_int, clockid_t, time_t, timespec};

    /// The system's clocks; on a thread that simulates, its world's.
    ///
    /// # Safety
    /// As for libc's: a `timespec` at `time` may be written.
    // SAFETY: it has the name, the signature and the contract of libc's `clock_gettime`, which it replaces.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
        if let Some(shown) = super::shown(id)
            && !time.is_null()
        {
            let seconds = time_t::try_from(shown.as_secs()).unwrap_or(time_t::MAX);
            let shown = timespec { tv_sec: seconds, tv_nsec: shown.subsec_nanos().into() };
            // SAFETY: the caller lets a `timespec` at `time` be written.
            unsafe { time.write(shown) };
            return 0;
        }
        // SAFETY: the same arguments go to the system call that libc's function makes.
        let answered = unsafe { libc::syscall(libc::SYS_clock_gettime, id, time) };
        c_int::try_from(answered).unwrap_or(-1)
    }
}
