//! When to renew, when to stop the command: decisions without a clock, a process or a network.
//!
//! Owns: the lease's deadline as this side counts it, the order TERM, KILL, deadline. Never: reads the time; each
//! question brings it along.

use crate::clock::Moment;
use crate::lease::{Last, Renewal};
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

    /// How long the answer to one renewal may take: a third of the lease holds more than one try.
    pub(super) fn answer_within(self) -> Duration {
        (self.ttl / 6).clamp(Duration::from_millis(100), Duration::from_secs(5))
    }

    /// From a failed renewal to the next try.
    fn retry_after(self) -> Duration {
        (self.ttl / 20).clamp(Duration::from_millis(50), Duration::from_secs(1))
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

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before this moment.
    Wait(Moment),
    /// Send a renewal; tell its result with [`Keeper::told`].
    Renew,
    /// Send TERM to the whole group.
    Terminate(Why),
    /// Send KILL to the whole group.
    Kill(Why),
}

/// How far the end of the command has come.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    Held,
    /// The server said so, and nothing was done about it yet.
    Ended(String),
    Stopping {
        kill_at: Moment,
        why: Why,
    },
    Killed,
}

/// Keeps one lease.
#[derive(Clone, Debug)]
pub(super) struct Keeper {
    settings: Settings,
    renew_every: Duration,
    /// From here on the lease counts as lost, exclusive.
    deadline: Moment,
    /// `None` while a renewal is on its way, and after a final one.
    renew_at: Option<Moment>,
    last: Last,
    stage: Stage,
}

impl Keeper {
    /// Begins to keep a lease that lasts `remaining` from `sent_at`.
    pub(super) fn new(settings: Settings, lease_id: &str, sent_at: Moment, remaining: Duration) -> Self {
        let third = settings.ttl / 3;
        let renew_every = third - third / 1000 * jitter(lease_id);
        Self {
            settings,
            renew_every,
            deadline: sent_at.plus(remaining.saturating_sub(settings.margin())),
            renew_at: Some(sent_at.plus(renew_every)),
            last: Last::No,
            stage: Stage::Held,
        }
    }

    /// Until when nobody else can be granted the lock, exclusive.
    pub(super) fn deadline(&self) -> Moment {
        self.deadline
    }

    /// Whether the lock is held and the command isn't being stopped.
    pub(super) fn is_held(&self) -> bool {
        self.stage == Stage::Held
    }

    /// When the command has to be told to end, if nothing changes.
    pub(super) fn terminate_at(&self) -> Moment {
        self.kill_at().minus(self.settings.grace)
    }

    /// Takes in what came of a renewal, at `now`.
    pub(super) fn told(&mut self, renewal: Renewal, now: Moment) {
        match renewal {
            Renewal::Renewed { sent_at, remaining, last } => {
                // The server never shortens a lease, so an older promise stands beside a newer one.
                let counted = sent_at.plus(remaining.saturating_sub(self.settings.margin()));
                self.deadline = self.deadline.max(counted);
                self.last = last;
                self.renew_at = (last == Last::No).then(|| sent_at.plus(self.renew_every));
            }
            Renewal::Failed(_) => self.renew_at = Some(now.plus(self.settings.retry_after())),
            Renewal::Ended(text) => {
                self.renew_at = None;
                self.stage = match self.stage.clone() {
                    Stage::Killed => Stage::Killed,
                    Stage::Stopping { kill_at, why } => {
                        Stage::Stopping { kill_at: kill_at.min(now.plus(ENDED_GRACE_MAX)), why }
                    }
                    Stage::Held | Stage::Ended(_) => Stage::Ended(text),
                };
            }
        }
    }

    /// What to do at `now`. Each of [`Step::Renew`], [`Step::Terminate`] and [`Step::Kill`] is said once.
    pub(super) fn next(&mut self, now: Moment) -> Step {
        match self.stage.clone() {
            Stage::Killed => Step::Wait(now.plus(self.settings.ttl)),
            Stage::Stopping { kill_at, why } if now >= kill_at || now >= self.deadline => {
                self.stage = Stage::Killed;
                Step::Kill(why)
            }
            Stage::Stopping { kill_at, .. } => self.renew_or_wait(now, kill_at),
            Stage::Ended(text) => {
                let kill_at = now.plus(self.settings.grace.min(ENDED_GRACE_MAX));
                self.stop(kill_at, Why::Ended(text))
            }
            // The moment for TERM was slept through: this process was paused.
            Stage::Held if now >= self.kill_at() => {
                self.stage = Stage::Killed;
                Step::Kill(if now >= self.deadline { Why::Paused } else { self.why() })
            }
            Stage::Held if now >= self.terminate_at() => self.stop(self.kill_at(), self.why()),
            Stage::Held => self.renew_or_wait(now, self.terminate_at()),
        }
    }

    fn stop(&mut self, kill_at: Moment, why: Why) -> Step {
        self.stage = Stage::Stopping { kill_at, why: why.clone() };
        Step::Terminate(why)
    }

    fn why(&self) -> Why {
        if self.last == Last::Final { Why::HoldLimit } else { Why::NotRenewed }
    }

    fn renew_or_wait(&mut self, now: Moment, until: Moment) -> Step {
        match self.renew_at {
            Some(at) if at <= now => {
                self.renew_at = None;
                Step::Renew
            }
            Some(at) => Step::Wait(at.min(until)),
            None => Step::Wait(until),
        }
    }

    /// The latest moment for KILL: the group is dead before the deadline.
    fn kill_at(&self) -> Moment {
        self.deadline.minus(KILL_TAKES)
    }
}

/// 0 to 100 thousandths, by the lease id: many holders that began together don't renew together.
fn jitter(lease_id: &str) -> u32 {
    let hash = lease_id
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % 101
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keeper of a lease of 30 s that began at 1000 s, in virtual time.
    struct World {
        keeper: Keeper,
        now: Moment,
    }

    const TTL: Duration = Duration::from_secs(30);

    fn at(seconds: f64) -> Moment {
        Moment::since_boot(Duration::from_secs(1000) + Duration::from_secs_f64(seconds))
    }

    impl World {
        fn new() -> Self {
            let settings = Settings::new(TTL, None).unwrap();
            Self { keeper: Keeper::new(settings, "lease", at(0.0), TTL), now: at(0.0) }
        }

        /// Sleeps as told until there is something to do, and returns when and what.
        fn step(&mut self) -> (f64, Step) {
            loop {
                match self.keeper.next(self.now) {
                    Step::Wait(until) => self.now = until,
                    step => return (self.now.since(at(0.0)).as_secs_f64(), step),
                }
            }
        }

        fn fail(&mut self) {
            self.keeper.told(Renewal::Failed("no answer".to_owned()), self.now);
        }

        fn renewed(&mut self, remaining: Duration, last: Last) {
            self.keeper.told(Renewal::Renewed { sent_at: self.now, remaining, last }, self.now);
        }
    }

    #[test]
    fn a_lease_is_renewed_at_a_third_of_its_ttl_with_jitter_by_its_id() {
        let mut world = World::new();
        for round in 1..20 {
            let (when, step) = world.step();
            assert_eq!(step, Step::Renew);
            let each = when / f64::from(round);
            assert!((9.0..=10.0).contains(&each), "renewed every {each} s");
            world.renewed(TTL, Last::No);
        }
        let jitters: Vec<u32> = (0..50).map(|n| jitter(&format!("lease-{n}"))).collect();
        assert!(jitters.iter().any(|jitter| *jitter != jitters[0]), "{jitters:?}");
    }

    /// C83: one error, a reset and a 5 s election stop nothing while the deadline hasn't come near.
    #[test]
    fn failed_renewals_are_repeated_and_stop_nothing_while_there_is_time() {
        let mut world = World::new();
        let mut tries = 0;
        while world.now < at(20.0) {
            let (_, step) = world.step();
            assert_eq!(step, Step::Renew);
            world.fail();
            tries += 1;
        }
        assert!(tries >= 5, "{tries} tries");
        world.renewed(TTL, Last::No);
        assert!(world.keeper.is_held());
        let (when, step) = world.step();
        assert_eq!(step, Step::Renew);
        assert!(when > 29.0, "renewed at {when}");
    }

    #[test]
    fn without_a_renewal_the_group_gets_term_then_kill_and_is_dead_before_the_deadline() {
        let mut world = World::new();
        let mut stops = Vec::new();
        while stops.len() < 2 {
            match world.step() {
                (_, Step::Renew) => world.fail(),
                stop => stops.push(stop),
            }
        }
        // 30 s less 1 % and 20 ms is 29.68; KILL 100 ms before; TERM 5 s before that.
        assert_eq!(world.keeper.deadline(), at(29.68));
        assert_eq!(stops[0], (24.58, Step::Terminate(Why::NotRenewed)));
        assert_eq!(stops[1], (29.58, Step::Kill(Why::NotRenewed)));
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
        let (_, step) = world.step();
        assert_eq!(step, Step::Renew);
        let told_at = world.now.since(at(0.0)).as_secs_f64();
        world.keeper.told(Renewal::Ended("forced".to_owned()), world.now);
        assert!(!world.keeper.is_held());
        assert_eq!(world.step(), (told_at, Step::Terminate(Why::Ended("forced".to_owned()))));
        let (killed_at, step) = world.step();
        assert_eq!(step, Step::Kill(Why::Ended("forced".to_owned())));
        assert!((killed_at - told_at - 0.5).abs() < 0.001, "killed after {}", killed_at - told_at);
    }

    /// The remaining time counts from before the request was sent, however long the answer took.
    #[test]
    fn a_late_answer_counts_from_when_its_request_was_sent() {
        let mut world = World::new();
        assert_eq!(world.step().1, Step::Renew);
        let sent_at = world.now;
        let late = sent_at.plus(Duration::from_secs(4));
        world.keeper.told(Renewal::Renewed { sent_at, remaining: TTL, last: Last::No }, late);
        assert_eq!(world.keeper.deadline(), sent_at.plus(Duration::from_millis(29_680)));
    }

    #[test]
    fn an_answer_never_shortens_what_was_answered_before() {
        let mut world = World::new();
        let before = world.keeper.deadline();
        world.renewed(Duration::from_secs(3), Last::No);
        assert_eq!(world.keeper.deadline(), before);
    }

    #[test]
    fn after_a_final_renewal_none_is_sent_and_the_command_ends_at_the_hold_limit() {
        let mut world = World::new();
        assert_eq!(world.step().1, Step::Renew);
        world.renewed(Duration::from_secs(25), Last::Final);
        let (_, step) = world.step();
        assert_eq!(step, Step::Terminate(Why::HoldLimit));
    }

    #[test]
    fn a_renewal_that_comes_after_term_does_not_put_kill_off() {
        let mut world = World::new();
        while world.keeper.is_held() {
            if world.step().1 == Step::Renew {
                world.fail();
            }
        }
        world.renewed(TTL, Last::No);
        let mut killed_at = 0.0;
        while killed_at == 0.0 {
            match world.step() {
                (when, Step::Kill(_)) => killed_at = when,
                (_, step) => assert_eq!(step, Step::Renew),
            }
        }
        assert!((killed_at - 29.58).abs() < 0.001, "killed at {killed_at}");
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
