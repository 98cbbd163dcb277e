//! The planted bugs, from the command line.
//!
//! Owns: how it reads whether one was found, and what that took. Never: a plant; those are in the library's `plants`.

use kunci_sim::plants::{self, Plant};
use kunci_sim::trace::Lines;
use std::time::Duration;

/// What finding one may take of a processor.
const CPU_MAX: Duration = Duration::from_secs(60);

/// Shows all of them.
pub(crate) fn list() -> bool {
    for plant in plants::all() {
        println!("{:<34} {}: breaks {}", plant.name, plant.what, plant.breaks.join(" or "));
    }
    true
}

/// Runs one by its name. It has to fail: a bug that isn't found is the worse outcome, and says so.
pub(crate) fn run(name: &str) -> bool {
    let Some(plant) = plants::named(name) else {
        println!("no plant has the name {name}: cargo xtask sim --plants shows all of them");
        return false;
    };
    let began = cpu();
    match plant.run(Lines::Dropped) {
        Some(caught) => {
            println!("seed {}: {} is broken: {}", caught.seed, caught.broken.property, caught.broken.what);
            println!("{name} was found in {:.1} s of a processor", (cpu() - began).as_secs_f64());
        }
        None => println!("{name} WASN'T FOUND, though it breaks {}", plant.breaks.join(" or ")),
    }
    false
}

/// Runs all of them, and is well only if each is found in time by a property that it breaks. One after the other: what it
/// takes is measured, and some bugs are planted in the whole program.
pub(crate) fn check() -> bool {
    let (mut is_well, mut count, all_began) = (true, 0_u32, cpu());
    for plant in plants::all() {
        let began = cpu();
        let found = found(plant);
        let took = cpu() - began;
        count += 1;
        match found {
            Some((seed, property)) if took <= CPU_MAX => {
                println!("{:<34} {property}, seed {seed}, {:.1} s", plant.name, took.as_secs_f64());
            }
            Some((_, property)) => {
                is_well = false;
                println!("{:<34} {property}, but TOO LATE: {:.1} s", plant.name, took.as_secs_f64());
            }
            None => {
                is_well = false;
                println!("{:<34} NOT FOUND, in {:.1} s", plant.name, took.as_secs_f64());
            }
        }
    }
    println!("{count} planted bugs in {:.0} s of a processor", (cpu() - all_began).as_secs_f64());
    is_well && count > 0
}

fn found(plant: &Plant) -> Option<(u64, &'static str)> {
    let caught = plant.run(Lines::Dropped)?;
    Some((caught.seed, caught.broken.property))
}

/// What this program has computed so far.
fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    // Neither is negative.
    Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).unwrap_or(0))
}
