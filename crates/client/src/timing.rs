//! The times that one lease is kept by.
//!
//! Owns: what is derived from a TTL, and which choices can work together. Never: reads a clock.

use std::time::Duration;

/// The shortest interval that a lease is renewed by: below it, renewing is all that a client would do.
const RENEW_EVERY_MIN: Duration = Duration::from_millis(10);

/// Below it the safety margin and one round trip take most of a lease.
const TTL_MIN: Duration = Duration::from_millis(100);

/// When to renew and until when to believe, for leases of one TTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) ttl: Duration,
    /// From the sending of one renewal to the next.
    pub(crate) renew_every: Duration,
    /// How long the answer to a renewal may take.
    pub(crate) answer_within: Duration,
}

/// Times that can't work together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidTiming {
    /// The margin takes most of the lease.
    #[error("a ttl of {ttl:?} is too short for a safety margin of {margin:?}: use at least 100 ms")]
    TtlTooShort { ttl: Duration, margin: Duration },
    /// Nothing would be left of the lease when it is renewed, or there is no interval.
    #[error("a renewal every {renew_every:?} can't keep a ttl of {ttl:?}: use 10 ms to half of the ttl")]
    RenewEvery { renew_every: Duration, ttl: Duration },
    /// One slow answer would cost the lease.
    #[error(
        "an answer that may take {answer_within:?} can cost a lease with a ttl of {ttl:?} that is renewed every \
         {renew_every:?}: use at most {max:?}, or a longer ttl"
    )]
    AnswerWithin { answer_within: Duration, ttl: Duration, renew_every: Duration, max: Duration },
}

impl Timing {
    /// Checks the choices against each other. Without them: a third of the TTL, and a sixth of it within 100 ms and 5 s.
    pub(crate) fn new(
        ttl: Duration,
        renew_every: Option<Duration>,
        answer_within: Option<Duration>,
    ) -> Result<Self, InvalidTiming> {
        let margin = margin(ttl);
        if ttl < TTL_MIN {
            return Err(InvalidTiming::TtlTooShort { ttl, margin });
        }
        let renew_every = renew_every.unwrap_or(ttl / 3);
        if renew_every < RENEW_EVERY_MIN || renew_every > ttl / 2 {
            return Err(InvalidTiming::RenewEvery { renew_every, ttl });
        }
        // After an answer that didn't come there must be time for another try.
        let max = (ttl - renew_every).saturating_sub(margin) / 2;
        let by_itself = (ttl / 6).clamp(Duration::from_millis(100), Duration::from_secs(5)).min(max);
        let answer_within = answer_within.unwrap_or(by_itself);
        if answer_within.is_zero() || answer_within > max {
            return Err(InvalidTiming::AnswerWithin { answer_within, ttl, renew_every, max });
        }
        Ok(Self { ttl, renew_every, answer_within })
    }

    /// What is taken off each answered remaining time.
    pub(crate) fn margin(self) -> Duration {
        margin(self.ttl)
    }

    /// From a round of failed renewals to the next.
    pub(crate) fn retry_after(self) -> Duration {
        (self.ttl / 20).clamp(Duration::from_millis(20), Duration::from_secs(1))
    }

    /// A lease of which no renewal was answered for this long is in doubt, whatever the reason.
    pub(crate) fn doubt_after(self) -> Duration {
        self.ttl / 2 + self.answer_within.min(self.ttl / 6)
    }
}

/// 1 % of the TTL and 20 ms: the clocks of two machines don't run alike, and stopping takes a moment.
fn margin(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(20)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    /// C70: what can't work is refused where it is said, and the refusal names both values.
    #[test]
    fn times_that_cannot_work_together_are_refused_by_their_values() {
        let refused = |ttl, renew_every, answer_within| {
            Timing::new(ttl, renew_every, answer_within).unwrap_err().to_string()
        };
        let text = refused(S(10), Some(S(10)), None);
        assert!(text.contains("every 10s") && text.contains("ttl of 10s"), "{text}");
        assert!(refused(S(10), Some(S(11)), None).contains("11s"));
        assert!(refused(S(10), Some(Duration::ZERO), None).contains("0ns"));
        let text = refused(S(10), None, Some(S(10)));
        assert!(text.contains("may take 10s") && text.contains("ttl of 10s"), "{text}");
        assert!(refused(S(10), None, Some(Duration::ZERO)).contains("0ns"));
        let text = refused(Duration::from_millis(30), None, None);
        assert!(text.contains("30ms") && text.contains("margin of 20.3ms"), "{text}");
        refused(Duration::ZERO, None, None);
        refused(S(10), Some(S(5)), Some(S(4)));
    }

    /// C30: the largest values neither wrap nor panic.
    #[test]
    fn the_longest_ttl_there_is_can_be_counted_with() {
        let timing = Timing::new(Duration::MAX, None, None).unwrap();
        assert_eq!(timing.answer_within, S(5));
        assert!(timing.doubt_after() < Duration::MAX);
    }

    #[test]
    fn by_itself_a_lease_is_renewed_at_a_third_and_holds_two_more_tries() {
        for ms in [100, 1_000, 6_000, 30_000, 3_600_000] {
            let ttl = Duration::from_millis(ms);
            let timing = Timing::new(ttl, None, None).unwrap();
            assert_eq!(timing.renew_every, ttl / 3);
            assert!(timing.renew_every + timing.answer_within * 2 + timing.margin() <= ttl, "{ms} ms");
        }
    }
}
