//! One node, as it is seen from here.

use crate::verbs::top::numbers::{Numbers, quantile_ms};
use crate::verbs::top::scrape::Scrape;
use crate::verbs::top::told::{Cluster, Member};
use kunci_client::Moment;
use std::time::Duration;

/// A node that is asked.
#[derive(Clone, Debug, Default)]
pub(in crate::verbs::top) struct Node {
    /// Where.
    pub(super) url: String,
    /// Whether the person named it, and not another node.
    pub(super) is_named: bool,
    /// Who it is said to be, as long as it hasn't said so itself.
    pub(super) expected_id: Option<u64>,
    /// What it said last, and when it was asked.
    pub(super) told: Option<(Moment, Cluster)>,
    /// Since when it doesn't answer, and why.
    pub(super) trouble: Option<(Moment, String)>,
    /// Its numbers.
    pub(super) numbers: Numbers,
}

impl Node {
    pub(super) fn new(url: String) -> Self {
        Self { url, is_named: true, ..Self::default() }
    }

    pub(super) fn expected(member: &Member) -> Self {
        Self { url: format!("http://{}", member.http), expected_id: Some(member.id), ..Self::default() }
    }

    pub(super) fn take(&mut self, asked_at: Moment, now: Moment, told: Result<(Cluster, Scrape), String>) {
        match told {
            Ok((cluster, scrape)) => {
                self.told = Some((asked_at, cluster));
                self.numbers.take(asked_at, scrape);
                self.trouble = None;
            }
            Err(why) => {
                self.numbers.forget();
                let since = self.trouble.take().map_or(now, |(since, _)| since);
                self.trouble = Some((since, why));
            }
        }
    }

    /// Its id, by itself or by others.
    pub(super) fn id(&self) -> Option<u64> {
        self.told.as_ref().and_then(|(_, cluster)| cluster.node_id).or(self.expected_id)
    }

    /// What it says of itself.
    pub(super) fn member(&self) -> Option<&Member> {
        let (_, cluster) = self.told.as_ref()?;
        cluster.members.iter().find(|member| Some(member.id) == cluster.node_id || member.role == "new")
    }

    pub(super) fn age(&self, now: Moment) -> Option<Duration> {
        self.told.as_ref().map(|(at, _)| now.since(*at))
    }

    /// The consensus' term that it knows of.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "only compared, and terms are small"
    )]
    pub(super) fn term(&self) -> u64 {
        self.numbers.gauge("kunci_term", &[]).unwrap_or(0.0) as u64
    }
}

/// Whether a node is reached from here.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::verbs::top) enum Reach {
    /// It answers.
    Yes,
    /// It answered a while ago, and hasn't said no.
    Silent(Duration),
    /// It doesn't, for this long, because of this.
    No(Duration, String),
    /// It wasn't asked, or not answered yet.
    Unknown,
}

/// What is shown of a node.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::verbs::top) struct NodeRow {
    /// Its id, when known.
    pub(in crate::verbs::top) id: Option<u64>,
    /// Its role; empty when not known.
    pub(in crate::verbs::top) role: String,
    /// Its failure zone.
    pub(in crate::verbs::top) zone: String,
    /// Whether the members count on it.
    pub(in crate::verbs::top) healthy: bool,
    /// `ok`, `low` or `stuck`; empty when that isn't known.
    pub(in crate::verbs::top) disk: String,
    /// The last entry that it applied.
    pub(in crate::verbs::top) applied: Option<u64>,
    /// How many entries the one that has the most is ahead.
    pub(in crate::verbs::top) lag: Option<u64>,
    /// Free space on its disk, in bytes.
    pub(in crate::verbs::top) disk_free: Option<f64>,
    /// Of the last syncs, 99 of 100 took at most this, in ms.
    pub(in crate::verbs::top) fsync_p99_ms: Option<f64>,
    /// Open connections of clients.
    pub(in crate::verbs::top) connections: Option<f64>,
    /// Where its HTTP is.
    pub(in crate::verbs::top) http: String,
    /// Whether it is reached from here.
    pub(in crate::verbs::top) reach: Reach,
}

impl NodeRow {
    /// A node that is asked, and what the others say of it.
    pub(super) fn of(
        node: &Node,
        others: Option<&Member>,
        newest: u64,
        fresh: Duration,
        now: Moment,
    ) -> Self {
        let reach = match (&node.trouble, node.age(now)) {
            (Some((since, why)), _) => Reach::No(now.since(*since), why.clone()),
            (None, Some(age)) if age > fresh => Reach::Silent(age),
            (None, Some(_)) => Reach::Yes,
            (None, None) => Reach::Unknown,
        };
        let own = node.member().filter(|_| reach == Reach::Yes);
        let member = own.or(others).or(node.member());
        let applied = member.map(|member| member.applied_index);
        let gauge = |name| node.numbers.gauge(name, &[]);
        Self {
            id: node.id(),
            role: member.map(|member| member.role.clone()).unwrap_or_default(),
            zone: member.map(|member| member.zone.clone()).unwrap_or_default(),
            healthy: others.or(member).is_some_and(|member| member.healthy),
            disk: member.map(|member| member.disk.clone()).unwrap_or_default(),
            applied,
            lag: applied.map(|applied| newest.saturating_sub(applied)),
            disk_free: gauge("kunci_disk_free_bytes"),
            fsync_p99_ms: quantile_ms(0.99, &node.numbers.grown("kunci_fsync_duration_seconds", &[])),
            connections: gauge("kunci_connections"),
            http: node.url.trim_start_matches("http://").to_owned(),
            reach,
        }
    }

    /// A member that nobody asks.
    pub(super) fn not_asked(member: &Member, newest: u64) -> Self {
        Self {
            id: Some(member.id),
            role: member.role.clone(),
            zone: member.zone.clone(),
            healthy: member.healthy,
            disk: member.disk.clone(),
            applied: Some(member.applied_index),
            lag: Some(newest.saturating_sub(member.applied_index)),
            disk_free: None,
            fsync_p99_ms: None,
            connections: None,
            http: member.http.clone(),
            reach: Reach::Unknown,
        }
    }
}
