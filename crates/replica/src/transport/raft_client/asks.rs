//! Single questions to the other members: votes, the hand-over, the pulse.
//!
//! Owns: one kept connection to each member, shared by all who ask. Never: lets one question wait for another.
//! Next: `asks/ask_link.rs` has the connection.
//!
//! The library makes a new client for each round of votes, so the connection can't belong to a client. Questions
//! carry a tag and are answered in any order. A question whose time is over takes its connection out of use: the
//! next one gets a fresh one, while those that still wait on the old one may yet be answered.

mod ask_link;

use super::super::dial::Dialer;
use super::super::frame::Frame;
use super::super::raft_frames::{PRE_VOTE, PULSE, REFUSED, TRANSFER, VOTE};
use super::address_of;
use crate::pulse::{Census, Pulse};
use crate::raft_types::TypeConfig;
use ask_link::AskLink;
use kunci_process::timeout_at;
use openraft::raft::{TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The way to ask the other members. A clone is another handle to the same connections.
#[derive(Clone)]
pub(crate) struct Asks {
    inner: Arc<Inner>,
}

struct Inner {
    dialer: Dialer,
    links: Mutex<BTreeMap<u64, Arc<AskLink>>>,
    /// The tag of the next question. Tags aren't used twice, also not on another connection.
    next_tag: AtomicU64,
}

/// Why a question has no answer. Whether the other end acted on it isn't known, unless there was no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// There is no connection to the member.
    #[error("{0}")]
    Connect(String),
    /// It took too long.
    #[error("no answer within {within:?}")]
    Slow { within: Duration },
    /// The connection ended first.
    #[error("the connection ended before the answer: {text}")]
    Ended { text: String },
    /// The member doesn't want to answer.
    #[error("refused: {text}")]
    Refused { text: String },
    /// Too many questions wait for this member already.
    #[error("too many questions wait for an answer")]
    Busy,
    /// The answer makes no sense.
    #[error("the answer can't be read: {0}")]
    Malformed(String),
}

impl Asks {
    pub(crate) fn new(dialer: Dialer) -> Self {
        let inner = Inner { dialer, links: Mutex::default(), next_tag: AtomicU64::new(1) };
        Self { inner: Arc::new(inner) }
    }

    /// Tells a member how this node is, and hears how the others are.
    ///
    /// # Errors
    /// When there is no answer `within` that time.
    pub(crate) async fn pulse(
        &self,
        to: u64,
        address: &str,
        pulse: &Pulse,
        within: Duration,
    ) -> Result<Census, AskError> {
        self.ask(to, address, PULSE, pulse, within).await
    }

    /// Asks a member to take over the lead, or tells it who does.
    ///
    /// # Errors
    /// When there is no answer `within` that time.
    pub(crate) async fn transfer(
        &self,
        to: u64,
        address: &str,
        request: TransferLeaderRequest<TypeConfig>,
        within: Duration,
    ) -> Result<TransferLeaderResponse<TypeConfig>, AskError> {
        self.ask(to, address, TRANSFER, &request, within).await
    }

    pub(super) async fn vote(
        &self,
        to: u64,
        address: &str,
        request: &VoteRequest<TypeConfig>,
        within: Duration,
    ) -> Result<VoteResponse<TypeConfig>, AskError> {
        self.ask(to, address, VOTE, request, within).await
    }

    pub(super) async fn pre_vote(
        &self,
        to: u64,
        address: &str,
        request: &VoteRequest<TypeConfig>,
        within: Duration,
    ) -> Result<VoteResponse<TypeConfig>, AskError> {
        self.ask(to, address, PRE_VOTE, request, within).await
    }

    async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        to: u64,
        address: &str,
        kind: u8,
        question: &Q,
        within: Duration,
    ) -> Result<A, AskError> {
        let until = kunci_process::now() + within;
        let tag = self.inner.next_tag.fetch_add(1, Ordering::Relaxed);
        let malformed = |error: std::io::Error| AskError::Malformed(error.to_string());
        let frame = Frame::holding(kind, &(tag, question)).map_err(malformed)?;
        let (mut link, mut is_kept) = self.link(to, address);
        let answer = loop {
            let answered = timeout_at(until, link.ask(tag, frame.clone())).await;
            match answered.unwrap_or(Err(AskError::Slow { within })) {
                Ok(answer) => break answer,
                // A kept connection may have died unseen. Each question may be asked twice.
                Err(AskError::Ended { .. }) if is_kept => {
                    self.retire(to, &link);
                    (link, _) = self.link(to, address);
                    is_kept = false;
                }
                Err(error) => {
                    self.retire(to, &link);
                    return Err(error);
                }
            }
        };
        match answer.kind {
            REFUSED => Err(AskError::Refused { text: answer.value().map_err(malformed)? }),
            _ => answer.value().map_err(malformed),
        }
    }

    /// The connection to a member, and whether it is one that was there.
    fn link(&self, to: u64, address: &str) -> (Arc<AskLink>, bool) {
        let mut links = self.links();
        if let Some(link) = links.get(&to).filter(|link| !link.has_ended()) {
            return (Arc::clone(link), true);
        }
        links.retain(|_, link| !link.has_ended());
        let address = address_of(&self.inner.dialer, to, address).into_owned();
        let link = Arc::new(AskLink::connect(self.inner.dialer.clone(), to, address));
        links.insert(to, Arc::clone(&link));
        (link, false)
    }

    /// Takes a connection out of use, if it still is in use.
    fn retire(&self, to: u64, link: &Arc<AskLink>) {
        let mut links = self.links();
        if links.get(&to).is_some_and(|current| Arc::ptr_eq(current, link)) {
            links.remove(&to);
        }
    }

    fn links(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<AskLink>>> {
        self.inner.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
