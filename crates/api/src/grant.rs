//! What callers are answered when it goes well.

use crate::problem::Problem;
use serde::Serialize;
use utoipa::ToSchema;

fn is_false(value: &bool) -> bool {
    !value
}

/// The resource is the caller's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantBody {
    /// `true`.
    pub acquired: bool,
    /// The only proof of ownership, a secret: 22 characters of unpadded base64url.
    pub lease_id: String,
    /// What the protected resource compares: 1 to 2^53 − 1, larger than every token granted before.
    pub fencing_token: u64,
    /// When the lease ends by this node's wall clock (RFC 3339, UTC): for people. Programs count `remainingMs` from
    /// before they sent the request.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// How long the lease lasts, in ms.
    pub remaining_ms: u64,
    /// The request id, the caller's or the server's.
    pub request_id: String,
    /// `true` when the lease was granted to an earlier call of the same request.
    #[serde(skip_serializing_if = "is_false")]
    pub repeated: bool,
    /// The cluster's revision after it took effect.
    pub revision: u64,
}

/// The request still waits; the call was held open for as long as a call may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedBody {
    /// `false`.
    pub acquired: bool,
    /// `true`: call again with the same request id within the waiter grace (10 s by default) to keep the place.
    pub queued: bool,
    /// The place in the queue, from 1.
    pub position: u64,
    /// The request id to call again with.
    pub request_id: String,
    /// The cluster's revision.
    pub revision: u64,
}

/// The lease has its time again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewBody {
    /// `true`.
    pub renewed: bool,
    /// When the lease ends by this node's wall clock (RFC 3339, UTC): for people.
    #[schema(format = DateTime)]
    pub new_expires_at: String,
    /// How long the lease lasts, in ms.
    pub remaining_ms: u64,
    /// `true` when the total-hold limit cut it short: no later renewal extends the lease.
    #[serde(rename = "final", skip_serializing_if = "is_false")]
    pub is_final: bool,
    /// The cluster's revision after it took effect.
    pub revision: u64,
}

/// The answers for many leases, in the order of the request.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct RenewManyBody {
    /// One for each lease.
    pub results: Vec<RenewResult>,
    /// The cluster's revision after they took effect.
    pub revision: u64,
}

/// The answer for one lease of many.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewResult {
    /// The resource.
    pub resource: String,
    /// Whether the lease has its time again.
    pub renewed: bool,
    /// When the lease ends by this node's wall clock (RFC 3339, UTC): for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub new_expires_at: Option<String>,
    /// How long the lease lasts, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remaining_ms: Option<u64>,
    /// `true` when the total-hold limit cut it short: no later renewal extends the lease.
    #[serde(rename = "final", skip_serializing_if = "is_false")]
    pub is_final: bool,
    /// Why it wasn't renewed, as a single renewal would have said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub problem: Option<Problem>,
}

/// The lease is over by the holder's wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReleaseBody {
    /// `true`.
    pub released: bool,
    /// `true` when an earlier call had released it.
    #[serde(skip_serializing_if = "is_false")]
    pub already: bool,
    /// The cluster's revision after it took effect.
    pub revision: u64,
}

/// No grant follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CancelBody {
    /// `true`.
    pub cancelled: bool,
    /// `true` when it had ended without a grant before.
    #[serde(skip_serializing_if = "is_false")]
    pub repeated: bool,
    /// The cluster's revision after it took effect.
    pub revision: u64,
}

/// The lease is over by the operator's wish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForceReleaseBody {
    /// `true`.
    pub released: bool,
    /// Who held it.
    pub holder: String,
    /// The token of the ended lease.
    pub fencing_token: u64,
    /// The cluster's revision after it took effect.
    pub revision: u64,
}
