//! A lock that is held over HTTP: renewed here, one request at a time.
//!
//! Owns: when to renew, and the lease's deadline as this side counts it. Never: stops the command; see `keeper`.

use super::keeper::{Facts, Settings};
use super::lock::News;
use crate::lease::{Last, Lease, Renewal};
use kunci_client::{Alarm, BootClock, Clock as _, Moment};
use std::pin::Pin;
use std::time::Duration;

/// When to renew one lease, and until when it lasts: decisions without a clock or a network.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    settings: Settings,
    renew_every: Duration,
    /// From here on the lease counts as lost, exclusive.
    deadline: Moment,
    /// `None` when no renewal is to come.
    renew_at: Option<Moment>,
    last: Last,
    ended: Option<String>,
}

impl Schedule {
    /// Begins to keep a lease that lasts `remaining` from `sent_at`.
    pub(super) fn new(settings: Settings, lease_id: &str, sent_at: Moment, remaining: Duration) -> Self {
        let third = settings.ttl() / 3;
        let renew_every = third - third / 1000 * jitter(lease_id);
        Self {
            settings,
            renew_every,
            deadline: sent_at.plus(remaining.saturating_sub(settings.margin())),
            renew_at: Some(sent_at.plus(renew_every)),
            last: Last::No,
            ended: None,
        }
    }

    /// What is known.
    pub(super) fn facts(&self) -> Facts {
        Facts { deadline: self.deadline, is_final: self.last == Last::Final, ended: self.ended.clone() }
    }

    /// Until when the command may run, if nothing changes.
    pub(super) fn terminate_at(&self) -> Moment {
        self.settings.terminate_at(self.deadline)
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
            Renewal::Failed(_) => self.renew_at = Some(now.plus(retry_after(self.settings.ttl()))),
            Renewal::Ended(text) => (self.renew_at, self.ended) = (None, Some(text)),
        }
    }
}

/// How long the answer to one renewal may take: a third of the lease holds more than one try.
pub(super) fn answer_within(ttl: Duration) -> Duration {
    (ttl / 6).clamp(Duration::from_millis(100), Duration::from_secs(5))
}

/// From a failed renewal to the next try.
fn retry_after(ttl: Duration) -> Duration {
    (ttl / 20).clamp(Duration::from_millis(50), Duration::from_secs(1))
}

/// 0 to 100 thousandths, by the lease id: many holders that began together don't renew together.
fn jitter(lease_id: &str) -> u32 {
    let hash = lease_id
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % 101
}

/// A lease, its schedule, and the renewal that is on its way.
pub(super) struct Renewing {
    lease: Lease,
    schedule: Schedule,
    alarm: Box<dyn Alarm>,
    under_way: Option<Pin<Box<dyn Future<Output = Renewal>>>>,
    failed: u32,
}

impl Renewing {
    /// Begins to renew.
    pub(super) fn new(lease: Lease, schedule: Schedule) -> Self {
        Self { lease, schedule, alarm: BootClock.alarm(), under_way: None, failed: 0 }
    }

    /// What is known of the lease.
    pub(super) fn facts(&self) -> Facts {
        self.schedule.facts()
    }

    /// The lease.
    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Renews when it is time, and returns when an answer is there; never when no renewal is to come. May be dropped and
    /// called again.
    pub(super) async fn changed(&mut self) -> Option<News> {
        let renewal = match &mut self.under_way {
            Some(under_way) => under_way,
            None => {
                let Some(renew_at) = self.schedule.renew_at else { return std::future::pending().await };
                self.alarm.ring_at(renew_at).await;
                let (lease, within) = (self.lease.clone(), answer_within(self.schedule.settings.ttl()));
                self.under_way.insert(Box::pin(async move { lease.renew(within).await }))
            }
        };
        let renewal = renewal.await;
        self.under_way = None;
        let news = self.news(&renewal);
        self.schedule.told(renewal, BootClock.now());
        news
    }

    /// That renewals begin to fail, and that they work again; not each time.
    fn news(&mut self, renewal: &Renewal) -> Option<News> {
        let failed_before = self.failed;
        match renewal {
            Renewal::Failed(why) => {
                self.failed = self.failed.saturating_add(1);
                (failed_before == 0).then(|| News::Failing(why.clone()))
            }
            Renewal::Renewed { .. } => {
                self.failed = 0;
                (failed_before > 0).then_some(News::Safe)
            }
            Renewal::Ended(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    fn at(seconds: f64) -> Moment {
        Moment::at(Duration::from_secs(1000) + Duration::from_secs_f64(seconds))
    }

    /// A lease of 30 s that began at 1000 s.
    fn schedule() -> Schedule {
        Schedule::new(Settings::new(TTL, None).unwrap(), "lease", at(0.0), TTL)
    }

    fn renewed(sent_at: Moment, remaining: Duration, last: Last) -> Renewal {
        Renewal::Renewed { sent_at, remaining, last }
    }

    #[test]
    fn a_lease_is_renewed_at_a_third_of_its_ttl_with_jitter_by_its_id() {
        let mut schedule = schedule();
        let mut before = at(0.0);
        for _ in 1..20 {
            let due = schedule.renew_at.unwrap();
            let each = due.since(before).as_secs_f64();
            assert!((9.0..=10.0).contains(&each), "renewed after {each} s");
            schedule.told(renewed(due, TTL, Last::No), due);
            before = due;
        }
        let jitters: Vec<u32> = (0..50).map(|n| jitter(&format!("lease-{n}"))).collect();
        assert!(jitters.iter().any(|jitter| *jitter != jitters[0]), "{jitters:?}");
    }

    /// C83: one error, a reset and a 5 s election stop nothing while the deadline hasn't come near.
    #[test]
    fn failed_renewals_are_repeated_and_change_nothing_that_is_known() {
        let mut schedule = schedule();
        let before = schedule.facts();
        let mut tries = 0;
        while schedule.renew_at.unwrap() < at(20.0) {
            let now = schedule.renew_at.unwrap();
            schedule.told(Renewal::Failed("no answer".to_owned()), now);
            tries += 1;
        }
        assert!(tries >= 5, "{tries} tries");
        assert_eq!(schedule.facts(), before);
    }

    /// The remaining time counts from before the request was sent, however long the answer took.
    #[test]
    fn a_late_answer_counts_from_when_its_request_was_sent() {
        let mut schedule = schedule();
        schedule.told(renewed(at(10.0), TTL, Last::No), at(14.0));
        assert_eq!(schedule.facts().deadline, at(10.0).plus(Duration::from_millis(29_680)));
    }

    #[test]
    fn an_answer_never_shortens_what_was_answered_before() {
        let mut schedule = schedule();
        let before = schedule.facts();
        schedule.told(renewed(at(10.0), Duration::from_secs(3), Last::No), at(10.0));
        assert_eq!(schedule.facts(), before);
    }

    #[test]
    fn after_a_final_renewal_and_after_the_leases_end_none_is_sent() {
        let mut kept = schedule();
        kept.told(renewed(at(10.0), Duration::from_secs(25), Last::Final), at(10.0));
        assert_eq!((kept.renew_at, kept.facts().is_final), (None, true));
        let mut kept = schedule();
        kept.told(Renewal::Ended("forced".to_owned()), at(10.0));
        assert_eq!((kept.renew_at, kept.facts().ended.as_deref()), (None, Some("forced")));
    }
}
