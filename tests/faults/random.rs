//! Chance from a seed: the same seed makes the same choices, in the same order, for each client.
//!
//! What the machine does in between is its own: a seed repeats the workload and the faults, not the schedule.

/// xorshift64*, ours, so that no update of a dependency changes what a seed means.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The chance of one user of a seed; each number has its own.
    pub(crate) fn new(seed: u64, user: u64) -> Self {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ user.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let mut random = Self(mixed | 1);
        // The first draws of near seeds are near each other.
        for _ in 0..8 {
            random.next();
        }
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + (self.next() >> 16) % (most - least + 1)
    }

    /// True in so many of a hundred.
    pub(crate) fn percent(&mut self, of_hundred: u64) -> bool {
        self.between(0, 99) < of_hundred
    }

    /// A request id of 128 bits. Drawn from the seed: in a test nobody may guess it, and everybody may repeat it.
    pub(crate) fn request_id(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }
}
