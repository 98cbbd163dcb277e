//! What became of a request, in the words of the metrics.

use super::calls::End;
use super::order::Place;
use crate::metrics::{DoorMeasures, Op, Outcome};
use kunci_api::Code;
use kunci_api::native::{self, Refused};
use tokio::time::Instant;

/// Takes up that a request has ended at `now`; without an end nobody is told any more.
pub(super) fn measured(measures: &DoorMeasures, place: &Place, end: Option<&End>, now: Instant) {
    let op = match place.op() {
        native::Op::Acquire => Op::Acquire,
        native::Op::Renew => Op::Renew,
        native::Op::Release => Op::Release,
        native::Op::Cancel => Op::Cancel,
        native::Op::Status => Op::Read,
        native::Op::Hello | native::Op::Ping => return,
    };
    let outcome = end.map_or(Outcome::Gone, |end| outcome(op, &end.outcome));
    let took = place.began().map_or_else(Default::default, |began| now.saturating_duration_since(began));
    measures.requests.record(op, outcome, took);
}

fn outcome(op: Op, outcome: &native::Outcome) -> Outcome {
    match outcome {
        native::Outcome::Granted(_) if op == Op::Acquire => Outcome::Granted,
        native::Outcome::Cancelled { .. } if op == Op::Acquire => Outcome::Cancelled,
        native::Outcome::Granted(_)
        | native::Outcome::Released { .. }
        | native::Outcome::Renewed { .. }
        | native::Outcome::Cancelled { .. }
        | native::Outcome::Status(_)
        | native::Outcome::Welcome(_)
        | native::Outcome::Pong => Outcome::Done,
        native::Outcome::TimedOut { .. } => Outcome::TimedOut,
        native::Outcome::Held(_) => Outcome::Refused,
        native::Outcome::Moved { .. } => Outcome::Moved,
        native::Outcome::Error(Refused { code, .. }) => {
            let code = Code::ALL.iter().find(|known| known.as_str() == code);
            // Of a lease that isn't the caller's any more it says how that ended.
            code.map_or(Outcome::Lost, |code| Outcome::refused(*code))
        }
    }
}
