//! The judge of histories: what clients were told, and whether a lock service that keeps its promises could have said so.
//!
//! Owns: the record of calls, and one file for each guarantee under `invariants`. Never: a look at a server, or at how the
//! calls were made; the simulator and the tests of real processes share it.

mod history;
mod invariants;
mod random;

pub use history::{Answer, Call, Held, History, Op, Outcome, Position, Refused, Told};
pub use invariants::{Breach, HandOver, Lie, Summary, hand_overs, judge, judge_in_order, tell_lies};
pub use random::Random;
