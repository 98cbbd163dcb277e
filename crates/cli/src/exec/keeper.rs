//! When to stop the command: decisions without a clock, a process or a network, for both doors.
//!
//! Owns: the order TERM, KILL, deadline. Never: reads the time, or knows how the lease is renewed; each question brings
//! along what is known.

use kunci_client::Moment;
use std::time::Duration;

/// From KILL until the last process of the group is gone: what the kernel may take, with a busy machine.
const KILL_TAKES: Duration = Duration::from_millis(100);
/// When the server has ended the lease, somebody else may have it: no more than this for an orderly end.
const ENDED_GRACE_MAX: Duration = Duration::from_millis(500);
/// The longest grace that is taken without being asked for.
const GRACE_DEFAULT_MAX: Duration = Duration::from_secs(5);

/// Times that can work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    ttl: Duration,
    grace: Duration,
}

/// Times that can't.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidSettings {
    /// The margin alone takes most of the lease.
    #[error("--ttl {ttl:?} is too short for a safety margin of {margin:?}: use at least 1s")]
    TtlTooShort {
        /// What was asked for.
        ttl: Duration,
        /// What is taken off.
        margin: Duration,
    },
    /// TERM would come before a failed renewal could be repeated.
    #[error("--grace {grace:?} is too long for --ttl {ttl:?}: use at most {max:?}, or a longer --ttl")]
    GraceTooLong {
        /// What was asked for.
        grace: Duration,
        /// The lease's length.
        ttl: Duration,
        /// What would be possible.
        max: Duration,
    },
}

impl Settings {
    /// Checks a TTL and a grace against each other. The default grace is a quarter of the TTL, at most 5 s.
    pub(super) fn new(ttl: Duration, grace: Option<Duration>) -> Result<Self, InvalidSettings> {
        let settings = Self { ttl, grace: grace.unwrap_or_else(|| GRACE_DEFAULT_MAX.min(ttl / 4)) };
        // Renewals begin at a third. Half of the lease is kept for them, so that one lost answer stops nothing.
        let max = (ttl / 2).saturating_sub(settings.margin() + KILL_TAKES);
        let max = Duration::from_millis(u64::try_from(max.as_millis()).unwrap_or(u64::MAX));
        if max.is_zero() {
            return Err(InvalidSettings::TtlTooShort { ttl, margin: settings.margin() });
        }
        if settings.grace > max {
            return Err(InvalidSettings::GraceTooLong { grace: settings.grace, ttl, max });
        }
        Ok(settings)
    }

    /// What is taken off each answered remaining time: clocks of two machines don't run alike.
    pub(super) fn margin(self) -> Duration {
        self.ttl / 100 + Duration::from_millis(20)
    }

    /// How long the lease lasts without renewal.
    pub(super) fn ttl(self) -> Duration {
        self.ttl
    }

    /// From TERM to KILL.
    pub(super) fn grace(self) -> Duration {
        self.grace
    }

    /// When the command has to be told to end, if the deadline stays where it is.
    pub(super) fn terminate_at(self, deadline: Moment) -> Moment {
        kill_at(deadline).minus(self.grace)
    }
}

/// Why the command is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The deadline is near and no renewal got through.
    NotRenewed,
    /// The deadline passed while this process didn't run.
    Paused,
    /// The server said that the lease is over.
    Ended(String),
    /// The total-hold limit is reached.
    HoldLimit,
}

/// What is known of the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// From here on it counts as lost, exclusive.
    pub(super) deadline: Moment,
    /// No renewal extends it any more: the total-hold limit.
    pub(super) is_final: bool,
    /// How it ended, when the server has said that it has.
    pub(super) ended: Option<String>,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before this moment, if nothing else becomes known.
    Wait(Moment),
    /// Send TERM to the whole group.
    Terminate(Why),
    /// Send KILL to the whole group.
    Kill(Why),
}

/// How far the end of the command has come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Held,
    Stopping { kill_at: Moment, why: Why, end: End },
    Killed,
}

/// Whether it is known that the server has ended the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Told,
}

/// Decides about the command under one lock.
#[derive(Clone, Debug)]
pub(super) struct Keeper {
    settings: Settings,
    stage: Stage,
}

impl Keeper {
    /// Begins with a command that may run.
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, stage: Stage::Held }
    }

    /// Whether the command isn't being stopped.
    pub(super) fn is_held(&self) -> bool {
        self.stage == Stage::Held
    }

    /// What to do at `now`. Each of [`Step::Terminate`] and [`Step::Kill`] is said once.
    pub(super) fn next(&mut self, now: Moment, facts: &Facts) -> Step {
        match self.stage.clone() {
            Stage::Killed => Step::Wait(now.plus(self.settings.ttl)),
            Stage::Held => self.held(now, facts),
            Stage::Stopping { kill_at, why, end } => {
                let is_news = end == End::Open && facts.ended.is_some();
                let kill_at = if is_news { kill_at.min(now.plus(ENDED_GRACE_MAX)) } else { kill_at };
                if now >= kill_at || now >= facts.deadline {
                    self.stage = Stage::Killed;
                    return Step::Kill(why);
                }
                let end = if is_news { End::Told } else { end };
                self.stage = Stage::Stopping { kill_at, why, end };
                Step::Wait(kill_at.min(facts.deadline))
            }
        }
    }

    fn held(&mut self, now: Moment, facts: &Facts) -> Step {
        let why = if facts.is_final { Why::HoldLimit } else { Why::NotRenewed };
        let (kill_at, terminate_at) = (kill_at(facts.deadline), self.settings.terminate_at(facts.deadline));
        if let Some(text) = &facts.ended {
            let kill_at = now.plus(self.settings.grace.min(ENDED_GRACE_MAX));
            self.stop(kill_at, Why::Ended(text.clone()), End::Told)
        } else if now >= kill_at {
            // The moment for TERM was slept through: this process was paused.
            self.stage = Stage::Killed;
            Step::Kill(if now >= facts.deadline { Why::Paused } else { why })
        } else if now >= terminate_at {
            self.stop(kill_at, why, End::Open)
        } else {
            Step::Wait(terminate_at)
        }
    }

    fn stop(&mut self, kill_at: Moment, why: Why, end: End) -> Step {
        self.stage = Stage::Stopping { kill_at, why: why.clone(), end };
        Step::Terminate(why)
    }
}

/// The latest moment for KILL: the group is dead before the deadline.
fn kill_at(deadline: Moment) -> Moment {
    deadline.minus(KILL_TAKES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command under a lease of 30 s whose deadline is at 29.68 s, in virtual time.
    struct World {
        keeper: Keeper,
        now: Moment,
        facts: Facts,
    }

    const TTL: Duration = Duration::from_secs(30);

    fn at(seconds: f64) -> Moment {
        Moment::at(Duration::from_secs(1000) + Duration::from_secs_f64(seconds))
    }

    impl World {
        fn new() -> Self {
            let settings = Settings::new(TTL, None).unwrap();
            let deadline = at(0.0).plus(TTL.saturating_sub(settings.margin()));
            let facts = Facts { deadline, is_final: false, ended: None };
            Self { keeper: Keeper::new(settings), now: at(0.0), facts }
        }

        /// Sleeps as told until there is something to do, and returns when and what.
        fn step(&mut self) -> (f64, Step) {
            loop {
                match self.keeper.next(self.now, &self.facts) {
                    Step::Wait(until) => self.now = until,
                    step => return (self.now.since(at(0.0)).as_secs_f64(), step),
                }
            }
        }
    }

    #[test]
    fn while_the_deadline_is_far_nothing_is_done_and_the_next_look_is_when_term_would_be_due() {
        let mut world = World::new();
        assert_eq!(world.keeper.next(at(0.0), &world.facts), Step::Wait(at(24.58)));
        world.facts.deadline = at(50.0);
        assert_eq!(world.keeper.next(at(24.58), &world.facts), Step::Wait(at(44.9)));
        assert!(world.keeper.is_held());
    }

    #[test]
    fn without_a_renewal_the_group_gets_term_then_kill_and_is_dead_before_the_deadline() {
        let mut world = World::new();
        // 30 s less 1 % and 20 ms is 29.68; KILL 100 ms before; TERM 5 s before that.
        assert_eq!(world.facts.deadline, at(29.68));
        assert_eq!(world.step(), (24.58, Step::Terminate(Why::NotRenewed)));
        assert!(!world.keeper.is_held());
        assert_eq!(world.step(), (29.58, Step::Kill(Why::NotRenewed)));
    }

    /// C92: on resuming after the deadline there is no time left for an orderly end.
    #[test]
    fn after_a_pause_past_the_deadline_the_group_gets_kill_at_once() {
        let mut world = World::new();
        world.now = at(60.0);
        assert_eq!(world.step(), (60.0, Step::Kill(Why::Paused)));
    }

    #[test]
    fn a_lease_that_the_server_has_ended_gets_term_now_and_kill_half_a_second_later() {
        let mut world = World::new();
        world.now = at(10.0);
        world.facts.ended = Some("forced".to_owned());
        assert_eq!(world.step(), (10.0, Step::Terminate(Why::Ended("forced".to_owned()))));
        assert_eq!(world.step(), (10.5, Step::Kill(Why::Ended("forced".to_owned()))));
    }

    #[test]
    fn an_end_that_is_heard_of_after_term_brings_kill_nearer_once() {
        let mut world = World::new();
        assert_eq!(world.step().1, Step::Terminate(Why::NotRenewed));
        world.now = at(25.0);
        world.facts.ended = Some("expired".to_owned());
        assert_eq!(world.step(), (25.5, Step::Kill(Why::NotRenewed)));
    }

    #[test]
    fn after_a_final_renewal_the_command_ends_at_the_hold_limit() {
        let mut world = World::new();
        world.facts.is_final = true;
        assert_eq!(world.step().1, Step::Terminate(Why::HoldLimit));
    }

    #[test]
    fn a_renewal_that_comes_after_term_does_not_put_kill_off() {
        let mut world = World::new();
        assert_eq!(world.step().1, Step::Terminate(Why::NotRenewed));
        world.facts.deadline = at(80.0);
        assert_eq!(world.step(), (29.58, Step::Kill(Why::NotRenewed)));
    }

    #[test]
    fn a_command_that_is_being_stopped_is_dead_at_the_deadline_whatever_moved_it() {
        let mut world = World::new();
        assert_eq!(world.step().1, Step::Terminate(Why::NotRenewed));
        world.facts.deadline = at(26.0);
        assert_eq!(world.step(), (26.0, Step::Kill(Why::NotRenewed)));
    }

    /// C70: each refusal names the two values that don't fit.
    #[test]
    fn times_that_cannot_work_together_are_refused() {
        let ms = Duration::from_millis;
        assert!(Settings::new(ms(1_000), None).is_ok());
        assert!(Settings::new(ms(2_000), Some(Duration::ZERO)).is_ok());
        assert_eq!(
            Settings::new(ms(100), None),
            Err(InvalidSettings::TtlTooShort { ttl: ms(100), margin: ms(21) })
        );
        let too_long = Settings::new(ms(10_000), Some(ms(5_000))).unwrap_err();
        assert_eq!(
            too_long.to_string(),
            "--grace 5s is too long for --ttl 10s: use at most 4.78s, or a longer --ttl"
        );
    }
}
