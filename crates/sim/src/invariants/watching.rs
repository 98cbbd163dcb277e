//! What the nodes show while they apply their log, seen at that very moment.
//!
//! Owns: the record of it, and the checks that can only be made then. Never: changes anything. Nodes show it at the seams
//! where bugs are planted, so that a simulator which was built without those sees nothing here.

#[cfg(kunci_plants)]
use super::{one_leader, s4_quorum};
#[cfg(kunci_plants)]
use crate::disk::Disk;
#[cfg(kunci_plants)]
use crate::world::World;
#[cfg(kunci_plants)]
use kunci_replica::planted::{self, Applying, Watching};
use std::collections::BTreeMap;
#[cfg(kunci_plants)]
use std::collections::BTreeSet;

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Watched {
    /// The term of the entry that was applied at each index.
    #[cfg(kunci_plants)]
    terms: BTreeMap<u64, u64>,
    /// The memberships that were applied: sets of voters, of each of which a majority is needed.
    #[cfg(kunci_plants)]
    pub(super) memberships: BTreeMap<u64, Vec<BTreeSet<u64>>>,
    /// The disk of every node that there was, and how often it had been emptied before.
    #[cfg(kunci_plants)]
    pub(super) disks: BTreeMap<u64, (Disk, usize)>,
    /// Who led in each term of the consensus library.
    #[cfg(kunci_plants)]
    pub(super) leaders: BTreeMap<u64, u64>,
    /// By token: when the lease ends by time, in cluster time, as its last renewal left it.
    ends_ms: BTreeMap<u64, u64>,
    /// When the entry of each index was applied for the first time, in us of the world.
    applied_us: BTreeMap<u64, u64>,
    /// What cluster time was when an entry was applied for the first time: the world's time in us, cluster time in ms.
    times: Vec<(u64, u64)>,
    /// When leaders took over, in cluster time.
    take_overs_ms: Vec<u64>,
    #[cfg(kunci_plants)]
    take_overs: u64,
}

impl Watched {
    /// When a lease ended by time, in cluster time.
    pub(super) fn end_ms(&self, token: u64) -> Option<u64> {
        self.ends_ms.get(&token).copied()
    }

    /// When the entry of an index was applied for the first time, in us of the world.
    pub(super) fn applied_us(&self, index: u64) -> Option<u64> {
        self.applied_us.get(&index).copied()
    }

    /// What cluster time was at a moment of the world, at most.
    pub(super) fn cluster_ms_at_most(&self, at_us: u64) -> Option<u64> {
        let after = self.times.partition_point(|(seen_us, _)| *seen_us < at_us);
        // Each was seen before its entry took effect, and the next one shows that entry's own time.
        self.times.get(after + 1).map(|(_, ms)| *ms)
    }

    /// The last cluster time that was seen.
    pub(super) fn last_ms(&self) -> u64 {
        self.times.last().map_or(0, |(_, ms)| *ms)
    }

    /// The last time until `ms` that a leader took over, in cluster time.
    pub(super) fn last_take_over_ms(&self, ms: u64) -> Option<u64> {
        let after = self.take_overs_ms.partition_point(|at_ms| *at_ms <= ms);
        self.take_overs_ms.get(after.checked_sub(1)?).copied()
    }
}

/// A node belongs to the cluster from now on.
#[cfg(kunci_plants)]
pub(crate) fn entered(world: &World, name: &str, node_id: u64) {
    if let Some(disk) = world.with_machine(name, |machine| machine.disk.clone()) {
        let wipes = disk.wipes();
        world.watched().disks.insert(node_id, (disk, wipes));
    }
}

/// Looks into every node of a world, until this is dropped.
#[cfg(kunci_plants)]
pub(crate) struct Looking;

#[cfg(kunci_plants)]
impl Looking {
    pub(crate) fn at(world: &World) -> Self {
        planted::watch(Some(std::rc::Rc::new(Watch { world: world.clone() })));
        Self
    }
}

#[cfg(kunci_plants)]
impl Drop for Looking {
    fn drop(&mut self) {
        planted::watch(None);
    }
}

#[cfg(kunci_plants)]
struct Watch {
    world: World,
}

#[cfg(kunci_plants)]
impl Watching for Watch {
    fn applies(&self, entry: &Applying<'_>) {
        let Applying { term, index, .. } = *entry;
        let mut watched = self.world.watched();
        if let Some(before) = watched.terms.get(&index).copied() {
            drop(watched);
            if before != term {
                self.world.broken("s1_one_history", || {
                    format!("entry {index} is one of term {term}, and was one of term {before} elsewhere")
                });
            }
            return;
        }
        watched.take_note(entry, self.world.began().elapsed().as_micros() as u64);
        drop(watched);
        s4_quorum::check_at_acknowledgement(&self.world, term, index);
    }

    fn leads(&self, term: u64, node_id: u64) {
        one_leader::check(&self.world, term, node_id);
    }
}

#[cfg(kunci_plants)]
impl Watched {
    fn take_note(&mut self, entry: &Applying<'_>, now_us: u64) {
        let table = entry.table;
        self.terms.insert(entry.index, entry.term);
        if let Some(voters) = &entry.voters {
            self.memberships.insert(entry.index, voters.clone());
        }
        let now_ms = table.now().as_ms();
        self.times.push((now_us, now_ms));
        self.applied_us.insert(entry.index, now_us);
        if table.take_overs() > self.take_overs {
            self.take_overs = table.take_overs();
            self.take_overs_ms.push(now_ms);
        }
        for resource in table.held() {
            if let Some(grant) = table.current(&resource) {
                self.ends_ms.insert(grant.token.get(), now_ms + grant.remaining_ms);
            }
        }
    }
}
