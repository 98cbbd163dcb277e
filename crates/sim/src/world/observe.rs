//! What is seen of the nodes from outside of every process.
//!
//! Owns: that two nodes never differ at the same place of the log, and what was committed. Never: touches a node.

use super::World;
use kunci_core::event::{Change, Event, EventKind};
use kunci_replica::{Lead, Replica};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

/// From one look at all nodes to the next.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// States that are remembered.
const STATES_MAX: usize = 4_096;
/// How long the nodes may take to be equal once nothing happens any more.
const EQUAL_WITHIN: Duration = Duration::from_secs(10);

/// What was seen so far.
#[derive(Default)]
pub struct Observed {
    /// The digest of the state behind an index, and who had it first.
    states: BTreeMap<u64, (u128, String)>,
    /// What happened, by revision.
    events: BTreeMap<u64, Event>,
}

impl World {
    /// A node belongs to the cluster now.
    pub(super) fn entered(&self, name: &str, replica: Replica) {
        let (world, name) = (self.clone(), name.to_owned());
        self.trace().tell(&name, || format!("is node {}", replica.node_id()));
        #[cfg(kunci_plants)]
        crate::invariants::watching::entered(&world, &name, replica.node_id());
        let watch = replica.watch(None);
        let leads = replica.lead_changes();
        drop(replica);
        let (leading, leading_name) = (self.clone(), name.clone());
        // Neither holds the replica, so both end with it.
        tokio::spawn(async move { leading.watch_lead(&leading_name, leads).await });
        tokio::spawn(async move {
            let Ok(mut watch) = watch else { return };
            while let Some(Ok(event)) = watch.next().await {
                world.happened(&name, &event);
            }
        });
    }

    async fn watch_lead(&self, name: &str, mut leads: tokio::sync::watch::Receiver<Lead>) {
        loop {
            let lead = leads.borrow_and_update().clone();
            if lead == Lead::Here {
                self.counts().leader_changes += 1;
                self.trace().tell(name, || "leads".to_owned());
            } else {
                self.trace().tell(name, || match lead {
                    Lead::At { node_id, .. } => format!("follows node {node_id}"),
                    Lead::Nobody { why, .. } => format!("knows no leader: {why:?}"),
                    Lead::Here => String::new(),
                });
            }
            if leads.changed().await.is_err() {
                return;
            }
        }
    }

    /// A node has applied something.
    fn happened(&self, name: &str, event: &Event) {
        let mut observed = self.observed();
        let revision = event.revision.get();
        if let Some(before) = observed.events.get(&revision) {
            if before != event {
                let what =
                    format!("revision {revision} is {event:?} at {name}, and was {before:?} elsewhere");
                drop(observed);
                self.broken("s1_one_history", || what);
            }
            return;
        }
        observed.events.insert(revision, event.clone());
        drop(observed);
        if let EventKind::Resource { resource, owner, change } = &event.kind {
            match change {
                Change::Granted { .. } => self.counts().grants += 1,
                Change::Expired { .. } => self.counts().expiries += 1,
                _ => {}
            }
            let at = event.at;
            self.trace().tell(name, || {
                format!("{resource}: {owner} {change:?}, revision {revision}, cluster time {at:?}")
            });
        }
    }

    /// Everything that was committed, by revision.
    pub fn committed<R>(&self, look: impl FnOnce(&BTreeMap<u64, Event>) -> R) -> R {
        look(&self.observed().events)
    }

    /// Looks at all nodes again and again.
    pub(super) async fn observe(self) {
        loop {
            sleep(LOOK_EVERY).await;
            for (name, life) in self.lives() {
                if life.process.is_killed() {
                    self.ended_by_panic(&name, life.number);
                } else if let Some(replica) = life.replica() {
                    self.look_at(&name, &replica);
                }
            }
        }
    }

    fn ended_by_panic(&self, name: &str, number: u64) {
        let (world, name) = (self.clone(), name.to_owned());
        tokio::spawn(async move { world.ended(&name, number, None).await });
    }

    /// Compares a node's state with those that others had at the same place of the log. Says where that is.
    fn look_at(&self, name: &str, replica: &Replica) -> (u64, u128) {
        let seen = replica.local_view(kunci_core::LockTable::digest);
        let (index, digest) = (seen.position.index, seen.value);
        let mut observed = self.observed();
        let before = observed.states.get(&index).cloned();
        match before {
            None => {
                observed.states.insert(index, (digest, name.to_owned()));
                if observed.states.len() > STATES_MAX {
                    observed.states.pop_first();
                }
            }
            Some((before, whose)) if whose != name => {
                drop(observed);
                self.counts().digests_compared += 1;
                if before != digest {
                    self.broken("s1_one_state", || {
                        format!("after entry {index} the state of {name} is {digest:032x}, and that of {whose} {before:032x}")
                    });
                }
            }
            Some(_) => {}
        }
        (index, digest)
    }

    /// With everything mended, every node serves and they are all equal.
    pub(super) async fn check_at_the_end(&self) {
        let begun = tokio::time::Instant::now();
        let mut why = String::new();
        while begun.elapsed() < EQUAL_WITHIN {
            match self.are_well() {
                Ok(()) => return self.tell(|| "all nodes are equal and serve".to_owned()),
                Err(not) => why = not,
            }
            sleep(Duration::from_millis(100)).await;
        }
        self.broken("l4_heals", || format!("{EQUAL_WITHIN:?} after the load came to its end: {why}"));
    }

    fn are_well(&self) -> Result<(), String> {
        let names = self.names();
        let mut states = BTreeMap::new();
        let mut leaders = Vec::new();
        for name in &names {
            let life = self.with_machine(name, |machine| machine.life.clone()).flatten();
            let Some(life) = life else { return Err(format!("{name} is dead")) };
            let Some(replica) = life.replica() else { return Err(format!("{name} belongs to no cluster")) };
            match replica.lead() {
                Lead::Nobody { why, .. } => return Err(format!("{name} knows no leader: {why:?}")),
                Lead::Here => leaders.push(name.clone()),
                Lead::At { .. } => {}
            }
            states.insert(name, self.look_at(name, &replica));
        }
        if leaders.len() != 1 {
            return Err(format!("leaders: {leaders:?}"));
        }
        let mut places = states.values();
        let first = places.next();
        if places.all(|place| Some(place) == first) {
            Ok(())
        } else {
            Err(format!("they differ: {states:x?}"))
        }
    }
}
