//! Work for `cargo xtask growth`, which counts its instructions: each kind of command, so many times, on a table of so many
//! resources.
//!
//! Owns: one function for each kind, whose name is what is counted. Says `ready` once the table is filled and waits for a
//! line, so that filling it isn't counted. Called by hand it does the same, and shows nothing.
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a tool for measuring")]

mod filled;

use filled::{Filled, alone, at, cancel, first, force_release, name, release, renew, second, third};
use kunci_core::LockTable;
use kunci_core::command::{Command, Entry};
use kunci_types::{Policy, Wait};
use std::hint::black_box;

/// Each kind is done so often.
const TIMES: u64 = 200;
/// The smallest table.
const SMALLEST: u64 = 1_000;
/// Names that one list shows; in every table as many come behind each name that a list begins at.
const LISTED: usize = 100;
/// When the leases of the last kind are over, and those that filled the table aren't.
const EXPIRED_MS: u64 = 31_000;

/// A kind's function: nothing in it but the work, never inlined, so that its name stands in the profile.
macro_rules! counted {
    ($($kind:ident),+ $(,)?) => {
        $(
            #[inline(never)]
            fn $kind(table: &mut LockTable, entries: &[Entry]) {
                // Kinds with the same code would be one function.
                black_box(stringify!($kind));
                for entry in entries {
                    black_box(table.apply(entry));
                }
            }
        )+
    };
}

counted!(
    counted_acquire,
    counted_try_of_a_held_one,
    counted_queue,
    counted_cancel,
    counted_renew,
    counted_hand_off,
    counted_release,
    counted_force_release,
    counted_retry,
    counted_expire_together,
);

#[inline(never)]
fn counted_status(table: &LockTable, numbers: &[u64]) {
    for number in numbers {
        black_box(table.status(&name(*number)));
    }
}

#[inline(never)]
fn counted_list(table: &LockTable, numbers: &[u64]) {
    for number in numbers {
        black_box(table.list("orders/", Some(name(*number).as_str()), LISTED));
    }
}

#[inline(never)]
fn counted_snapshot(table: &LockTable) {
    for _ in 0..TIMES {
        black_box(table.snapshot());
    }
}

/// What is counted, prepared before anything is.
struct Work {
    acquires: Vec<Entry>,
    queues: Vec<Entry>,
    queues_again: Vec<Entry>,
    cancels: Vec<Entry>,
    hand_offs: Vec<Entry>,
    releases: Vec<Entry>,
    held: Vec<u64>,
    pages: Vec<u64>,
    tries: Vec<Entry>,
    renewals: Vec<Entry>,
    forced: Vec<Entry>,
    short: Vec<Entry>,
    expiry: Vec<Entry>,
}

impl Work {
    fn on(filled: &Filled) -> Self {
        let (new, short, held) = (filled.unseen(0, TIMES), filled.unseen(1, TIMES), filled.held(TIMES));
        let mut pages = held.clone();
        pages.sort_by_key(|number| name(*number));
        pages.truncate(pages.len() / 4);
        let wait = Wait::UpToMs(20_000);
        let each = |of: &[u64], command: &dyn Fn(u64) -> Command| alone(of.iter().copied().map(command));
        Self {
            acquires: each(&new, &|number| first(number, Wait::Try)),
            queues: each(&new, &|number| second(number, wait)),
            queues_again: each(&new, &|number| third(number, wait)),
            cancels: each(&new, &cancel),
            hand_offs: each(&new, &|number| release(number, 0)),
            releases: each(&new, &|number| release(number, 1)),
            tries: each(&held, &|number| second(number, Wait::Try)),
            renewals: each(&held, &renew),
            forced: each(&held, &|number| force_release(number, filled.token(number))),
            short: each(&short, &|number| first(number, Wait::Try)),
            expiry: vec![at(EXPIRED_MS, Vec::new())],
            held,
            pages,
        }
    }

    fn run(&self, table: &mut LockTable) {
        counted_acquire(table, &self.acquires);
        counted_retry(table, &self.acquires);
        counted_queue(table, &self.queues);
        prepare(table, &self.queues_again);
        counted_cancel(table, &self.cancels);
        counted_hand_off(table, &self.hand_offs);
        counted_release(table, &self.releases);
        counted_try_of_a_held_one(table, &self.tries);
        counted_renew(table, &self.renewals);
        counted_status(table, &self.held);
        counted_list(table, &self.pages);
        counted_snapshot(table);
        counted_force_release(table, &self.forced);
        prepare(table, &self.short);
        counted_expire_together(table, &self.expiry);
    }
}

/// What has to be there, and isn't counted.
#[inline(never)]
fn prepare(table: &mut LockTable, entries: &[Entry]) {
    for entry in entries {
        black_box(table.apply(entry));
    }
}

fn main() {
    let count = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(SMALLEST);
    let mut filled = Filled::with(count, Policy::default());
    let work = Work::on(&filled);
    println!("ready {TIMES}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    work.run(&mut filled.table);
    assert_eq!(
        filled.table.held_count(),
        filled.held_count() - TIMES,
        "the work isn't what it is meant to be"
    );
}
