//! A durable gate over disks that fail.

use super::frame::{self, HEADER_BYTES};
use super::log::Medium;
use super::*;
use crate::gate::Rejected;
use crate::gate::tests::{name, token};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A disk in memory: what was synced, what a power cut would lose, and how it fails.
#[derive(Clone, Default)]
struct Disk(Arc<Inner>);

#[derive(Default)]
struct Inner {
    written: Mutex<Vec<u8>>,
    synced: Mutex<Vec<u8>>,
    syncs: AtomicUsize,
    fails: Mutex<Option<(Step, io::ErrorKind)>>,
    /// Held while a sync is to last.
    gate: Mutex<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Write,
    Sync,
    Cut,
}

impl Disk {
    fn fail(&self, fault: Option<(Step, io::ErrorKind)>) {
        *self.0.fails.lock().unwrap() = fault;
    }

    fn check(&self, step: Step) -> io::Result<()> {
        match *self.0.fails.lock().unwrap() {
            Some((fails, kind)) if fails == step => Err(kind.into()),
            // Nothing works any more once cutting doesn't.
            Some((Step::Cut, kind)) if step == Step::Write => Err(kind.into()),
            _ => Ok(()),
        }
    }

    /// A gate over it, new.
    fn gate(&self, resources_max: usize) -> FileGate {
        let kept = Kept::new(resources_max);
        let base = frame::file_of(&kept);
        *self.0.written.lock().unwrap() = base.clone();
        *self.0.synced.lock().unwrap() = base;
        FileGate::over(Log::at(Box::new(self.clone()), None, HEADER_BYTES as u64), kept).unwrap()
    }

    /// What is kept after a power cut.
    fn kept_after_a_cut(&self) -> Kept {
        let mut kept = Kept::new(RESOURCES_MAX);
        frame::read(&self.0.synced.lock().unwrap(), &mut kept).unwrap();
        kept
    }
}

impl Medium for Disk {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut written, at) = (self.0.written.lock().unwrap(), usize::try_from(offset).unwrap());
        // A disk that fills up takes a part.
        let taken = if self.check(Step::Write).is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        written.resize((at + taken.len()).max(at), 0);
        written[at..at + taken.len()].copy_from_slice(taken);
        drop(written);
        self.check(Step::Write)
    }

    fn sync(&mut self) -> io::Result<()> {
        drop(self.0.gate.lock().unwrap());
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        self.check(Step::Sync)?;
        *self.0.synced.lock().unwrap() = self.0.written.lock().unwrap().clone();
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.check(Step::Cut)?;
        self.0.written.lock().unwrap().truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

/// Begins `admits` at once while the disk is busy with another token, and returns their answers.
fn at_once(disk: &Disk, gate: &FileGate, admits: &[(&str, u64)]) -> Vec<Result<Admitted, AdmitError>> {
    let held = disk.0.gate.lock().unwrap();
    let before = disk.0.written.lock().unwrap().len();
    std::thread::scope(|scope| {
        let begin = |(resource, number): (&str, u64)| {
            let resource = name(resource);
            scope.spawn(move || gate.admit_blocking(&resource, token(number)))
        };
        let busy = begin(("busy", 1));
        // Longer than a mark, which comes when the thread has nothing to do.
        while disk.0.written.lock().unwrap().len() <= before.max(HEADER_BYTES + 12) {
            std::thread::yield_now();
        }
        let admits: Vec<_> = admits.iter().map(|admit| begin(*admit)).collect();
        while gate.shared.waiting() < admits.len() {
            std::thread::yield_now();
        }
        drop(held);
        assert_eq!(busy.join().unwrap(), Ok(Admitted::Newer));
        admits.into_iter().map(|admit| admit.join().unwrap()).collect()
    })
}

/// S4 of the fence: whoever was told "admitted" is compared with after a power cut.
#[test]
fn a_token_is_on_disk_before_it_is_admitted() {
    let disk = Disk::default();
    let gate = disk.gate(100);
    for number in 1..50 {
        gate.admit_blocking(&name("r"), token(number)).unwrap();
        assert_eq!(disk.kept_after_a_cut().of(&name("r")), Some(token(number)));
    }
}

#[test]
fn equal_and_older_tokens_need_no_disk() {
    let disk = Disk::default();
    let gate = disk.gate(100);
    gate.admit_blocking(&name("r"), token(5)).unwrap();
    let before = disk.0.syncs.load(Ordering::SeqCst);
    assert_eq!(gate.admit_blocking(&name("r"), token(5)), Ok(Admitted::Equal));
    assert!(matches!(gate.admit_blocking(&name("r"), token(4)), Err(AdmitError::Rejected(_))));
    assert_eq!(disk.0.syncs.load(Ordering::SeqCst), before);
}

#[test]
fn tokens_that_come_during_a_sync_share_the_next_one() {
    let disk = Disk::default();
    let gate = disk.gate(1_000);
    let names: Vec<String> = (0..64).map(|number| format!("r/{number}")).collect();
    let admits: Vec<_> = names.iter().map(|name| (name.as_str(), 7)).collect();
    assert_eq!(at_once(&disk, &gate, &admits), vec![Ok(Admitted::Newer); 64]);
    assert_eq!(disk.0.syncs.load(Ordering::SeqCst), 2);
}

#[test]
fn of_two_that_share_a_sync_only_the_larger_is_admitted() {
    let disk = Disk::default();
    let gate = disk.gate(1_000);
    let rejected = Rejected { resource: name("r"), found: token(7), kept: token(8) };
    let answers = at_once(&disk, &gate, &[("r", 7), ("r", 8)]);
    assert_eq!(answers, [Err(rejected.into()), Ok(Admitted::Newer)]);
}

#[test]
fn a_full_disk_refuses_newer_tokens_until_there_is_space() {
    let disk = Disk::default();
    let gate = disk.gate(100);
    gate.admit_blocking(&name("r"), token(1)).unwrap();
    disk.fail(Some((Step::Write, io::ErrorKind::StorageFull)));
    for _ in 0..3 {
        let refused = gate.admit_blocking(&name("r"), token(2)).unwrap_err();
        assert!(matches!(refused, AdmitError::NotKept { .. }), "{refused}");
        assert!(refused.to_string().contains("free some space"), "{refused}");
    }
    assert_eq!(gate.admit_blocking(&name("r"), token(1)), Ok(Admitted::Equal), "not moved up");
    disk.fail(None);
    assert_eq!(gate.admit_blocking(&name("r"), token(2)), Ok(Admitted::Newer));
    assert_eq!(disk.kept_after_a_cut().of(&name("r")), Some(token(2)));
}

/// After a sync that failed, the next one may succeed without having written the pages of the one before.
#[test]
fn after_a_sync_that_failed_nothing_is_admitted_any_more() {
    for fault in [
        (Step::Sync, io::ErrorKind::Other),
        (Step::Sync, io::ErrorKind::StorageFull),
        (Step::Cut, io::ErrorKind::StorageFull),
        (Step::Write, io::ErrorKind::Other),
    ] {
        let disk = Disk::default();
        let gate = disk.gate(100);
        gate.admit_blocking(&name("r"), token(5)).unwrap();
        disk.fail(Some(fault));
        let stopped = |found| matches!(found, Err(AdmitError::Stopped { .. }));
        assert!(stopped(gate.admit_blocking(&name("r"), token(6))));
        disk.fail(None);
        assert!(stopped(gate.admit_blocking(&name("r"), token(6))), "a later sync proves nothing");
        assert!(stopped(gate.admit_blocking(&name("r"), token(5))));
        assert!(stopped(gate.admit_blocking(&name("q"), token(9))));
        assert!(gate.raise_floor(token(3)).is_err());
        assert!(gate.check().is_err());
        let late = gate.admit_blocking(&name("r"), token(4));
        assert!(matches!(late, Err(AdmitError::Rejected(_))), "an older one still learns why: {late:?}");
        assert_eq!(disk.kept_after_a_cut().of(&name("r")), Some(token(5)));
    }
}

#[test]
fn the_bound_counts_those_on_their_way() {
    let disk = Disk::default();
    let gate = disk.gate(3);
    let admits = ["a", "b", "c", "d", "e"].map(|resource| (resource, 7));
    let answers = at_once(&disk, &gate, &admits);
    let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused, vec![AdmitError::Full { resources_max: 3 }; 3]);
    assert_eq!(gate.resources(), 3);
    assert_eq!(gate.raise_floor(token(8)), Ok(3));
    assert_eq!(disk.kept_after_a_cut().floor(), Some(token(8)));
    assert_eq!(gate.admit_blocking(&name("new"), token(9)), Ok(Admitted::Newer));
}

#[test]
fn a_future_that_nobody_waits_for_disturbs_nobody() {
    let gate = Disk::default().gate(100);
    let mut context = Context::from_waker(Waker::noop());
    for number in 1..100 {
        let (name, token) = (name("r"), token(number));
        let _ = pin!(gate.admit(&name, token)).poll(&mut context);
    }
    assert_eq!(gate.admit_blocking(&name("r"), token(100)), Ok(Admitted::Newer));
}
