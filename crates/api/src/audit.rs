//! One line of the audit log. Never: a lease id, a request id or metadata.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! record {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty;)*) => {
        /// One line of the audit log. What doesn't belong to a kind, or isn't known, is left out.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "camelCase", default)]
        pub struct AuditRecord {
            /// What happened: `granted`, `renewed`, `released`, `expired`, `forced`, `abandoned`, `denied`,
            /// `policy_changed`, `revision_raised`, `members_changed`; and about the log itself: `log` (a file begins),
            /// `gap` (something isn't recorded), `covered` (everything up to `toIndex` is recorded).
            pub kind: String,
            /// The wall clock of the leader that formed the log entry (RFC 3339, UTC), or else of this node.
            #[schema(format = DateTime)]
            pub wall_time: String,
            $(
                $(#[doc = $doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                #[schema(nullable = false)]
                pub $field: Option<$type>,
            )*
            /// The policy that is in force from here on.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(nullable = false, value_type = Object)]
            pub policy: Option<serde_json::Value>,
        }
    };
}

record! {
    /// Where in the log's order: log index and number in the entry. The same on every node. Not there when the log had no
    /// part in it.
    at: String;
    /// Cluster time at which it took effect, in ms since the cluster's first log entry.
    cluster_time_ms: u64;
    /// The cluster's revision after it.
    revision: u64;
    /// What was denied: `acquire`, `renew`, `release`, `cancel`, `force_release`, `policy` or `members`.
    action: String;
    /// How it ended: `done`, or the code of the refusal (docs/errors.md), or `dropped` for a waiter that stayed away.
    outcome: String;
    /// The resource's name.
    resource: String;
    /// Whose request or lease it is about, by the name that the client gave.
    owner: String;
    /// The name that authentication gave to whoever asked.
    caller: String;
    /// Address and port of the client that asked: for `expired`, of the one that acquired.
    address: String;
    /// The token of the lease.
    fencing_token: u64;
    /// The first 10 hexadecimal digits of a hash of the lease id.
    lease_fingerprint: String;
    /// How long the lease lasts from here on, in ms.
    ttl_ms: u64;
    /// Why the operator did it, why the proof proves nothing, or why there is a gap.
    reason: String;
    /// The members that vote; two groups while a change is made.
    voters: Vec<Vec<u64>>;
    /// The members that don't vote.
    learners: Vec<u64>;
    /// The first log entry of which something isn't recorded.
    from_index: u64;
    /// The last log entry of which something isn't recorded; or of those that are covered.
    to_index: u64;
    /// How many records are missing at most, as far as that is known.
    missing: u64;
    /// The cluster.
    cluster_id: String;
    /// The node.
    node_id: u64;
}

/// Records of one node's audit log, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditBody {
    /// The records, newest first.
    pub records: Vec<AuditRecord>,
    /// Where to go on towards older records, with `before`. Not there when everything that is kept was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next: Option<String>,
    /// How many bytes were looked through.
    pub scanned_bytes: u64,
    /// The revision of this node's state.
    pub revision: u64,
}
