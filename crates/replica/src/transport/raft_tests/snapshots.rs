//! Members that are too far behind for entries.

use super::super::door::Incoming;
use super::super::frame::{Frame, Frames};
use super::super::handshake::Purpose;
use super::super::raft_client::{Asks, PeerNetworks};
use super::super::snapshot_link::HalfReceived;
use super::super::snapshot_link::tests_only::{Answer, answer, is_offer, piece_at};
use super::cluster::{Cluster, Node, until};
use super::net::{Net, me, member};
use crate::data_folder::ClusterId;
use crate::raft_types::{Snapshot, SnapshotMeta, StoredMembership, TypeConfig, Vote};
use crate::snapshot_store::SnapshotStore;
use openraft::errors::{ReplicationClosed, StreamingError};
use openraft::impls::leader_id_std::LeaderId;
use openraft::network::{NetSnapshot, RPCOption, RaftNetworkFactory};
use openraft::raft::SnapshotResponse;
use std::future::pending;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
