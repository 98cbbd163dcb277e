//! The consensus library's way to the other members.
//!
//! Owns: the library's network traits, and what its errors are for each of ours. Never: bytes. Next:
//! `raft_client/append_link.rs` has the stream of entries and the heartbeats, `raft_client/asks.rs` the votes and
//! other single questions, `snapshot_link.rs` the snapshots.

mod append_link;
mod append_stream;
mod asks;

use super::dial::Dialer;
use super::snapshot_link;
use crate::raft_types::{Member, Snapshot, TypeConfig, Vote};
use crate::snapshot_store::SnapshotFile;
use append_link::{AppendLink, Broken};
pub(crate) use asks::{AskError, Asks};
use futures::Stream;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{
    Backoff, NetBackoff, NetSnapshot, NetStreamAppend, NetTransferLeader, NetVote, RPCOption, RPCTypes,
    RaftNetworkFactory,
};
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use std::borrow::Cow;
use std::iter;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long the library waits after an error, each time longer. A member that is back is noticed soon.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_LAST: Duration = Duration::from_millis(50);
/// The same for snapshots: trying again may mean to send all of it again.
const SNAPSHOT_RETRY_LAST: Duration = Duration::from_secs(5);

/// Makes the library's clients.
pub(crate) struct PeerNetworks {
    dialer: Dialer,
    asks: Asks,
}

impl PeerNetworks {
    pub(crate) fn new(dialer: Dialer, asks: Asks) -> Self {
        Self { dialer, asks }
    }

    fn client(&self, to: u64, member: &Member, retry_last: Duration) -> PeerClient {
        let link = AppendLink::new(self.dialer.clone(), to, member.peer.clone());
        PeerClient {
            to,
            address: member.peer.clone(),
            dialer: self.dialer.clone(),
            asks: self.asks.clone(),
            appends: Mutex::new(link),
            retry_last,
        }
    }
}

/// Makes no connection: each client makes its own when it has something to say. The library makes a client for
/// the entries, one for the heartbeats and one for a snapshot, so that none of these waits for another.
impl RaftNetworkFactory<TypeConfig> for PeerNetworks {
    type Network = PeerClient;

    async fn new_client(&mut self, target: u64, node: &Member) -> PeerClient {
        self.client(target, node, RETRY_LAST)
    }

    async fn new_snapshot_client(&mut self, target: u64, node: &Member) -> PeerClient {
        self.client(target, node, SNAPSHOT_RETRY_LAST)
    }
}

/// The way to one member for one part of the library.
pub(crate) struct PeerClient {
    to: u64,
    /// Where the member is when the roster doesn't know better.
    address: String,
    dialer: Dialer,
    asks: Asks,
    /// Only one part of the library uses a client at a time: the lock is never waited for, it only lets the client
    /// be shared between threads, which the library demands.
    appends: Mutex<AppendLink>,
    retry_last: Duration,
}

impl PeerClient {
    fn ask_failed(&self, action: RPCTypes, error: &AskError) -> RPCError<TypeConfig> {
        match error {
            AskError::Slow { within } => self.timeout(action, *within).into(),
            AskError::Ended { .. } | AskError::Malformed(_) => NetworkError::new(error).into(),
            AskError::Connect(_) | AskError::Refused { .. } | AskError::Busy => {
                Unreachable::new(error).into()
            }
        }
    }

    fn timeout(&self, action: RPCTypes, timeout: Duration) -> Timeout<TypeConfig> {
        Timeout { action, id: self.dialer.me().node_id, target: self.to, timeout }
    }
}

impl NetBackoff<TypeConfig> for PeerClient {
    fn backoff(&self) -> Option<Backoff> {
        Some(Backoff::new(waits(self.retry_last)))
    }
}

/// Doubles from the first wait to the last one, and goes on with that.
fn waits(last: Duration) -> impl Iterator<Item = Duration> {
    iter::successors(Some(RETRY_FIRST), move |wait| Some((*wait * 2).min(last)))
}

impl NetStreamAppend<TypeConfig> for PeerClient {
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Appended>, RPCError<TypeConfig>>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + Unpin + 'static,
    {
        let link = self.appends.get_mut().unwrap_or_else(PoisonError::into_inner);
        let answers = append_stream::run(link, input, option.soft_ttl());
        Box::pin(async move { Ok(answers) })
    }
}

/// What a stream of entries gives back.
type Appended = Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>;

/// What the library does after each: a timeout or a network error lets it try again at once, for some times; after
/// `Unreachable` it waits. None of them can hold up the replication for good (trap 2 of the design).
fn append_failed(link: &AppendLink, broken: Broken) -> RPCError<TypeConfig> {
    let (id, target) = (link.dialer().me().node_id, link.to());
    match broken {
        Broken::Connect(error) => Unreachable::new(&error).into(),
        Broken::Refused(_) => Unreachable::new(&broken).into(),
        Broken::Io(error) => NetworkError::new(&error).into(),
        Broken::Closed => NetworkError::new(&broken).into(),
        Broken::Silent(timeout) => Timeout { action: RPCTypes::AppendEntries, id, target, timeout }.into(),
    }
}

/// Trap 3 of the design: what the library does by itself when these two are missing looks like success.
impl NetVote<TypeConfig> for PeerClient {
    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let answer = self.asks.vote(self.to, &self.address, &request, option.soft_ttl()).await;
        answer.map_err(|error| self.ask_failed(RPCTypes::Vote, &error))
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let answer = self.asks.pre_vote(self.to, &self.address, &request, option.soft_ttl()).await;
        answer.map_err(|error| self.ask_failed(RPCTypes::Vote, &error))
    }
}

impl NetTransferLeader<TypeConfig> for PeerClient {
    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        let answer = self.asks.transfer(self.to, &self.address, request, option.soft_ttl()).await;
        answer.map_err(|error| self.ask_failed(RPCTypes::TransferLeader, &error))
    }
}

impl NetSnapshot<TypeConfig> for PeerClient {
    type SnapshotData = SnapshotFile;

    /// The library's time limit is for pieces, of which it knows nothing here; every step has one of its own.
    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let sent = snapshot_link::send(&self.dialer, self.to, &self.address, vote, &snapshot);
        tokio::select! {
            biased;
            closed = cancel => Err(closed.into()),
            // With a wait before the next try, which may send everything again. Never as an error of the storage,
            // which would stop the leader (trap 8 of the design).
            answer = sent => answer.map_err(|error| Unreachable::new(&error).into()),
        }
    }
}

/// How a member is reached now: it may have moved since the library was told.
pub(super) fn address_of<'a>(dialer: &Dialer, to: u64, told: &'a str) -> Cow<'a, str> {
    match dialer.roster().member(to) {
        Some(member) if !member.peer.is_empty() => member.peer.into(),
        _ => told.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trap 1: the library's own wait after an error is 200 ms, longer than an election.
    #[test]
    fn after_an_error_the_next_try_comes_in_20_to_50_ms() {
        let millis = |last| waits(last).map(|wait| wait.as_millis()).take(4).collect::<Vec<_>>();
        assert_eq!(millis(RETRY_LAST), [20, 40, 50, 50]);
        assert_eq!(millis(SNAPSHOT_RETRY_LAST), [20, 40, 80, 160]);
    }
}
