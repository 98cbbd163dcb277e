//! Which answer may go out when.
//!
//! Owns: that untagged requests with the same operation and key are answered in the order in which they came, and a tagged
//! one at once. Never: what an answer says.

use kunci_api::native::{Op, Subject, Tag};
use std::collections::{HashMap, VecDeque};
use tokio::time::Instant;

/// Requests of one connection that have no answer yet, each with what it will be answered.
#[derive(Debug)]
pub(super) struct Order<T> {
    lanes: HashMap<Subject, Lane<T>>,
    count: usize,
}

/// Where a request stands.
#[derive(Debug)]
pub(super) struct Place {
    subject: Subject,
    turn: Turn,
    began: Option<Instant>,
}

impl Place {
    /// Notes when its request came.
    pub(super) fn since(self, began: Instant) -> Self {
        Self { began: Some(began), ..self }
    }

    /// When its request came, where that was noted.
    pub(super) fn began(&self) -> Option<Instant> {
        self.began
    }

    /// What was asked for.
    pub(super) fn op(&self) -> Op {
        self.subject.op
    }
}

#[derive(Debug)]
enum Turn {
    AtOnce(Tag),
    InLane(u64),
}

/// Untagged requests with the same operation and key, first one first.
#[derive(Debug)]
struct Lane<T> {
    /// The number of the first.
    first: u64,
    ends: VecDeque<Option<T>>,
}

/// A request whose turn it is to be answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due<T> {
    pub(super) subject: Subject,
    pub(super) tag: Option<Tag>,
    pub(super) end: T,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self { lanes: HashMap::new(), count: 0 }
    }
}

impl<T> Order<T> {
    /// How many have no answer yet.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Takes up a request.
    pub(super) fn enter(&mut self, subject: Subject, tag: Option<Tag>) -> Place {
        self.count += 1;
        if let Some(tag) = tag {
            return Place { subject, turn: Turn::AtOnce(tag), began: None };
        }
        let lane =
            self.lanes.entry(subject.clone()).or_insert_with(|| Lane { first: 0, ends: VecDeque::new() });
        lane.ends.push_back(None);
        let number = lane.first + lane.ends.len() as u64 - 1;
        Place { subject, turn: Turn::InLane(number), began: None }
    }

    /// A request has ended; gives all that may be answered now, in order.
    pub(super) fn end(&mut self, place: Place, end: T) -> Vec<Due<T>> {
        let Place { subject, turn, .. } = place;
        let due = match turn {
            Turn::AtOnce(tag) => vec![Due { subject, tag: Some(tag), end }],
            Turn::InLane(number) => self.end_in_lane(&subject, number, end),
        };
        self.count -= due.len();
        due
    }

    fn end_in_lane(&mut self, subject: &Subject, number: u64, end: T) -> Vec<Due<T>> {
        // A lane is there for as long as somebody stands in it.
        let Some(lane) = self.lanes.get_mut(subject) else { return Vec::new() };
        let behind = usize::try_from(number - lane.first).unwrap_or(usize::MAX);
        if let Some(mine) = lane.ends.get_mut(behind) {
            *mine = Some(end);
        }
        let mut due = Vec::new();
        while let Some(end) = lane.ends.front_mut().and_then(Option::take) {
            lane.ends.pop_front();
            lane.first += 1;
            due.push(Due { subject: subject.clone(), tag: None, end });
        }
        if lane.ends.is_empty() {
            self.lanes.remove(subject);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kunci_types::ResourceName;

    fn subject(op: Op, key: &str) -> Subject {
        Subject { op, key: Some(ResourceName::parse(key).unwrap()) }
    }

    fn ends(due: &[Due<u32>]) -> Vec<u32> {
        due.iter().map(|due| due.end).collect()
    }

    /// Case C72: the same operation and key without a tag are told apart by their order alone.
    #[test]
    fn untagged_requests_alike_are_answered_in_the_order_in_which_they_came() {
        let mut order = Order::default();
        let places: Vec<Place> = (0..3).map(|_| order.enter(subject(Op::Acquire, "k"), None)).collect();
        let [first, second, third] = places.try_into().unwrap();
        assert_eq!(ends(&order.end(second, 2)), [0; 0]);
        assert_eq!(order.len(), 3);
        assert_eq!(ends(&order.end(first, 1)), [1, 2]);
        let fourth = order.enter(subject(Op::Acquire, "k"), None);
        assert_eq!(ends(&order.end(fourth, 4)), [0; 0]);
        assert_eq!(ends(&order.end(third, 3)), [3, 4]);
        assert_eq!((order.len(), order.lanes.len()), (0, 0));
    }

    #[test]
    fn other_operations_other_keys_and_tags_wait_for_nobody() {
        let mut order = Order::default();
        let _waits = order.enter(subject(Op::Acquire, "k"), None);
        for (op, key, tag) in
            [(Op::Release, "k", None), (Op::Acquire, "l", None), (Op::Acquire, "k", Some(Tag::new(1)))]
        {
            let place = order.enter(subject(op, key), tag);
            let due = order.end(place, 5);
            assert_eq!(due, [Due { subject: subject(op, key), tag, end: 5 }]);
        }
        assert_eq!(order.len(), 1);
    }
}
