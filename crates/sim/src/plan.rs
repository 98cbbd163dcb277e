//! What a seed stands for: how large the cluster is, how fast it beats, how good the network is, and for how long it runs.
//!
//! Owns: the draws that a world begins with. Never: a draw while it runs.

use crate::network::Quality;
use crate::randomness::Seeded;
use std::time::Duration;

/// What a seed stands for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Members at the beginning.
    pub nodes: usize,
    /// How often a leader tells the others that it lives.
    pub heartbeat: Duration,
    /// The least time without a leader before a node stands for election.
    pub election: Duration,
    /// A snapshot is made once the log has grown by this many bytes.
    pub snapshot_every_bytes: u64,
    /// Entries that stay in the log behind a snapshot.
    pub entries_kept: u64,
    /// Every way, while no fault changes it.
    pub quality: Quality,
    /// How long faults strike.
    pub storm: Duration,
    /// From one fault to the next, on average.
    pub fault_every: Duration,
    /// The bug that is planted in it; empty for none.
    pub plant: &'static str,
}

impl Plan {
    /// Draws it.
    pub fn drawn(seed: u64) -> Self {
        let mut random = Seeded::of(seed, "plan");
        let nodes = match random.below(20) {
            0..7 => 3,
            7..9 => 4,
            _ => 5,
        };
        // A quarter beats as the product does. The others have fewer messages, and so more hours in the same time.
        let heartbeat_ms = match random.below(8) {
            0 | 1 => 50,
            2 => 100,
            _ => 200,
        };
        let snapshot_every_bytes = match random.below(4) {
            0 => 1 << 10,
            1 => 8 << 10,
            2 => 64 << 10,
            _ => 64 << 20,
        };
        let entries_kept = match random.below(3) {
            0 => 0,
            1 => 16,
            _ => 1_000,
        };
        let loss_ppm = match random.below(4) {
            0 => 10_000,
            1 => 1_000,
            _ => 0,
        };
        Self {
            seed,
            nodes,
            heartbeat: Duration::from_millis(heartbeat_ms),
            election: Duration::from_millis(heartbeat_ms * 4),
            snapshot_every_bytes,
            entries_kept,
            quality: Quality {
                delay: Duration::from_micros(random.between(50, 1_500)),
                jitter: Duration::from_micros(random.between(50, 3_000)),
                loss_ppm,
            },
            storm: Duration::from_millis(random.between(20_000, 30_000)),
            fault_every: Duration::from_millis(random.between(270, 680)),
            plant: "",
        }
    }
}
