//! What is known of a cluster, and since when.
//!
//! Owns: putting together what several nodes said at different times. Never: asks, draws, or reads a clock.

mod alarms;
mod node;
mod totals;

pub(super) use node::{Node, NodeRow, Reach};
pub(super) use totals::{Operation, Totals};

use super::scrape::Scrape;
use super::told::{Cluster, Detail, Event, Lock, Member};
use kunci_client::Moment;
use std::collections::VecDeque;
use std::time::Duration;

/// What is older than this is called old, and so is what three questions in a row didn't renew.
const FRESH_MIN: Duration = Duration::from_secs(3);
/// More than a screen shows.
const EVENTS_MAX: usize = 500;
/// A lease that ends within this is expiring soon.
const SOON_MS: u64 = 10_000;

/// Something that was learned.
#[derive(Debug)]
pub(super) enum News {
    /// A node answered, or why it didn't.
    Node { url: String, told: Result<(Cluster, Scrape), String> },
    /// The locks with this prefix, and whether there are more.
    Locks { prefix: String, told: Result<(Vec<Lock>, bool), String> },
    /// The longest queues.
    Hot(Result<Vec<Lock>, String>),
    /// What ends next.
    Expiring(Result<Vec<Lock>, String>),
    /// One lock.
    Detail { resource: String, told: Result<Detail, String> },
    /// Something happened to a lock.
    Event(Event),
    /// The stream of events began, or why it ended.
    Stream(Result<(), String>),
}

/// Something that was read, and what has gone wrong since.
#[derive(Clone, Debug, Default)]
pub(super) struct Read<T> {
    /// What was read last.
    pub(super) value: T,
    /// When it was asked for.
    pub(super) asked_at: Option<Moment>,
    /// Why it couldn't be read again.
    pub(super) trouble: Option<String>,
}

impl<T> Read<T> {
    fn take(&mut self, asked_at: Moment, told: Result<T, String>) {
        match told {
            Ok(value) => *self = Self { value, asked_at: Some(asked_at), trouble: None },
            Err(why) => self.trouble = Some(why),
        }
    }

    /// How old it is.
    pub(super) fn age(&self, now: Moment) -> Option<Duration> {
        self.asked_at.map(|asked_at| now.since(asked_at))
    }

    /// Whether a person has to be told that it is old.
    fn is_old(&self, now: Moment, fresh: Duration) -> bool {
        self.age(now).is_none_or(|age| age > fresh)
    }
}

/// A change of leader that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// When.
    pub(super) at: Moment,
    /// Who led before.
    pub(super) from: u64,
    /// Who leads since.
    pub(super) to: u64,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Model {
    nodes: Vec<Node>,
    are_all_named: bool,
    fresh: Duration,
    /// The prefix that is looked at.
    pub(super) prefix: String,
    /// The locks of the prefix that is looked at.
    pub(super) locks: Read<Vec<Lock>>,
    /// Whether there are more of them than were read.
    pub(super) has_more: bool,
    /// The longest queues.
    pub(super) hot: Read<Vec<Lock>>,
    /// What ends next, of all locks.
    pub(super) next: Read<Vec<Lock>>,
    /// The lock that is looked at, by its name.
    pub(super) detail: Option<(String, Read<Detail>)>,
    /// What happened, newest first.
    pub(super) events: VecDeque<Event>,
    /// Why no events come.
    pub(super) no_events: Option<String>,
    /// The last change of leader that was seen.
    pub(super) change: Option<Change>,
    leader_before: Option<u64>,
}

impl Model {
    /// Knows only where to ask: one node, which tells of the others, or several, and then just those.
    pub(super) fn new(urls: &[String], prefix: &str, every: Duration) -> Self {
        let nodes = urls.iter().map(|url| Node::new(url.clone())).collect();
        let fresh = FRESH_MIN.max(every * 3);
        Self { nodes, are_all_named: urls.len() > 1, fresh, prefix: prefix.to_owned(), ..Self::default() }
    }

    /// Takes in what was learned from a question asked at this moment.
    pub(super) fn take(&mut self, asked_at: Moment, now: Moment, news: News) {
        match news {
            News::Node { url, told } => self.take_node(&url, asked_at, now, told),
            // The answer to an earlier search.
            News::Locks { prefix, .. } if prefix != self.prefix => {}
            News::Locks { told, .. } => {
                let told = told.map(|(locks, has_more)| {
                    self.has_more = has_more;
                    locks
                });
                self.locks.take(asked_at, told);
            }
            News::Hot(told) => self.hot.take(asked_at, told),
            News::Expiring(told) => self.next.take(asked_at, told),
            News::Detail { resource, told } => {
                if let Some((wanted, detail)) = &mut self.detail
                    && *wanted == resource
                {
                    detail.take(asked_at, told);
                }
            }
            News::Event(event) => {
                // A stream that began again may tell again.
                if self.events.front().is_none_or(|newest| newest.revision < event.revision) {
                    self.events.push_front(event);
                    self.events.truncate(EVENTS_MAX);
                }
            }
            News::Stream(told) => self.no_events = told.err(),
        }
    }

    /// From now on another lock is looked at, or none.
    pub(super) fn open(&mut self, resource: Option<String>) {
        self.detail = resource.map(|resource| (resource, Read::default()));
    }

    /// From now on the locks of another prefix are looked at.
    pub(super) fn search(&mut self, prefix: &str) {
        self.prefix = prefix.to_owned();
        self.locks = Read::default();
        self.has_more = false;
        self.events.clear();
    }

    fn take_node(&mut self, url: &str, at: Moment, now: Moment, told: Result<(Cluster, Scrape), String>) {
        let Some(node) = self.nodes.iter_mut().find(|node| node.url == url) else { return };
        node.take(at, now, told);
        self.meet_members(now);
        self.drop_doubles();
        self.see_change(now);
    }

    /// Members that nobody named are asked too, where the others say they are; those that are none any more aren't.
    fn meet_members(&mut self, now: Moment) {
        let Some(view) = self.view(now).cloned() else { return };
        for node in self.nodes.iter_mut().filter(|node| node.told.is_none()) {
            let is_it = |member: &&Member| node.url.strip_prefix("http://") == Some(member.http.as_str());
            node.expected_id = view.members.iter().find(is_it).map(|member| member.id).or(node.expected_id);
        }
        if self.are_all_named {
            return;
        }
        let is_gone = |node: &Node| {
            let id = node.told.as_ref().and_then(|(_, cluster)| cluster.node_id).or(node.expected_id);
            !node.is_named && !view.members.iter().any(|member| Some(member.id) == id)
        };
        self.nodes.retain(|node| !is_gone(node));
        for member in view.members.iter().filter(|member| member.id > 0 && !member.http.is_empty()) {
            if !self.nodes.iter().any(|node| node.id() == Some(member.id)) {
                self.nodes.push(Node::expected(member));
            }
        }
        self.nodes.sort_by_key(|node| node.id().unwrap_or(u64::MAX));
    }

    /// A node that was named, and found among the members before it had said who it is, is asked once.
    fn drop_doubles(&mut self) {
        let named: Vec<u64> = self.nodes.iter().filter(|node| node.is_named).filter_map(Node::id).collect();
        self.nodes.retain(|node| node.is_named || node.id().is_none_or(|id| !named.contains(&id)));
    }

    fn see_change(&mut self, now: Moment) {
        let Some(leader) = self.leader(now) else { return };
        if let Some(from) = self.leader_before.replace(leader)
            && from != leader
        {
            self.change = Some(Change { at: now, from, to: leader });
        }
    }

    /// Where to ask about nodes.
    pub(super) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url.clone()).collect()
    }

    /// Where to ask about locks, best first: the leader, then whoever answers.
    pub(super) fn ways(&self, now: Moment) -> Vec<String> {
        let leader = self.leader(now);
        let mut nodes: Vec<&Node> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| (node.trouble.is_some(), node.id() != leader || leader.is_none()));
        nodes.iter().map(|node| node.url.clone()).collect()
    }

    /// Those of them that don't answer.
    pub(super) fn dead(&self) -> Vec<String> {
        let dead = self.nodes.iter().filter(|node| node.trouble.is_some());
        dead.map(|node| node.url.clone()).collect()
    }

    /// The nodes that answer now.
    fn answering(&self, now: Moment) -> impl Iterator<Item = (&Node, &Cluster)> {
        let answers =
            move |node: &&Node| node.trouble.is_none() && node.age(now).is_some_and(|age| age <= self.fresh);
        self.nodes.iter().filter(answers).filter_map(|node| Some((node, &node.told.as_ref()?.1)))
    }

    /// Who leads: who is said to by the node that knows of the latest term.
    pub(super) fn leader(&self, now: Moment) -> Option<u64> {
        let said = self.answering(now).filter_map(|(node, cluster)| {
            let leader = cluster.leader?;
            Some((node.term(), cluster.node_id == Some(leader), leader))
        });
        said.max().map(|(_, _, leader)| leader)
    }

    /// The cluster as the leader tells it, else whoever answers, else whoever did last.
    pub(super) fn view(&self, now: Moment) -> Option<&Cluster> {
        let leader = self.leader(now);
        let told = |node: &&Node| {
            let (at, cluster) = node.told.as_ref()?;
            let is_leader = leader.is_some() && cluster.node_id == leader && node.trouble.is_none();
            Some((is_leader, node.trouble.is_none(), *at))
        };
        let best = self.nodes.iter().filter(|node| told(node).is_some()).max_by_key(told)?;
        best.told.as_ref().map(|(_, cluster)| cluster)
    }

    /// One row for each node: members, and whoever was named.
    pub(super) fn rows(&self, now: Moment) -> Vec<NodeRow> {
        let view = self.view(now);
        let leader = self.leader(now);
        let members = view.map(|view| view.members.as_slice()).unwrap_or_default();
        let applied = |node: &Node| node.member().map(|member| member.applied_index);
        let known = self.nodes.iter().filter_map(applied);
        let newest = members.iter().map(|member| member.applied_index).chain(known).max().unwrap_or(0);
        let mut rows: Vec<NodeRow> = self
            .nodes
            .iter()
            .map(|node| {
                let member = members.iter().find(|member| Some(member.id) == node.id());
                NodeRow::of(node, member, newest, self.fresh, now)
            })
            .collect();
        for member in members {
            if !rows.iter().any(|row| row.id == Some(member.id)) {
                rows.push(NodeRow::not_asked(member, newest));
            }
        }
        for row in &mut rows {
            // What it said of itself may be older than what the others know.
            if row.role == "leader" && leader.is_some() && row.id != leader {
                row.role = "follower".to_owned();
            }
        }
        rows.sort_by_key(|row| row.id.unwrap_or(u64::MAX));
        rows
    }

    /// The cluster's numbers, from the nodes that answer.
    pub(super) fn totals(&self, now: Moment) -> Totals {
        let numbers: Vec<_> = self.answering(now).map(|(node, _)| &node.numbers).collect();
        Totals::of(&numbers)
    }

    /// The leases that end soon, first one first, with what is left of them in ms: those that nobody renewed when it was
    /// time to.
    pub(super) fn expiring(&self, now: Moment) -> Vec<(&Lock, u64)> {
        let left = |lock| Some((lock, self.left_ms(&self.next, lock, now)?));
        let is_soon = |(lock, left): &(&Lock, u64)| {
            // A holder renews at a third of its lease's time, so what is below the half is late.
            *left <= SOON_MS && lock.ttl_ms.is_none_or(|ttl| left.saturating_mul(2) <= ttl)
        };
        let mut soon: Vec<_> = self.next.value.iter().filter_map(left).filter(is_soon).collect();
        soon.sort_by_key(|(_, left)| *left);
        soon
    }

    /// How long a lease still lasts, counted on from the answer.
    pub(super) fn left_ms<T>(&self, read: &Read<T>, lock: &Lock, now: Moment) -> Option<u64> {
        let age = u64::try_from(read.age(now)?.as_millis()).unwrap_or(u64::MAX);
        Some(lock.remaining_ms?.saturating_sub(age))
    }

    /// What a person must see at once, the worst first.
    pub(super) fn alarms(&self, now: Moment) -> Vec<String> {
        alarms::of(self, now)
    }

    /// How old the oldest thing on the screen is that should be fresh.
    pub(super) fn age(&self, now: Moment) -> Option<Duration> {
        let nodes = self.answering(now).filter_map(|(node, _)| node.age(now)).min();
        nodes.into_iter().chain(self.locks.age(now)).max()
    }
}

#[cfg(test)]
pub(super) mod tests;
