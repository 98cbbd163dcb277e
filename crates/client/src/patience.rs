//! Repeating a request: for how long, and what is known of it when that is over.
//!
//! Owns: the way from failed tries to an error. Never: sleeps or sends; it is told what happened and when.

use crate::clock::Moment;
use crate::error::{Certainty, Error, ErrorKind, Retry};
use crate::links::CallError;
use crate::wire::{self, Passing};
use kunci_api::{Applied, Code};
use std::time::Duration;

/// A try that was under way for so long had reached somebody.
pub(crate) const WAITED_LONG: Duration = Duration::from_secs(1);

/// From one refusal to the next try, at most.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// For how long a request is repeated while nobody decides it, and what is known of it meanwhile.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    failing_since: Option<Moment>,
    alone_since: Option<Moment>,
    certainty: Certainty,
    last: Option<Passing>,
    last_failure: Option<String>,
}

impl Patience {
    /// Gives up once answers were refusals for `limit` without a break.
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            failing_since: None,
            alone_since: None,
            certainty: Certainty::NotApplied,
            last: None,
            last_failure: None,
        }
    }

    /// One connection gave no answer.
    pub(crate) fn no_answer(&mut self, error: &CallError) {
        if matches!(error, CallError::NoAnswer(_)) {
            self.certainty = Certainty::Unknown;
        }
        self.last_failure = Some(error.to_string());
    }

    /// A try was under way for this long. When that is long, it may have been queued, whatever came of it, and what
    /// failed before doesn't count any more.
    pub(crate) fn waited(&mut self, under_way: Duration) {
        if under_way >= WAITED_LONG {
            (self.failing_since, self.alone_since) = (None, None);
            self.certainty = Certainty::Unknown;
        }
    }

    /// A refusal that passes.
    pub(crate) fn refused(&mut self, passing: Passing) {
        if passing.applied == Applied::Unknown {
            self.certainty = Certainty::Unknown;
        }
        self.alone_since = None;
        self.last = Some(passing);
    }

    /// A refusal that passes. Returns how long to pause, or the error when patience is over.
    pub(crate) fn passing(&mut self, passing: Passing, now: Moment) -> Result<Duration, Error> {
        let since = *self.failing_since.get_or_insert(now);
        // The longer it lasts the less it matters to notice its end at once: a thousand clients don't keep nodes from
        // electing a leader by asking who it is.
        let after = passing.after.max((now.since(since) / 4).min(PAUSE_MAX));
        self.refused(passing);
        if now.plus(after).since(since) >= self.limit { Err(self.unavailable()) } else { Ok(after) }
    }

    /// Every connection was tried in vain. Returns how long to pause, or the error when that lasted for `limit`.
    pub(crate) fn nobody(&mut self, limit: Duration, now: Moment) -> Result<Duration, Error> {
        let since = *self.alone_since.get_or_insert(now);
        if now.plus(wire::PAUSE).since(since) >= limit { Err(self.unreachable()) } else { Ok(wire::PAUSE) }
    }

    /// Every connection was tried in vain.
    pub(crate) fn unreachable(&self) -> Error {
        let why = self.last_failure.as_deref().unwrap_or("there is no connection to try");
        let detail = format!("no server can be reached: {why}");
        Error::new(ErrorKind::Unreachable, self.certainty, Retry::After(Duration::from_secs(1)), detail)
    }

    /// What is known of the request so far.
    pub(crate) fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// Time is up, whichever of the two it was.
    pub(crate) fn over(&self) -> Error {
        if self.last.is_some() { self.unavailable() } else { self.unreachable() }
    }

    fn unavailable(&self) -> Error {
        let (code, detail, after) = match &self.last {
            Some(passing) => (passing.code, passing.detail.as_str(), passing.after),
            None => (Code::NoLeader, "no answer that decides", wire::PAUSE),
        };
        let detail = format!("no decision within {:?}: {detail}", self.limit);
        Error::new(ErrorKind::Unavailable(code), self.certainty, Retry::After(after), detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::at(Duration::from_millis(ms))
    }

    /// C73, C57: what isn't known to have failed is never called failed.
    #[test]
    fn a_request_that_may_have_been_sent_stays_unknown_whatever_came_later() {
        let mut patience = Patience::new(Duration::from_secs(5));
        patience.no_answer(&CallError::NoAnswer("cut".into()));
        patience.no_answer(&CallError::NotSent("refused".into()));
        let error = patience.unreachable();
        assert_eq!((error.kind(), error.certainty()), (&ErrorKind::Unreachable, Certainty::Unknown));
        assert_eq!(error.to_string(), "no server can be reached: refused");

        let mut patience = Patience::new(Duration::from_secs(5));
        patience.no_answer(&CallError::NotSent("refused".into()));
        assert_eq!(patience.unreachable().certainty(), Certainty::NotApplied);
    }

    #[test]
    fn an_outage_is_outlasted_for_as_long_as_was_chosen_from_when_the_last_server_was_heard() {
        let mut patience = Patience::new(Duration::from_secs(5));
        patience.no_answer(&CallError::NotSent("refused".into()));
        assert!(patience.nobody(Duration::ZERO, at(0)).is_err(), "nothing was chosen");
        let second = Duration::from_secs(1);
        for ms in [0, 400, 799] {
            assert_eq!(patience.nobody(second, at(ms)).unwrap(), wire::PAUSE);
        }
        patience.refused(Passing::no_leader("none"));
        assert!(patience.nobody(second, at(5_000)).is_ok(), "somebody was heard meanwhile");
        let error = patience.nobody(second, at(5_800)).unwrap_err();
        assert_eq!((error.kind(), error.certainty()), (&ErrorKind::Unreachable, Certainty::NotApplied));
    }

    /// C122: whoever is refused for longer asks less often, and notices the end of it soon all the same.
    #[test]
    fn the_pause_grows_with_the_time_that_nobody_could_decide() {
        let mut patience = Patience::new(Duration::from_secs(60));
        let mut now = Moment::at(Duration::ZERO);
        let mut tries = 0;
        while now < at(60_000) {
            let Ok(pause) = patience.passing(Passing::no_leader("none"), now) else { break };
            assert!(pause >= wire::PAUSE && pause <= PAUSE_MAX, "{pause:?}");
            assert!(pause <= wire::PAUSE.max(now.since(at(0)) / 4), "{pause:?} after {now:?}");
            now = now.plus(pause);
            tries += 1;
        }
        assert!((50..=75).contains(&tries), "{tries}");
    }

    /// Another leader is there within a moment, or not for long.
    #[test]
    fn a_leader_that_is_gone_is_asked_after_more_often_at_first() {
        let mut patience = Patience::new(Duration::from_secs(60));
        let pauses =
            [0, 50, 100, 400, 2_000].map(|ms| patience.passing(Passing::leader_gone("gone"), at(ms)));
        assert_eq!(pauses.map(|pause| pause.unwrap().as_millis()), [50, 50, 50, 100, 500]);
    }

    #[test]
    fn patience_counts_from_the_first_refusal_and_ends_before_its_limit_would_pass() {
        let mut patience = Patience::new(Duration::from_secs(1));
        for ms in [10_000, 10_200, 10_400, 10_600] {
            assert_eq!(patience.passing(Passing::no_leader("none"), at(ms)).unwrap(), wire::PAUSE);
        }
        let error = patience.passing(Passing::no_leader("none"), at(10_800)).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Unavailable(Code::NoLeader));
        assert_eq!(error.certainty(), Certainty::NotApplied);
        assert_eq!(error.retry(), Retry::After(wire::PAUSE));
    }
}
