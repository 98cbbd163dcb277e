//! The same seed twice is the same world.

use kunci_sim::plan::Plan;
use kunci_sim::trace::Lines;
use kunci_sim::world::run;

// Tokio's own draws follow a seed only with this flag: see src/runtime.rs.
#[cfg_attr(not(tokio_unstable), ignore = "needs RUSTFLAGS='--cfg tokio_unstable': cargo xtask sim has it")]
#[test]
fn a_seed_is_the_same_world_each_time() {
    let plan = Plan::drawn(3);
    let first = run(&plan, Lines::Kept).unwrap();
    let second = run(&plan, Lines::Kept).unwrap();
    for (first, second) in first.trace.lines().zip(second.trace.lines()) {
        assert_eq!(first, second);
    }
    assert_eq!(first.hash, second.hash);
    assert_eq!(run(&plan, Lines::Dropped).unwrap().hash, first.hash);
    assert_eq!(first.broken, []);
}
