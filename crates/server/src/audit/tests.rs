//! The audit log on real files, fed as a replica would.

use super::queue::Queue;
use super::*;
use kunci_api::AuditRecord;
use kunci_core::LockTable;
use kunci_core::command::{Acquire, Entry, Proof, Provenance, Release, Renew, Renewal, RequestIdFrom};
use kunci_replica::SeenEntry;
use kunci_types::{
    Attempt, Caller, ClusterTime, LeaseId, LockDelay, Owner, RequestId, ResourceName, Ttl, Wait, WallTime,
};
use std::net::SocketAddr;
use std::path::Path;

/// A log, and the state that it leads to.
struct World {
    table: LockTable,
    index: u64,
}

impl World {
    fn new() -> Self {
        Self { table: LockTable::new(), index: 0 }
    }

    fn apply(&mut self, commands: Vec<Command>) -> Seen {
        self.index += 1;
        let from = Origin::at(Some(SocketAddr::from(([10, 0, 0, 1], 7)).into()));
        let origins = commands.iter().map(|_| from.clone()).collect();
        let wall = Some(WallTime::from_ms(1_700_000_000_000 + self.index));
        let entry = Entry {
            provenance: Provenance::new(wall, origins),
            ..Entry::new(ClusterTime::from_ms(self.index * 10), commands)
        };
        let applied = self.table.apply(&entry);
        let what = SeenEntry::Commands {
            entry,
            replies: applied.replies,
            events: applied.events.into_iter().map(Arc::new).collect(),
            marks: applied.marks,
        };
        Seen { index: self.index, cluster_time: self.table.now(), what }
    }

    /// An entry that grants, denies, renews and releases, and hands on.
    fn some(&mut self) -> Seen {
        let [a, b, c] = [0, 1, 2].map(|number| self.index * 10 + number);
        let resource = name(&format!("r{}", self.index));
        let proof = Proof::LeaseId(lease(a));
        let renewal = Renewal { resource: resource.clone(), proof: proof.clone(), ttl: None };
        let release = Command::Release(Release { resource: resource.clone(), proof });
        self.apply(vec![
            Command::Renew(Renew { leases: vec![renewal] }),
            acquire(&resource, a, Wait::Try),
            acquire(&resource, b, Wait::Try),
            acquire(&resource, c, Wait::UpToMs(60_000)),
            release.clone(),
            release,
        ])
    }
}

fn name(text: &str) -> ResourceName {
    ResourceName::parse(text).unwrap()
}

fn lease(number: u64) -> LeaseId {
    let mut bytes = [0xa5; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    LeaseId::from_bytes(bytes)
}

fn acquire(resource: &ResourceName, number: u64, wait: Wait) -> Command {
    let owner = Owner::parse(&format!("owner-{number}")).unwrap();
    Command::Acquire(Acquire {
        resource: resource.clone(),
        caller: Caller::Unproven(owner.clone()),
        owner,
        request_id: RequestId::parse(&format!("secret-{number}")).unwrap(),
        request_id_from: RequestIdFrom::Client,
        ttl: Some(Ttl::from_ms(60_000)),
        wait,
        lock_delay: LockDelay::from_ms(0),
        metadata: None,
        lease_id: lease(number),
        attempt: Attempt::new(number),
    })
}

fn settings(folder: &Path) -> AuditSettings {
    AuditSettings {
        folder: folder.to_owned(),
        // Another disk, for which no room is left free.
        data: "/proc".into(),
        renewals: Renewals::Recorded,
        file_bytes_max: 1 << 20,
        file_age_max: Duration::from_secs(3_600),
        total_bytes_max: 1 << 30,
    }
}

fn cluster() -> ClusterId {
    "000102030405060708090a0b0c0d0e0f".parse().unwrap()
}

async fn stop(audit: Audit) {
    audit.stop(Duration::from_secs(10)).await;
}

fn records(folder: &Path) -> Vec<AuditRecord> {
    let lines = Forward::open(&files_of(folder).unwrap());
    lines.map(|line| serde_json::from_slice(&line.unwrap()).unwrap()).collect()
}

fn kinds(folder: &Path) -> Vec<String> {
    records(folder).into_iter().map(|record| record.kind).collect()
}

const ONE: [&str; 6] = ["denied", "granted", "denied", "released", "granted", "log"];

#[tokio::test]
async fn an_entry_has_its_records_in_order_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::start(settings(folder.path())).unwrap();
    audit.begins(3, cluster(), 0, 0);
    audit.applied(World::new().some());
    stop(audit).await;
    let found = records(folder.path());
    assert_eq!(kinds(folder.path())[1..], ONE[..5]);
    let said = |record: &AuditRecord| (record.action.clone(), record.outcome.clone());
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(said(&found[1]), (text("renew"), text("not_holder")));
    assert_eq!(said(&found[3]), (text("acquire"), text("held")));
    assert_eq!(found[5].owner, text("owner-2"), "handed on");
    assert_eq!(found[5].lease_fingerprint, Some(fingerprint(&lease(2))));
    assert!(found[1..].iter().all(|record| record.address == text("10.0.0.1:7")));
    let places: Vec<_> = found[1..].iter().map(|record| record.at.clone().unwrap()).collect();
    assert_eq!(places, ["1.0", "1.1", "1.2", "1.3", "1.4"]);
    let bytes = std::fs::read_to_string(folder.path().join(CURRENT)).unwrap();
    assert!(!bytes.contains("secret") && !bytes.contains(&kunci_api::lease_id_text(&lease(0))));
}

/// A node that starts again applies again what is behind its snapshot; half an entry may be recorded by then.
#[tokio::test]
async fn what_is_shown_again_after_a_restart_is_recorded_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new();
    let shown: Vec<Seen> = (0..20).map(|_| world.some()).collect();
    let file = folder.path().join(CURRENT);
    for lives in [1, 2, 3, 5, 8, 13, 20] {
        let audit = Audit::start(settings(folder.path())).unwrap();
        audit.begins(1, cluster(), 0, 0);
        for seen in &shown[..lives] {
            audit.applied(seen.clone());
        }
        stop(audit).await;
        // Each death takes something of the end away.
        let bytes = std::fs::metadata(&file).unwrap().len();
        let cut = std::fs::File::options().write(true).open(&file).unwrap();
        cut.set_len(bytes - (lives as u64 * 161) % 700).unwrap();
    }
    let audit = Audit::start(settings(folder.path())).unwrap();
    audit.begins(1, cluster(), 0, 0);
    shown.iter().for_each(|seen| audit.applied(seen.clone()));
    stop(audit).await;
    let places: Vec<String> = records(folder.path()).into_iter().filter_map(|record| record.at).collect();
    let wanted: Vec<String> =
        (1..=20).flat_map(|index| (0..5).map(move |number| format!("{index}.{number}"))).collect();
    assert_eq!(places, wanted);
}

#[tokio::test]
async fn what_a_snapshot_skips_leaves_a_gap_unless_it_is_covered() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new();
    let audit = Audit::start(settings(folder.path())).unwrap();
    audit.begins(1, cluster(), 0, 0);
    audit.applied(world.some());
    world.index = 9;
    audit.will_be_skipped(9);
    audit.applied(world.some());
    stop(audit).await;
    // From the snapshot that it made.
    let audit = Audit::start(settings(folder.path())).unwrap();
    audit.begins(1, cluster(), 9, 9);
    world.index = 10;
    audit.applied(world.some());
    // From another member's.
    world.index = 20;
    audit.skipped(20);
    audit.applied(world.some());
    stop(audit).await;
    // From one that was made while nothing was recorded.
    let audit = Audit::start(settings(folder.path())).unwrap();
    audit.begins(1, cluster(), 30, 30);
    stop(audit).await;
    let gaps = records(folder.path()).into_iter().filter(|record| record.kind == "gap");
    let gaps: Vec<_> = gaps.map(|gap| (gap.from_index.unwrap(), gap.to_index.unwrap())).collect();
    assert_eq!(gaps, [(12, 20), (22, 30)]);
}

/// While the disk takes nothing, what doesn't fit is lost; how much is said once there is room.
#[tokio::test]
async fn what_could_not_be_written_leaves_a_gap_with_its_count() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("audit");
    // A file stands where the folder should be.
    std::fs::write(&folder, "").unwrap();
    let queue = Arc::new(Queue::holding(13));
    writer::start(Arc::clone(&queue), Arc::new(settings(&folder))).unwrap();
    let audit = Audit { queue, settings: Arc::new(settings(&folder)) };
    let mut world = World::new();
    audit.begins(1, cluster(), 0, 0);
    // Six commands each: two entries fit.
    for _ in 0..5 {
        audit.applied(world.some());
    }
    assert_eq!(audit.counts().missing, 18);
    std::fs::remove_file(&folder).unwrap();
    while audit.counts().waiting > 0 {
        kunci_process::sleep(Duration::from_millis(5)).await;
    }
    audit.applied(world.some());
    stop(audit).await;
    let found = records(&folder);
    let gap = found.iter().position(|record| record.kind == "gap").unwrap();
    let gap_record = &found[gap];
    assert_eq!(
        (gap_record.from_index, gap_record.to_index, gap_record.missing),
        (Some(3), Some(5), Some(18))
    );
    assert_eq!(found[gap - 1].at.as_deref(), Some("2.4"), "it stands where something is missing");
    assert_eq!(found[gap + 1].at.as_deref(), Some("6.0"));
}

#[tokio::test]
async fn files_are_put_aside_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::start(AuditSettings {
        file_bytes_max: 4_000,
        total_bytes_max: 24_000,
        ..settings(folder.path())
    })
    .unwrap();
    audit.begins(1, cluster(), 0, 0);
    let mut world = World::new();
    for count in 1..=100 {
        audit.applied(world.some());
        // One block at a time, since a file is looked at between blocks.
        while audit.counts().written < count * 5 {
            kunci_process::sleep(Duration::from_millis(1)).await;
        }
    }
    stop(audit).await;
    let places = files_of(folder.path()).unwrap();
    assert!(places.len() >= 3 && places[0].number > 1, "{places:?}");
    let bytes: u64 = places.iter().map(|place| std::fs::metadata(&place.path).unwrap().len()).sum();
    assert!(bytes <= 30_000, "{bytes}");
    let found = records(folder.path());
    assert_eq!(found.last().unwrap().at.as_deref(), Some("100.4"));
    assert_eq!(found[0].kind, "log");
}

/// What another cluster left in the folder is kept aside: its places mean nothing here.
#[tokio::test]
async fn the_audit_log_of_another_cluster_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    for (cluster, entries) in [(cluster(), 5), ("100102030405060708090a0b0c0d0e0f".parse().unwrap(), 2)] {
        let audit = Audit::start(settings(folder.path())).unwrap();
        audit.begins(1, cluster, 0, 0);
        let mut world = World::new();
        (0..entries).for_each(|_| audit.applied(world.some()));
        stop(audit).await;
    }
    let places = files_of(folder.path()).unwrap();
    assert_eq!(places.len(), 2);
    let text = std::fs::read_to_string(folder.path().join(CURRENT)).unwrap();
    assert!(text.contains("\"2.4\"") && !text.contains("\"3.0\""), "{text}");
}
