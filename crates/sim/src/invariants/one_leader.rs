//! At most one node leads in a term of the consensus library: no vote is given twice, and none is forgotten.

use crate::world::World;

/// A node leads in a term.
pub(super) fn check(world: &World, term: u64, node_id: u64) {
    let before = *world.watched().leaders.entry(term).or_insert(node_id);
    if before != node_id {
        world.broken("one_leader", || {
            format!("node {node_id} leads in term {term}, and so did node {before}")
        });
    }
}
