//! The way to the other members.
//!
//! A cluster of one node has nobody to talk to. The transport comes with the second member; until then every
//! member is unreachable, and the library is told so in its own words.

use crate::raft_types::{Member, Snapshot, TypeConfig, Vote};
use crate::snapshot_store::SnapshotFile;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use std::io;

/// Makes no connection.
pub(crate) struct NoPeers;

/// No connection.
pub(crate) struct NoPeer;

fn unreachable() -> Unreachable<TypeConfig> {
    Unreachable::new(&io::Error::new(
        io::ErrorKind::Unsupported,
        "this release has no connection between nodes",
    ))
}

impl RaftNetworkFactory<TypeConfig> for NoPeers {
    type Network = NoPeer;

    async fn new_client(&mut self, _target: u64, _node: &Member) -> NoPeer {
        NoPeer
    }
}

impl RaftNetworkV2<TypeConfig> for NoPeer {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        _request: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(unreachable().into())
    }

    async fn vote(
        &mut self,
        _request: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(unreachable().into())
    }

    // The library's own defaults of the next two do nothing, silently (trap 3 of the design).
    async fn pre_vote(
        &mut self,
        _request: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(unreachable().into())
    }

    async fn transfer_leader(
        &mut self,
        _request: TransferLeaderRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(unreachable().into())
    }

    async fn full_snapshot(
        &mut self,
        _vote: Vote,
        _snapshot: Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        Err(unreachable().into())
    }
}
