//! What clients said on connections that have ended, to be said again by a network that duplicates.
//!
//! Owns: how much is kept. Never: looks at a byte.

use crate::randomness::Seeded;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// How many conversations are kept.
const KEPT_MAX: usize = 32;

/// Conversations, newest last.
#[derive(Default)]
pub(super) struct Recordings {
    kept: VecDeque<Bytes>,
}

impl Recordings {
    pub(super) fn keep(&mut self, said: BytesMut) {
        if said.is_empty() {
            return;
        }
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(said.freeze());
    }

    pub(super) fn pick(&self, random: &mut Seeded) -> Option<Bytes> {
        self.kept.get(random.index(self.kept.len())).cloned()
    }
}
