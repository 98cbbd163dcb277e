//! The connections of one client, and how a request finds its way over them.
//!
//! Owns: which addresses there are, redirects, and when there is nothing left to try. Never: decides what an answer
//! means for a lock.

mod choice;
mod conversation;
mod known;
mod line;
mod link;

use crate::clock::{Clock, Moment};
use crate::connector::Connector;
use crate::wire::Passing;
use choice::{Candidate, Health, LinkId, choose};
use known::Known;
use kunci_api::native::{Outcome, Request};
use link::Link;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use link::CallError;

/// Redirects that one request follows before it waits a moment instead.
const REDIRECTS_MAX: usize = 3;
/// Addresses that are learned from redirects. A cluster has fewer members.
const LEARNED_MAX: usize = 16;

/// All connections of one client. A clone is another handle to the same; the last one to go ends them.
#[derive(Clone, Debug)]
pub(crate) struct Links(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    connector: Arc<dyn Connector>,
    known: Arc<Known>,
    links: RwLock<Vec<Arc<Link>>>,
    given: usize,
    turn: AtomicUsize,
    stop: CancellationToken,
    _stops: DropGuard,
    runtime: tokio::runtime::Handle,
}

/// The tries of one request since its last answer: each connection once.
#[derive(Debug, Default)]
pub(crate) struct Round {
    tried: Vec<LinkId>,
}

/// How one try went.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
pub(crate) enum Try {
    /// A decision, to what was sent at that instant.
    Told { outcome: Outcome, sent_at: Moment },
    /// Not now, or not there.
    Passing(Passing),
    /// No answer on one connection.
    Failed(CallError),
    /// Every connection has been tried.
    NoneLeft,
}

impl Links {
    /// Starts a connection to each address, and two to a single one. Called inside a runtime.
    pub(crate) fn start(addresses: &[String], clock: Arc<dyn Clock>, connector: Arc<dyn Connector>) -> Self {
        let mut seen = HashSet::new();
        let mut addresses: Vec<&String> = addresses.iter().filter(|address| seen.insert(*address)).collect();
        if let [only] = addresses[..] {
            addresses.push(only);
        }
        let stop = CancellationToken::new();
        let inner = Inner {
            clock,
            connector,
            known: Arc::default(),
            links: RwLock::default(),
            given: addresses.len(),
            turn: AtomicUsize::new(0),
            _stops: stop.clone().drop_guard(),
            stop,
            runtime: tokio::runtime::Handle::current(),
        };
        let mut links = Vec::new();
        for address in addresses {
            inner.add(&mut links, address);
        }
        Self(Arc::new(Inner { links: RwLock::new(links), ..inner }))
    }

    /// Returns once a server has answered on one connection.
    ///
    /// # Errors
    /// When all were tried in vain: why, for each.
    pub(crate) async fn any_up(&self) -> Result<(), String> {
        let links = self.0.all();
        let settling = links.iter().map(|link| Box::pin(link.settled()));
        let mut settling: futures::stream::FuturesUnordered<_> = settling.collect();
        while let Some(health) = futures::StreamExt::next(&mut settling).await {
            if health == Health::Up {
                return Ok(());
            }
        }
        // Two to one address have failed alike.
        let reasons: BTreeSet<Arc<str>> = links.iter().filter_map(|link| link.why()).collect();
        Err(reasons.iter().map(|why| &**why).collect::<Vec<_>>().join("; "))
    }

    /// How many connections there are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.0.all().len()).unwrap_or(u32::MAX)
    }

    /// The cluster that was connected last.
    pub(crate) fn cluster(&self) -> Option<String> {
        self.0.known.cluster()
    }

    /// One try to have `request` answered: on the best connection that the round hasn't tried, and where that one
    /// points to. Dropped: what wasn't sent yet isn't sent any more.
    pub(crate) async fn attempt(
        &self,
        request: &Request,
        within: Option<Duration>,
        round: &mut Round,
    ) -> Try {
        let Some(mut link) = self.0.pick(round) else { return Try::NoneLeft };
        for redirects in 0..=REDIRECTS_MAX {
            round.tried.push(link.id);
            let sent_at = self.0.clock.now();
            let outcome = match link.call(request.clone(), within).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.0.known.leads_no_more(&link.address);
                    return match error {
                        // A server was reached, and named a leader that can't be.
                        CallError::NotSent(why) if redirects > 0 => {
                            Try::Passing(Passing::leader_gone(format!("redirected, and {why}")))
                        }
                        error => Try::Failed(error),
                    };
                }
            };
            if let Some(passing) = Passing::read(&outcome) {
                if passing.is_no_leader() {
                    self.0.known.leads_no_more(&link.address);
                }
                return Try::Passing(passing);
            }
            let Outcome::Moved { leader, .. } = outcome else {
                self.0.known.leads(&link.address);
                return Try::Told { outcome, sent_at };
            };
            match self.0.follow(&leader, round) {
                Some(next) => link = next,
                None => {
                    return Try::Passing(Passing::no_leader(format!("redirected in a circle to {leader}")));
                }
            }
        }
        Try::Passing(Passing::no_leader(format!(
            "redirected {REDIRECTS_MAX} times without finding the leader"
        )))
    }
}

impl Inner {
    fn all(&self) -> Vec<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds one that was learned, unless somebody else was faster.
    fn learn(&self, address: &str) -> Arc<Link> {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = links.iter().find(|link| *link.address == *address) {
            return there.clone();
        }
        if links.len() >= self.given + LEARNED_MAX {
            // The one that was learned first; the last one to let go of it ends it.
            links.remove(self.given);
        }
        self.add(&mut links, address)
    }

    fn add(&self, links: &mut Vec<Arc<Link>>, address: &str) -> Arc<Link> {
        let id = links.last().map_or(0, |last| last.id + 1);
        let _inside = self.runtime.enter();
        let (connector, known) = (self.connector.clone(), self.known.clone());
        let link = Arc::new(Link::start(id, address.into(), connector, known, self.stop.clone()));
        links.push(link.clone());
        link
    }

    fn pick(&self, round: &Round) -> Option<Arc<Link>> {
        let links = self.all();
        let leader = self.known.leader();
        let candidates: Vec<Candidate> = links
            .iter()
            .map(|link| Candidate {
                id: link.id,
                health: link.health(),
                leads: leader.as_ref() == Some(&link.address),
            })
            .collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let id = choose(&candidates, &round.tried, turn)?;
        links.into_iter().find(|link| link.id == id)
    }

    /// The connection to a leader that was named; `None` when this round has been there.
    fn follow(&self, leader: &str, round: &Round) -> Option<Arc<Link>> {
        self.known.leads(leader);
        let links = self.all();
        let there: Vec<&Arc<Link>> = links.iter().filter(|link| *link.address == *leader).collect();
        if there.is_empty() {
            tracing::debug!(%leader, "a leader's address that wasn't known");
            return Some(self.learn(leader));
        }
        if there.iter().any(|link| round.tried.contains(&link.id)) {
            return None;
        }
        let best = there.iter().min_by_key(|link| link.health())?;
        Some((*best).clone())
    }
}
