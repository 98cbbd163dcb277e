//! The random source of a simulated world.
//!
//! Owns: the system's `getrandom` on a thread that simulates. Never: answers on any other thread; there it asks the system.
//!
//! Everything in a process that wants random bits gets them there: the hash seeds of the standard library, the crate
//! `getrandom` and so our own ids, the generator behind `rand::rng()` and so the timeouts of elections. Each of them keeps
//! what it drew first for as long as its thread lives, so a seed has to run on a thread of its own.

use std::cell::Cell;

/// A generator whose whole sequence follows from its seed: SplitMix64.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// The beginning of a sequence.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A sequence of its own for each purpose, so that a draw more in one changes nothing in another.
    pub fn of(seed: u64, purpose: &str) -> Self {
        let mut mixed = Self::new(seed);
        for byte in purpose.bytes() {
            mixed.state = mixed.bits() ^ u64::from(byte);
        }
        mixed
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below((to - from).saturating_add(1))
    }

    /// An index into something with `len` places.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// One of several; `None` of nothing.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.index(of.len()))
    }

    /// Yes, so many times in a million.
    pub fn hits_ppm(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < u64::from(ppm)
    }

    /// Fills all of it.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let bits = self.bits().to_le_bytes();
            chunk.iter_mut().zip(bits).for_each(|(byte, bit)| *byte = bit);
        }
    }
}

thread_local! {
    // No destructor: it can be asked for as long as the thread runs any code.
    static SOURCE: Cell<Option<Seeded>> = const { Cell::new(None) };
}

/// Makes this thread's random bits follow from `seed` until its end.
pub(crate) fn follow(seed: u64) {
    SOURCE.set(Some(Seeded::of(seed, "system")));
}

/// Fills it from the thread's seed, if there is one.
fn fill(bytes: &mut [u8]) -> bool {
    let Some(mut source) = SOURCE.get() else { return false };
    source.fill(bytes);
    SOURCE.set(Some(source));
    true
}

/// Runs a world on a fresh thread, where all randomness and every clock follow from `seed`.
///
/// # Errors
/// When it panicked: what it said.
pub fn on_seeded_thread<R: Send>(seed: u64, work: impl FnOnce() -> R + Send) -> Result<R, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(format!("seed {seed}")).spawn_scoped(scope, || {
            follow(seed);
            crate::clock::begin();
            work()
        });
        thread.map_err(|error| format!("start a thread: {error}"))?.join().map_err(|panic| words(&*panic))
    })
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
}

/// Checks that the system's source was replaced.
///
/// # Errors
/// When a world's randomness wouldn't follow its seed.
pub fn check() -> Result<(), String> {
    let draw = || {
        let mut bits = [0; 8];
        getrandom::fill(&mut bits).map(|()| bits).map_err(|error| error.to_string())
    };
    let [first, second] = [1, 1].map(|seed| on_seeded_thread(seed, draw));
    if first?? != second?? {
        return Err(
            "the system's random source wasn't replaced: build the simulator for Linux with glibc".to_owned()
        );
    }
    Ok(())
}

#[expect(unsafe_code, reason = "it takes the place of a function of libc, whose arguments are raw")]
mod system {
    use libc::{c_uint, c_void, size_t, ssize_t};

    /// The system's random bits; on a thread that simulates, its seed's.
    ///
    /// # Safety
    /// As for libc's: `length` bytes at `buffer` may be written.
    // SAFETY: it has the name, the signature and the contract of libc's `getrandom`, which it replaces.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
        if length == 0 || buffer.is_null() {
            return 0;
        }
        // SAFETY: the caller lets `length` bytes at `buffer` be written, and nobody else has them meanwhile. They count
        // as initialised only after they were: a `u8` has no invalid bits, and `fill` reads none before it writes it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
        if super::fill(bytes) {
            return ssize_t::try_from(length).unwrap_or(ssize_t::MAX);
        }
        // SAFETY: the same arguments go to the system call that libc's function makes.
        let drawn = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
        // On every system that has it, both are as wide as a pointer.
        ssize_t::try_from(drawn).unwrap_or(-1)
    }
}
