//! An operator who changes the limits while clients work.
//!
//! Owns: which limits, and to what: such as the load runs into, and back to what they were. Never: a policy that the
//! contract doesn't allow.

use super::caller::{ANSWER_WITHIN, Caller};
use crate::randomness::Seeded;
use kunci_oracle::{Op, Outcome, Told};
use serde_json::{Value, json};

/// The waiter grace of a policy that nobody has changed, in ms.
const WAITER_GRACE_MS: u64 = 10_000;

/// Reads the policy and changes it, once. Now and then against a policy that was replaced before.
pub(super) async fn change(caller: &mut Caller, random: &mut Seeded) {
    let Some((Told::Policy { since, .. }, _)) = caller.settle(&Op::Policy, 5).await else { return };
    let replaces = if random.below(8) == 0 { since.saturating_sub(1) } else { since };
    let change = Op::ChangePolicy { replaces, policy: drawn(random) };
    let Outcome::Answer(_) = caller.once_within(&change, ANSWER_WITHIN).await else { return };
    if random.below(3) == 0 {
        // Whoever is slower than another one is refused.
        caller.turn();
        let again = Op::ChangePolicy { replaces: since, policy: drawn(random) };
        drop(caller.once_within(&again, ANSWER_WITHIN).await);
    }
}

/// Some limit, lower or as it was.
fn drawn(random: &mut Seeded) -> Value {
    let is_low = random.below(2) == 0;
    let limit = |low: u64, usual: u64| if is_low { low } else { usual };
    match random.below(8) {
        0 => {
            let longest = limit(random.between(1_500, 3_000), 3_600_000);
            json!({ "ttlMsMax": longest, "ttlMsDefault": longest.min(30_000) })
        }
        1 => {
            let shortest = limit(random.between(1_000, 2_000), 1_000);
            json!({ "ttlMsMin": shortest, "ttlMsMax": 3_600_000, "ttlMsDefault": 30_000 })
        }
        2 => json!({ "ttlMsMax": limit(15_000, 3_600_000), "ttlMsDefault": limit(15_000, 30_000),
            "totalHoldMsMax": limit(random.between(15_000, 30_000), 86_400_000) }),
        3 => json!({ "waitMsMax": limit(random.between(500, 6_000), 3_600_000) }),
        4 => json!({ "lockDelayMsMax": limit(random.between(50, 600), 60_000) }),
        5 => json!({ "waitersPerResourceMax": limit(random.between(1, 3), 1_024) }),
        // Mostly low, so that it is over before the world is.
        6 => json!({ "waiterGraceMs": random.between(1_000, 3_000) }),
        _ => json!({ "waiterGraceMs": limit(random.between(1_000, 3_000), WAITER_GRACE_MS) }),
    }
}
