//! Chance from a seed: the same seed makes the same choices, in the same order, for each client.
//!
//! Owns: what a seed means. Never: what a machine does in between; with real processes a seed repeats the workload and the
//! faults, not the schedule.

/// xorshift64*, ours, so that no update of a dependency changes what a seed means.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The chance of one user of a seed; each number has its own.
    pub fn new(seed: u64, user: u64) -> Self {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ user.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let mut random = Self(mixed | 1);
        // The first draws of near seeds are near each other.
        for _ in 0..8 {
            random.bits();
        }
        random
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + (self.bits() >> 16) % (most - least + 1)
    }

    /// True in so many of a hundred.
    pub fn percent(&mut self, of_hundred: u64) -> bool {
        self.between(0, 99) < of_hundred
    }

    /// A request id of 128 bits. Drawn from the seed: in a test nobody may guess it, and everybody may repeat it.
    pub fn request_id(&mut self) -> String {
        format!("{:016x}{:016x}", self.bits(), self.bits())
    }
}
