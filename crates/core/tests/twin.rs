//! Random histories, lived by the lock table and by a naive twin of it, which must agree on every answer, event
//! and token; through restores from snapshots too. And bytes of any kind, which are refused and never a panic.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod twin_model;

use kunci_core::command::{Command, Entry, Provenance};
use kunci_core::reply::Applied;
use kunci_core::view::Status;
use kunci_core::{LockTable, Restore};
use kunci_types::{ClusterTime, Origin, Owner, ResourceName, WallTime};
use proptest::prelude::*;
use std::net::SocketAddr;
use twin_model::history::{Step, World, name, now, rarely, steps, times};
use twin_model::{Call, Outcome, Twin};

fn restored(table: &LockTable) -> LockTable {
    let chunks: Vec<Vec<u8>> = table.snapshot().chunks().collect();
    let mut restore = Restore::default();
    for chunk in &chunks {
        restore.chunk(chunk).unwrap();
    }
    let restored = restore.finish().unwrap();
    assert!(restored.snapshot().chunks().eq(chunks), "equal states have equal bytes");
    restored
}

/// Everything that both say about one entry, and about how things stand after it.
fn agree(applied: &Applied, outcome: &Outcome, table: &LockTable, twin: &Twin) {
    let replies: Vec<_> =
        applied.replies.iter().map(|reply| (reply.value.clone(), reply.revision.get())).collect();
    assert_eq!(replies, outcome.replies);
    let answers: Vec<_> = applied
        .answers
        .iter()
        .map(|answer| (answer.attempt, answer.reply.value.clone(), answer.reply.revision.get()))
        .collect();
    assert_eq!(answers, outcome.answers);
    assert_eq!(applied.events, outcome.events);
    let places: Vec<u32> = applied.answers.iter().map(|answer| answer.reply.place).collect();
    assert!(places.is_sorted() && places.iter().all(|place| *place < applied.places));
    let mut places: Vec<u32> = applied.replies.iter().map(|reply| reply.place).collect();
    places.sort_unstable();
    assert!(places.is_sorted_by(|a, b| a < b) && places.iter().all(|place| *place < applied.places));

    assert_eq!(table.revision().get(), twin.revision);
    assert_eq!(table.held_count(), twin.leases.len() as u64);
    assert_eq!(table.request_count(), twin.records.len() as u64);
    for resource in (0..3).map(name) {
        agree_on(&resource, table, twin);
    }
}

fn agree_on(resource: &ResourceName, table: &LockTable, twin: &Twin) {
    match (table.status(resource), twin.lease(resource), twin.closed_until(resource)) {
        (Status::Held(view), Some(lease), None) => {
            assert_eq!(view.owner, lease.terms.owner);
            assert_eq!(view.token.get(), lease.token);
            assert_eq!(view.remaining_ms, lease.until - twin.now);
            assert_eq!(view.held_ms, twin.now - lease.since);
            assert_eq!(view.ttl_ms, lease.terms.ttl);
        }
        (Status::Closed { remaining_ms, .. }, None, Some(until)) => {
            assert_eq!(remaining_ms, until - twin.now);
        }
        (Status::Free { .. }, None, None) => {}
        (status, ..) => panic!("{resource} is {status:?}, and the twin says otherwise"),
    }
    let queue: Vec<_> = table
        .queue(resource)
        .into_iter()
        .map(|view| (view.owner, view.waited_ms, view.wait_remaining_ms, view.attached))
        .collect();
    let twins: Vec<_> = twin
        .waiters(resource)
        .into_iter()
        .map(|(_, waiting)| {
            let attached = matches!(waiting.call, Call::Open { .. });
            (waiting.terms.owner, twin.now - waiting.since, waiting.until - twin.now, attached)
        })
        .collect();
    assert_eq!(queue, twins);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Defends S1 to S3, S5 to S7 over random histories.
    #[test]
    fn the_table_and_its_naive_twin_agree(
        history in prop::collection::vec(
            (times(), prop::collection::vec(steps(), 0..4), rarely(20)), 1..80
        )
    ) {
        let (mut table, mut twin, mut world) = (LockTable::new(), Twin::new(), World::new());
        for (time, steps, restart) in history {
            if restart {
                table = restored(&table);
            }
            let now = now(&time, &table);
            let commands: Vec<Command> = steps.into_iter().map(|step| world.resolve(step, &twin)).collect();
            let provenance = provenance(now.as_ms(), commands.len());
            let entry = Entry { provenance, ..Entry::new(now, commands) };
            let read_back = Entry::decode(&entry.encode());
            prop_assert_eq!(read_back.as_ref(), Ok(&entry));

            let outcome = twin.apply(&entry);
            let applied = table.apply(&entry);

            table.check();
            agree(&applied, &outcome, &table, &twin);
            world.tokens = twin.granted(world.tokens);
        }
        prop_assert_eq!(restored(&table).digest(), table.digest());
    }

    /// An entry's bytes are canonical, and bytes that are none are refused in words, never by a panic.
    #[test]
    fn damaged_entries_are_refused_and_never_a_panic(
        steps in prop::collection::vec(steps(), 0..6),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        seed in 0..64_u64,
    ) {
        let (twin, mut world) = (Twin::new(), World::new());
        let commands: Vec<Command> = steps.into_iter().map(|step| world.resolve(step, &twin)).collect();
        let provenance = provenance(seed, commands.len());
        let mut bytes = Entry { provenance, ..Entry::new(ClusterTime::from_ms(7), commands) }.encode();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(entry) = Entry::decode(&bytes) {
            prop_assert_eq!(entry.encode(), bytes, "what is read writes the same bytes");
        }
    }

    /// Bytes of any kind.
    #[test]
    fn arbitrary_bytes_are_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..5_u8) {
        prop_assert!(!matches!(Entry::decode(&bytes), Ok(entry) if entry.encode() != bytes));
        let mut restore = begun();
        let mut chunk = vec![kind];
        chunk.extend(bytes);
        let _ = restore.chunk(&chunk);
        let _ = Restore::default().chunk(&chunk);
    }

    /// A snapshot's chunks with a few bytes changed.
    #[test]
    fn damaged_snapshots_are_never_a_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        which in any::<prop::sample::Index>(),
    ) {
        let mut chunks: Vec<Vec<u8>> = populated().snapshot().chunks().collect();
        let which = which.index(chunks.len());
        for (at, byte) in damage {
            let at = at.index(chunks[which].len());
            chunks[which][at] = byte;
        }
        let mut restore = Restore::default();
        for chunk in &chunks {
            if restore.chunk(chunk).is_err() {
                break;
            }
        }
    }
}

/// Where commands came from: from nowhere, from one client or from several, of any kind.
fn provenance(seed: u64, commands: usize) -> Provenance {
    let wall = (!seed.is_multiple_of(4)).then_some(WallTime::from_ms(seed));
    let origin = |at: u64| match (at / 2 + seed) % 4 {
        0 => Origin::UNKNOWN,
        1 => Origin::at(Some(SocketAddr::from(([10, 0, 0, 1], 7)).into())),
        2 => Origin::at(Some(SocketAddr::from(([1, 0, 0, 0, 0, 0, 0, 1], 7)).into())),
        _ => Origin { caller: Owner::parse("svc").ok(), address: None },
    };
    let origins =
        if seed.is_multiple_of(8) { Vec::new() } else { (0..commands as u64).map(origin).collect() };
    Provenance::new(wall, origins)
}

fn begun() -> Restore {
    let mut restore = Restore::default();
    restore.chunk(&LockTable::new().snapshot().chunks().next().unwrap()).unwrap();
    restore
}

/// A table that holds something of every kind.
fn populated() -> LockTable {
    let (mut table, mut world) = (LockTable::new(), World::new());
    let steps = [(0, 0), (1, 60_000), (2, 60_000), (4, 60_000)].map(|(request, wait)| Step::Acquire {
        request,
        resource: request % 2,
        ttl: Some(5_000),
        wait,
        delay: 2_000,
        meta: true,
        server: request == 4,
    });
    let more = [
        Step::Detach { request: 2, back: 0, told: true },
        Step::Cancel { request: 7, resource: 0 },
        Step::Force { resource: 1, token: 0 },
    ];
    let twin = Twin::new();
    let commands = steps.into_iter().chain(more).map(|step| world.resolve(step, &twin)).collect();
    table.apply(&Entry::new(ClusterTime::from_ms(10), commands));
    table
}

/// A snapshot that lacks a chunk, or has one too many, is refused.
#[test]
fn an_unfinished_snapshot_is_refused() {
    let chunks: Vec<Vec<u8>> = populated().snapshot().chunks().collect();
    for missing in 0..chunks.len() {
        let mut restore = Restore::default();
        let mut fed = chunks.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, chunk)| chunk);
        let refused = fed.any(|chunk| restore.chunk(chunk).is_err()) || restore.finish().is_err();
        assert!(refused, "chunk {missing} is missing and nobody says so");
    }
    let mut restore = Restore::default();
    restore.chunk(&chunks[0]).unwrap();
    assert!(restore.chunk(&chunks[0]).is_err(), "a second beginning");
}

/// Data of the first format, which said nothing of where commands came from, is read; so a node can be upgraded.
#[test]
fn an_entry_and_a_snapshot_of_format_1_are_read() {
    let mut table = LockTable::new();
    let entry = Entry::new(ClusterTime::from_ms(10), vec![Command::TakeOver]);
    assert_eq!(entry.encode()[0], 1, "an entry from nowhere has the first format");
    table.apply(&Entry::decode(&entry.encode()).unwrap());
    let mut chunks: Vec<Vec<u8>> = table.snapshot().chunks().collect();
    chunks[0][1] = 1;
    let mut restore = Restore::default();
    for chunk in &chunks {
        restore.chunk(chunk).unwrap();
    }
    assert_eq!(restore.finish().unwrap().digest(), table.digest());
}

/// The marks that the audit log reads are of the events that begin or end something, and name the client.
#[test]
fn every_grant_and_end_is_marked_with_where_its_client_is() {
    let mut table = populated();
    let from = SocketAddr::from(([10, 0, 0, 9], 9)).into();
    let (mut world, twin) = (World::new(), Twin::new());
    let step = Step::Acquire {
        request: 8,
        resource: 2,
        ttl: Some(5_000),
        wait: 0,
        delay: 0,
        meta: false,
        server: false,
    };
    let provenance = Provenance::new(None, vec![Origin::at(Some(from))]);
    let entry =
        Entry { provenance, ..Entry::new(ClusterTime::from_ms(11), vec![world.resolve(step, &twin)]) };
    let granted = table.apply(&entry);
    assert_eq!((granted.marks.len(), granted.marks[0].address), (1, Some(from)));
    let mut restored = restored(&table);
    let later = Entry::new(ClusterTime::from_ms(100_000), Vec::new());
    let ended = restored.apply(&later);
    assert_eq!(ended, table.apply(&later));
    assert!(
        ended
            .marks
            .iter()
            .any(|mark| mark.address == Some(from) && mark.lease_id == granted.marks[0].lease_id)
    );
    assert!(ended.marks.iter().is_sorted_by_key(|mark| (mark.place, mark.event)));
}

/// Another release's formats and commands are refused by name, never skipped (case C132).
#[test]
fn what_another_release_wrote_is_refused_in_plain_words() {
    let mut entry = Entry::new(ClusterTime::START, vec![Command::TakeOver]).encode();
    let last = entry.len() - 1;
    entry[last] = 200;
    let refusal = Entry::decode(&entry).unwrap_err().to_string();
    assert!(refusal.contains("command 200") && refusal.contains("run the release"), "{refusal}");
    entry[0] = 9;
    let refusal = Entry::decode(&entry).unwrap_err().to_string();
    assert!(refusal.contains("format 9") && refusal.contains("run the release"), "{refusal}");
    let mut head = LockTable::new().snapshot().chunks().next().unwrap();
    head[1] = 9;
    let refusal = Restore::default().chunk(&head).unwrap_err().to_string();
    assert!(refusal.contains("a snapshot has format 9"), "{refusal}");
}
