//! Whether the simulator can be believed: a seed is the same world each time.
//!
//! Owns: the comparison, also with another machine (see `elsewhere`). Never: looks at whether a world is well.

use crate::elsewhere;
use kunci_sim::plan::Plan;
use kunci_sim::report::Report;
use kunci_sim::trace::Lines;
use kunci_sim::world;
use std::ops::Range;
use std::process::Command;

/// Runs each seed twice at the same time in this process, once in a fresh one, and once as on another machine.
pub(crate) fn check(seeds: Range<u64>) -> bool {
    let count = seeds.end - seeds.start;
    for seed in seeds {
        if let Err(why) = same(seed) {
            println!("seed {seed} isn't the same world each time: {why}");
            return false;
        }
    }
    println!(
        "{count} seeds are the same worlds each time, in one process, in a fresh one, and as on another machine"
    );
    true
}

fn same(seed: u64) -> Result<(), String> {
    let plan = &Plan::drawn(seed);
    let here = std::thread::scope(|scope| {
        // One keeps its lines and the other doesn't: that makes no difference either.
        let threads = [Lines::Kept, Lines::Dropped].map(|lines| scope.spawn(move || world::run(plan, lines)));
        threads.map(|thread| thread.join().unwrap_or_else(|_| Err("the simulator panicked".to_owned())))
    });
    let [first, second] = here;
    let (first, second) = (first?, second?);
    if first.hash != second.hash {
        return Err(format!("in one process: {}", difference(&first, &world::run(plan, Lines::Kept)?)));
    }
    let here = format!("{:016x}", first.hash);
    let fresh = [("in a fresh one", fresh(seed, |_| {})?), ("elsewhere", fresh(seed, elsewhere::begin)?)];
    match fresh.iter().find(|(_, hash)| *hash != here) {
        Some((place, hash)) => Err(format!("{here} in this process, {hash} {place}")),
        None => Ok(()),
    }
}

/// Where two traces part.
fn difference(first: &Report, second: &Report) -> String {
    let mut lines = first.trace.lines().zip(second.trace.lines()).enumerate();
    match lines.find(|(_, (first, second))| first != second) {
        Some((number, (first, second))) => format!("line {number} is\n{first}\nand\n{second}"),
        None => format!("{:016x} and another hash, behind the same lines", first.hash),
    }
}

/// The trace hash in a process of its own, which `prepare` may let begin otherwise.
fn fresh(seed: u64, prepare: impl FnOnce(&mut Command)) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
    let mut command = Command::new(program);
    command.arg(seed.to_string());
    prepare(&mut command);
    let output = command.output().map_err(|error| format!("start a fresh process: {error}"))?;
    let shown = String::from_utf8_lossy(&output.stdout);
    let last = shown.lines().last().unwrap_or_default();
    last.rsplit(' ').next().map(str::to_owned).ok_or_else(|| "the fresh process showed nothing".to_owned())
}
