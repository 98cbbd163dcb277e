//! Raise feature level: allow commands that earlier releases don't know. It never falls again.

use crate::command::RaiseFeatureLevel;
use crate::table::LockTable;

impl LockTable {
    pub(super) fn raise_feature_level(&mut self, raise: &RaiseFeatureLevel) -> u32 {
        let level = self.state.head.feature_level.max(raise.level);
        self.state.head.feature_level = level;
        level
    }
}
