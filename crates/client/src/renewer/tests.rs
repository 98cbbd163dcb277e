//! Leases of one client in virtual time: what a keeper would be told to do, and what holders would be told.

use super::*;
use crate::state::State;

const TTL: Duration = Duration::from_secs(30);
const CONNECTIONS: u32 = 3;

fn at(ms: u64) -> Moment {
    Moment::at(Duration::from_secs(1_000) + Duration::from_millis(ms))
}

fn ms_of(moment: Moment) -> u64 {
    u64::try_from(moment.since(at(0)).as_millis()).unwrap()
}

fn granted(ttl: Duration, jitter: u32) -> Granted {
    let timing = Timing::new(ttl, None, None).unwrap();
    Granted { timing, sent_at: at(0), remaining: ttl, is_final: false, jitter }
}

/// A renewer whose sleeps are jumps.
struct World {
    renewer: Renewer,
    now: Moment,
    /// What was said of each change, and when.
    said: Vec<(u64, Key, Facts)>,
}

impl World {
    fn holding(leases: impl IntoIterator<Item = Granted>) -> Self {
        let mut renewer = Renewer::default();
        for (key, granted) in (0..).zip(leases) {
            renewer.keep(key, &granted);
        }
        Self { renewer, now: at(0), said: Vec::new() }
    }

    /// Sleeps until there is something to send, or until `until`.
    fn next_renewals(&mut self, until: Moment) -> Vec<Key> {
        loop {
            match self.renewer.wake_at() {
                Some(wake_at) if wake_at <= until => self.now = self.now.max(wake_at),
                _ => {
                    self.now = until;
                    return Vec::new();
                }
            }
            let due = self.renewer.due(self.now);
            self.said.extend(due.changed.into_iter().map(|(key, facts)| (ms_of(self.now), key, facts)));
            if !due.renew.is_empty() {
                return due.renew;
            }
        }
    }

    fn told(&mut self, key: Key, renewal: Renewal) -> Option<Facts> {
        let facts = self.renewer.told(key, renewal, self.now);
        self.said.extend(facts.map(|facts| (ms_of(self.now), key, facts)));
        facts
    }

    fn renewed(&mut self, key: Key) -> Option<Facts> {
        self.told(key, Renewal::Renewed { sent_at: self.now, remaining: TTL, is_final: false })
    }

    fn fail(&mut self, key: Key) -> Option<Facts> {
        self.told(key, Renewal::Failed(Failure::NoAnswer { connections: CONNECTIONS }))
    }

    fn losses(&self) -> Vec<(u64, Key, Loss)> {
        self.said.iter().filter_map(|(ms, key, facts)| Some((*ms, *key, facts.lost?))).collect()
    }
}

#[test]
fn a_lease_is_renewed_at_a_third_of_its_ttl_less_up_to_a_tenth() {
    for (jitter, every) in [(0, 10_000), (500, 9_500), (1_000, 9_000), (u32::MAX, 9_000)] {
        let mut world = World::holding([granted(TTL, jitter)]);
        for round in 1..20 {
            assert_eq!(world.next_renewals(at(1_000_000)), [0]);
            assert_eq!(ms_of(world.now), round * every, "jitter {jitter}");
            world.renewed(0);
        }
        assert_eq!(world.losses(), []);
    }
}

/// C83, C65: failures are counted in a row and end nothing while there is time; one answer makes up for all of them.
#[test]
fn failed_renewals_are_repeated_and_lose_nothing_before_the_deadline() {
    let mut world = World::holding([granted(TTL, 0)]);
    let mut tries = 0;
    while world.next_renewals(at(25_000)) == [0] {
        world.fail(0);
        tries += 1;
    }
    assert!((20..60).contains(&tries), "{tries} tries in 15 s");
    assert_eq!(world.losses(), []);
    assert_eq!(world.said.last().unwrap().2.state_at(world.now), State::Uncertain);

    assert_eq!(world.next_renewals(at(28_000)), [0]);
    let facts = world.renewed(0).unwrap();
    assert_eq!(facts.state_at(world.now), State::Held);
    assert_eq!(world.next_renewals(at(60_000)), [0], "and it goes on");
}

#[test]
fn every_connection_is_tried_at_once_and_only_then_is_it_in_doubt_and_paused() {
    let mut world = World::holding([granted(TTL, 0)]);
    for _ in 1..CONNECTIONS {
        assert_eq!(world.next_renewals(at(20_000)), [0]);
        assert_eq!(world.fail(0), None, "one reset is no doubt");
        assert_eq!(ms_of(world.now), 10_000);
    }
    assert_eq!(world.next_renewals(at(20_000)), [0]);
    assert_eq!(world.fail(0).unwrap().state_at(world.now), State::Uncertain);
    assert_eq!(world.next_renewals(at(20_000)), [0]);
    assert_eq!(ms_of(world.now), 11_000);
}

/// An overloaded server isn't asked over every connection in turn: that would be the storm.
#[test]
fn a_refusal_that_passes_is_followed_by_a_pause_and_is_no_doubt_at_first() {
    let mut world = World::holding([granted(TTL, 0)]);
    let mut asked_at = Vec::new();
    for _ in 0..4 {
        assert_eq!(world.next_renewals(at(20_000)), [0]);
        asked_at.push(ms_of(world.now));
        world.told(0, Renewal::Failed(Failure::Refused { connections: CONNECTIONS }));
    }
    assert_eq!(asked_at, [10_000, 11_000, 12_000, 13_000]);
    let doubted: Vec<_> =
        world.said.iter().filter(|(_, _, facts)| facts.failing).map(|said| said.0).collect();
    assert_eq!(doubted, [12_000]);
}

/// C67: no answer at all, ever: the deadline alone is enough. 30 s less 1 % and 20 ms.
#[test]
fn the_loss_comes_at_the_own_deadline_when_no_server_answers() {
    let mut world = World::holding([granted(TTL, 0)]);
    assert_eq!(world.next_renewals(at(100_000)), [0]);
    // It stays on its way for ever.
    assert_eq!(world.next_renewals(at(100_000)), [0; 0]);
    assert_eq!(world.losses(), [(29_680, 0, Loss::Deadline)]);
    let doubted = world.said.iter().find(|(_, _, facts)| facts.failing).unwrap();
    assert_eq!(doubted.0, 20_000, "a third and two more tries");
}

#[test]
fn a_late_answer_counts_from_when_its_request_was_sent() {
    let mut world = World::holding([granted(TTL, 0)]);
    world.next_renewals(at(100_000));
    let sent_at = world.now;
    world.now = sent_at.plus(Duration::from_secs(4));
    let renewed = Renewal::Renewed { sent_at, remaining: TTL, is_final: false };
    let facts = world.told(0, renewed).unwrap();
    assert_eq!(facts.deadline, sent_at.plus(Duration::from_millis(29_680)));
}

/// K11: once lost, lost, even when the server did renew the lease in the end.
#[test]
fn an_answer_that_comes_after_the_deadline_brings_nothing_back() {
    let mut world = World::holding([granted(TTL, 0)]);
    world.next_renewals(at(100_000));
    let sent_at = world.now;
    world.now = at(29_680);
    let facts = world.told(0, Renewal::Renewed { sent_at, remaining: TTL, is_final: false }).unwrap();
    assert_eq!(facts.lost, Some(Loss::Deadline));
    assert_eq!(world.renewer.wake_at(), None);
}

/// C21, C27: no lease has more than its TTL, whatever is answered.
#[test]
fn nonsense_in_an_answer_is_not_believed() {
    let mut world = World::holding([granted(TTL, 0)]);
    world.next_renewals(at(100_000));
    let sent_at = world.now;
    let facts =
        world.told(0, Renewal::Renewed { sent_at, remaining: Duration::MAX, is_final: false }).unwrap();
    assert_eq!(facts.deadline, sent_at.plus(Duration::from_millis(29_680)));
    world.next_renewals(at(100_000));
    let (sent_at, before) = (world.now, facts.deadline);
    let facts =
        world.told(0, Renewal::Renewed { sent_at, remaining: Duration::ZERO, is_final: false }).unwrap();
    assert_eq!(facts.deadline, before, "an older promise stands");
}

#[test]
fn the_servers_word_that_a_lease_has_ended_is_the_loss() {
    let mut world = World::holding([granted(TTL, 0), granted(TTL, 0)]);
    assert_eq!(world.next_renewals(at(100_000)), [0, 1]);
    world.told(1, Renewal::Ended(Ending::Forced));
    assert_eq!(world.losses(), [(10_000, 1, Loss::Ended(Ending::Forced))]);
    world.renewed(0);
    assert_eq!(world.next_renewals(at(100_000)), [0]);
}

#[test]
fn a_final_renewal_is_said_at_once_and_none_follows() {
    let mut world = World::holding([granted(TTL, 0)]);
    world.next_renewals(at(100_000));
    let sent_at = world.now;
    let remaining = Duration::from_secs(25);
    let facts = world.told(0, Renewal::Renewed { sent_at, remaining, is_final: true }).unwrap();
    assert!(facts.is_final);
    assert_eq!(world.next_renewals(at(100_000)), [0; 0]);
    assert_eq!(world.losses(), [(34_680, 0, Loss::HoldLimit)]);
    let doubted = world.said.iter().any(|(_, _, facts)| facts.failing);
    assert!(!doubted, "no renewal failed");
}

/// C64: whatever was on its way when the lock was released changes nothing.
#[test]
fn after_release_no_renewal_is_sent_and_no_answer_brings_one_back() {
    let mut world = World::holding([granted(TTL, 0)]);
    world.next_renewals(at(100_000));
    world.renewer.forget(0);
    assert_eq!(world.renewed(0), None);
    assert_eq!(world.renewer.wake_at(), None);
    assert_eq!(world.next_renewals(at(1_000_000)), [0; 0]);

    world.renewer.keep(0, &granted(TTL, 0));
    world.renewer.forget(0);
    assert_eq!(world.fail(0), None);
    assert_eq!(world.renewer.wake_at(), None);
}

#[test]
fn leases_that_are_due_together_go_together_the_nearest_deadline_first() {
    let later = |ms| Granted { sent_at: at(ms), ..granted(TTL, 0) };
    let mut world = World::holding([later(100), later(0), later(200), later(5_000)]);
    assert_eq!(world.next_renewals(at(100_000)), [1, 0, 2]);
    assert_eq!(ms_of(world.now), 10_000);
    assert_eq!(world.next_renewals(at(100_000)), [3]);
    assert_eq!(ms_of(world.now), 15_000);
}

/// No renewal storm: however many leases are due, so many are on their way and no more.
#[test]
fn renewals_on_their_way_are_bounded_and_the_others_follow() {
    let count = ON_THEIR_WAY_MAX + 10;
    let mut world = World::holding((0..count).map(|_| granted(TTL, 0)));
    let first = world.next_renewals(at(15_000));
    assert_eq!(first.len(), ON_THEIR_WAY_MAX);
    assert_eq!(world.renewer.wake_at(), Some(at(20_000)), "it doesn't spin until there is room");
    for key in first.iter().take(4) {
        world.renewed(*key);
    }
    assert_eq!(world.next_renewals(at(15_000)).len(), 4);
    for key in first.iter().skip(4) {
        world.renewed(*key);
    }
    assert_eq!(world.next_renewals(at(15_000)).len(), 6);
    assert_eq!(world.losses(), []);
}

/// C92's kin: a process that was paused past its deadline knows so before anything else.
#[test]
fn after_a_pause_the_time_alone_says_that_it_is_lost() {
    let facts = granted(TTL, 0).facts();
    assert_eq!(facts.state_at(at(0)), State::Held);
    assert_eq!(facts.state_at(at(20_000)), State::Uncertain);
    assert_eq!(facts.remaining_at(at(20_000)), Duration::from_millis(9_680));
    assert_eq!(facts.state_at(at(29_680)), State::Lost, "the deadline is exclusive");
    assert_eq!(facts.remaining_at(at(29_680)), Duration::ZERO);

    let mut world = World::holding([granted(TTL, 0)]);
    let due = world.renewer.due(at(60_000));
    assert_eq!(due.renew, [0; 0]);
    assert_eq!(due.changed.len(), 1, "{:?}", due.changed);
    assert_eq!(due.changed[0].1.lost, Some(Loss::Deadline));
}

/// C81: whoever still waits when the runtime is gone is told.
#[test]
fn giving_up_loses_everything_that_is_kept() {
    let mut world = World::holding([granted(TTL, 0), granted(TTL, 0)]);
    world.next_renewals(at(100_000));
    let lost: Vec<_> = world.renewer.give_up().into_iter().map(|(key, facts)| (key, facts.lost)).collect();
    assert_eq!(lost, [(0, Some(Loss::ClientGone)), (1, Some(Loss::ClientGone))]);
    assert_eq!(world.renewer.wake_at(), None);
}

/// A lease that is told again has little left: it is renewed before that is over.
#[test]
fn a_grant_with_little_left_is_renewed_sooner() {
    let mut world = World::holding([Granted { remaining: Duration::from_secs(6), ..granted(TTL, 0) }]);
    assert_eq!(world.next_renewals(at(100_000)), [0]);
    assert_eq!(ms_of(world.now), 2_000);
}
