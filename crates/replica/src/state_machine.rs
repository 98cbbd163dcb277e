//! The lock table as the consensus library drives it.
//!
//! Owns: applying committed entries, and the way to and from snapshot files. Never: a decision; that is core's.

use crate::answered::{Answered, Position};
use crate::events::Events;
use crate::measures::Measures;
use crate::observer::{Observer, Seen, SeenEntry};
use crate::raft_types::{
    Applied, EntryBytes, LogId, Payload, Snapshot, SnapshotMeta, StoredMembership, TypeConfig,
};
use crate::snapshot_store::{SnapshotFile, SnapshotStore};
use crate::storage::{background_work, work};
use crate::waiting_room::WaitingRoom;
use futures::{Stream, TryStreamExt};
use kunci_core::command::Entry;
use kunci_core::event::Event;
use kunci_core::{LockTable, Restore};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{OptionalSend, RaftSnapshotBuilder};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The state and who is told of its changes; shared by the library's side and ours.
pub(crate) struct Machine {
    state: RwLock<MachineState>,
    pub(crate) events: Arc<Events>,
    pub(crate) room: WaitingRoom,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) measures: Arc<Measures>,
    /// What is applied up to this entry was in the log when this process began, and isn't measured.
    measured_after: AtomicU64,
}

/// The table and how far the log is in it.
pub(crate) struct MachineState {
    pub(crate) table: LockTable,
    last: Option<LogId>,
    membership: StoredMembership,
    /// How many steps the last entry took.
    places: u32,
    /// The largest node id that was ever in a membership. Ids are given out once.
    ids_used: u64,
    /// Bytes of the entries applied since the last snapshot.
    unsnapped_bytes: u64,
}

impl MachineState {
    pub(crate) fn applied_index(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.index)
    }

    pub(crate) fn ids_used(&self) -> u64 {
        self.ids_used
    }

    fn apply(&mut self, entry: &Entry) -> kunci_core::reply::Applied {
        #[cfg(kunci_plants)]
        if let Some(applied) = crate::planted::with(|planted| planted.apply(&mut self.table, entry)) {
            return applied;
        }
        self.table.apply(entry)
    }

    /// Shows an entry to the simulator before it is applied.
    #[cfg(kunci_plants)]
    fn show(&self, id: LogId, membership: Option<&StoredMembership>) {
        let voters = membership.map(|stored| stored.membership().get_joint_config().clone());
        let entry =
            crate::planted::Applying { term: id.leader_id.term, index: id.index, table: &self.table, voters };
        crate::planted::show(|watching| watching.applies(&entry));
    }

    /// The state that a snapshot holds.
    fn restored(snapshot: &SnapshotFile, table: LockTable) -> Self {
        Self {
            table,
            last: snapshot.meta().last_log_id,
            membership: snapshot.meta().last_membership.clone(),
            places: 0,
            ids_used: snapshot.ids_used(),
            unsnapped_bytes: 0,
        }
    }
}

impl Machine {
    /// Looks at the state. Apply waits meanwhile, so the view must be short.
    pub(crate) fn view<T>(&self, view: impl FnOnce(&MachineState) -> T) -> T {
        view(&self.state())
    }

    /// A view of the table with its place in the log's order, behind everything applied so far.
    pub(crate) fn answered<T>(&self, view: impl FnOnce(&LockTable) -> T) -> Answered<T> {
        let state = self.state();
        Answered {
            value: view(&state.table),
            position: Position { index: state.applied_index(), place: state.places },
            revision: state.table.revision(),
            cluster_time: state.table.now(),
        }
    }

    pub(crate) fn unsnapped_bytes(&self) -> u64 {
        self.state().unsnapped_bytes
    }

    // A state that an apply left broken is never served: that apply's failure stops the replica for good.
    fn state(&self) -> RwLockReadGuard<'_, MachineState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, MachineState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_entry(&self, id: LogId, bytes: &EntryBytes) -> io::Result<Applied> {
        let index = id.index;
        let entry = Entry::decode(&bytes.0)
            .map_err(|error| io::Error::other(format!("read log entry {index}: {error}")))?;
        let began = kunci_process::now();
        let mut state = self.state_mut();
        #[cfg(kunci_plants)]
        state.show(id, None);
        // The library survives a panic less well than an error, and the process must end with words.
        let applied = catch_unwind(AssertUnwindSafe(|| state.apply(&entry))).map_err(|_| {
            io::Error::other(format!("apply log entry {index}: an invariant is broken (see above)"))
        })?;
        state.last = Some(id);
        state.places = applied.places;
        state.unsnapped_bytes += bytes.0.len() as u64;
        let now = state.table.now();
        drop(state);
        if index > self.measured_after.load(Ordering::Relaxed) {
            self.measures.apply.record_time(kunci_process::now().saturating_duration_since(began));
            self.measures.applied(&applied, bytes.0.len());
        }
        let events: Vec<Arc<Event>> = applied.events.into_iter().map(Arc::new).collect();
        if let Some(observer) = &self.observer {
            let (replies, events) = (applied.replies.clone(), events.clone());
            let what = SeenEntry::Commands { entry, replies, events, marks: applied.marks };
            observer.applied(Seen { index, cluster_time: now, what });
        }
        self.events.add(events);
        self.room.answer(index, now, applied.answers);
        Ok(Applied { now, replies: applied.replies })
    }

    /// What is applied up to this entry isn't measured.
    pub(crate) fn measure_after(&self, index: u64) {
        self.measured_after.store(index, Ordering::Relaxed);
    }

    fn apply_other(&self, id: LogId, membership: Option<StoredMembership>) {
        let mut state = self.state_mut();
        #[cfg(kunci_plants)]
        state.show(id, membership.as_ref());
        state.last = Some(id);
        state.places = 0;
        if let Some(membership) = membership {
            let largest = membership.membership().nodes().map(|(id, _)| *id).max().unwrap_or(0);
            state.ids_used = state.ids_used.max(largest);
            if let Some(observer) = &self.observer {
                let (cluster_time, what) = (state.table.now(), SeenEntry::members(&membership));
                observer.applied(Seen { index: id.index, cluster_time, what });
            }
            state.membership = membership;
        }
    }

    fn install(&self, restored: MachineState) {
        let (revision, index) = (restored.table.revision(), restored.applied_index());
        *self.state_mut() = restored;
        self.events.reset(revision);
        if let Some(observer) = &self.observer {
            observer.skipped(index);
        }
    }
}

/// The library's side of the state.
#[derive(Clone)]
pub struct StateMachine {
    machine: Arc<Machine>,
    snapshots: SnapshotStore,
}

impl StateMachine {
    /// The state of the newest snapshot, or that of a new cluster.
    ///
    /// # Errors
    /// When the snapshot can't be read.
    pub fn open(snapshots: SnapshotStore) -> io::Result<Self> {
        Self::observed(snapshots, None)
    }

    /// The same, with somebody who looks on.
    ///
    /// # Errors
    /// As [`StateMachine::open`].
    pub(crate) fn observed(
        snapshots: SnapshotStore,
        observer: Option<Arc<dyn Observer>>,
    ) -> io::Result<Self> {
        let state = match snapshots.newest() {
            Some(snapshot) => restore(&snapshot)?,
            None => MachineState {
                table: LockTable::new(),
                last: None,
                membership: StoredMembership::default(),
                places: 0,
                ids_used: 0,
                unsnapped_bytes: 0,
            },
        };
        let events = Events::new(state.table.revision());
        let machine = Arc::new(Machine {
            state: RwLock::new(state),
            events,
            room: WaitingRoom::default(),
            observer,
            measures: Arc::default(),
            measured_after: AtomicU64::new(0),
        });
        Ok(Self { machine, snapshots })
    }

    pub(crate) fn machine(&self) -> Arc<Machine> {
        Arc::clone(&self.machine)
    }
}

fn restore(snapshot: &SnapshotFile) -> io::Result<MachineState> {
    let mut restore = Restore::default();
    for chunk in snapshot.chunks()? {
        restore.chunk(&chunk?).map_err(io::Error::other)?;
    }
    let table = restore.finish().map_err(io::Error::other)?;
    #[cfg(kunci_plants)]
    let table = crate::planted::with(|planted| planted.restored(table.clone())).unwrap_or(table);
    Ok(MachineState::restored(snapshot, table))
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = SnapshotMaker;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        Ok(self.machine.view(|state| (state.last, state.membership.clone())))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<TypeConfig>>> + Unpin + OptionalSend,
    {
        while let Some((entry, responder)) = entries.try_next().await? {
            let applied = match entry.payload {
                Payload::Normal(bytes) => self.machine.apply_entry(entry.log_id, &bytes)?,
                Payload::Blank => {
                    self.machine.apply_other(entry.log_id, None);
                    Applied::default()
                }
                Payload::Membership(membership) => {
                    let stored = StoredMembership::new(Some(entry.log_id), membership);
                    self.machine.apply_other(entry.log_id, Some(stored));
                    Applied::default()
                }
            };
            if let Some(responder) = responder {
                responder.send(applied);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotMaker {
        // Freezing is O(1): what is applied afterwards copies what it changes.
        let mut state = self.machine.state_mut();
        state.unsnapped_bytes = 0;
        if let Some(observer) = &self.machine.observer {
            observer.will_be_skipped(state.applied_index());
        }
        SnapshotMaker {
            measures: Arc::clone(&self.machine.measures),
            meta: SnapshotMeta { last_log_id: state.last, last_membership: state.membership.clone() },
            ids_used: state.ids_used,
            frozen: Some(state.table.snapshot()),
            snapshots: self.snapshots.clone(),
        }
    }

    async fn install_snapshot(&mut self, _meta: &SnapshotMeta, snapshot: SnapshotFile) -> io::Result<()> {
        let snapshots = self.snapshots.clone();
        let files = Arc::clone(snapshots.files());
        let restored = work(&files, async move { restore(&snapshots.keep(snapshot).await?) }).await?;
        self.machine.install(restored);
        self.machine.measures.snapshots_received.count();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        Ok(self.snapshots.newest().map(|file| Snapshot { meta: file.meta().clone(), snapshot: file }))
    }
}

/// Writes one frozen state to a snapshot file, once.
pub struct SnapshotMaker {
    measures: Arc<Measures>,
    meta: SnapshotMeta,
    ids_used: u64,
    frozen: Option<kunci_core::Snapshot>,
    snapshots: SnapshotStore,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotMaker {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        let (meta, ids_used) = (self.meta.clone(), self.ids_used);
        let frozen = self.frozen.take().ok_or_else(|| io::Error::other("this state was written already"))?;
        let snapshots = self.snapshots.clone();
        let files = Arc::clone(snapshots.files());
        let began = kunci_process::now();
        // The frozen state ends there too: letting go of all that changed since would take this task tens of milliseconds.
        let file = background_work(&files, async move {
            catch_unwind(AssertUnwindSafe(|| frozen.check())).map_err(|_| {
                io::Error::other("check the state for a snapshot: an invariant is broken (see above)")
            })?;
            snapshots.write(meta, ids_used, frozen.chunks()).await
        })
        .await?;
        self.measures.snapshot.record_time(kunci_process::now().saturating_duration_since(began));
        tracing::info!(bytes = file.bytes(), file = %file.path().display(), "wrote a snapshot");
        Ok(Snapshot { meta: file.meta().clone(), snapshot: file })
    }
}
