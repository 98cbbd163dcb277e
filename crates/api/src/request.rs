//! What callers send, and how it becomes kunci's types.
//!
//! Owns: the way in, for every call. Never: a limit of the policy; the log knows which one is in force.

use crate::invalid::Invalid;
use crate::lease_id::parse_lease_id;
use crate::number::{if_there, whole, whole_if_there};
use kunci_types::{
    FencingToken, InvalidText, LeaseId, LockDelay, Metadata, Owner, Reason, RequestId, ResourceName, Ttl,
    Wait,
};
use serde::Deserialize;
use utoipa::ToSchema;

/// How many leases one request may renew: as many as fit in its 1 MiB with names of usual length.
pub const LEASES_MAX: usize = 10_000;

/// Reads a resource's name.
///
/// # Errors
/// Says at which byte the name is at fault.
pub fn resource(text: &str) -> Result<ResourceName, Invalid> {
    ResourceName::parse(text).map_err(at("resource"))
}

fn at(field: &str) -> impl FnOnce(InvalidText) -> Invalid {
    move |cause| Invalid::Text { field: field.to_owned(), cause }
}

fn owner(text: &str) -> Result<Owner, Invalid> {
    Owner::parse(text).map_err(at("clientId"))
}

fn request_id(text: &str) -> Result<RequestId, Invalid> {
    RequestId::parse(text).map_err(at("requestId"))
}

fn token(field: &str, number: u64) -> Result<FencingToken, Invalid> {
    FencingToken::presented(number).map_err(|cause| Invalid::Token { field: field.to_owned(), cause })
}

/// Take a resource, or queue for it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AcquireRequest {
    /// Who asks, for people to read: 1 to 128 bytes of UTF-8 in NFC.
    #[schema(min_length = 1, max_length = 128, example = "worker-7")]
    client_id: String,
    /// Names the request, so that a retry applies once: 1 to 128 bytes, 128 random bits for each acquire. Made by
    /// the server when left out, and then in the answer.
    #[serde(default, deserialize_with = "if_there")]
    #[schema(nullable = false, min_length = 1, max_length = 128)]
    request_id: Option<String>,
    /// How long the lease lasts without renewal, in ms, within the policy (1,000 to 3,600,000). Default: the
    /// policy's, 30,000.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false, example = 30_000)]
    lease_duration_ms: Option<u64>,
    /// How long to queue when the resource isn't free, in ms, within the policy (up to 3,600,000). Default 0: not
    /// at all.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false, example = 60_000)]
    wait_timeout_ms: Option<u64>,
    /// How long the resource stays closed when this lease expires or is forced, in ms, within the policy (up to
    /// 60,000). Default 0.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false)]
    lock_delay_ms: Option<u64>,
    /// Shown to whoever may read the lock: up to 1,024 bytes of UTF-8.
    #[serde(default, deserialize_with = "if_there")]
    #[schema(nullable = false, max_length = 1024)]
    metadata: Option<String>,
}

/// An acquire in kunci's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Who asks.
    pub owner: Owner,
    /// The request id, when the caller chose one.
    pub request_id: Option<RequestId>,
    /// The lease's TTL, when the caller chose one.
    pub ttl: Option<Ttl>,
    /// What to do when the resource isn't free.
    pub wait: Wait,
    /// The lock-delay.
    pub lock_delay: LockDelay,
    /// What is shown with the lock.
    pub metadata: Option<Metadata>,
}

impl AcquireRequest {
    /// Takes it in.
    ///
    /// # Errors
    /// Names the field at fault.
    pub fn read(&self) -> Result<Asked, Invalid> {
        Ok(Asked {
            owner: owner(&self.client_id)?,
            request_id: self.request_id.as_deref().map(request_id).transpose()?,
            ttl: self.lease_duration_ms.map(Ttl::from_ms),
            wait: Wait::from_ms(self.wait_timeout_ms.unwrap_or(0)),
            lock_delay: LockDelay::from_ms(self.lock_delay_ms.unwrap_or(0)),
            metadata: self.metadata.as_deref().map(Metadata::parse).transpose().map_err(at("metadata"))?,
        })
    }
}

/// What is shown to prove that a lease is one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The lease id.
    LeaseId(LeaseId),
    /// Owner and token, where the policy allows it.
    OwnerToken {
        /// The owner that acquired.
        owner: Owner,
        /// The lease's token.
        token: FencingToken,
    },
}

fn proof(
    lease_id: Option<&str>,
    client_id: Option<&str>,
    fencing_token: Option<u64>,
) -> Result<Proof, Invalid> {
    match (lease_id, client_id, fencing_token) {
        (Some(text), None, None) => parse_lease_id(text).map(Proof::LeaseId).map_err(at("leaseId")),
        (None, Some(text), Some(number)) => {
            Ok(Proof::OwnerToken { owner: owner(text)?, token: token("fencingToken", number)? })
        }
        _ => Err(Invalid::Proof),
    }
}

/// Set a lease back to its full time. Either `leaseId`, or `clientId` and `fencingToken` where the policy allows it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RenewRequest {
    /// The lease id from the grant: 22 characters of unpadded base64url.
    #[serde(default, deserialize_with = "if_there")]
    #[schema(nullable = false, min_length = 22, max_length = 22)]
    lease_id: Option<String>,
    /// The owner that acquired.
    #[serde(default, deserialize_with = "if_there")]
    #[schema(nullable = false, max_length = 128)]
    client_id: Option<String>,
    /// The lease's token, 1 to 2^53 − 1.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false)]
    fencing_token: Option<u64>,
    /// The lease's TTL from now on, in ms, within the policy. Default: as before.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false)]
    lease_duration_ms: Option<u64>,
}

/// A renewal in kunci's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The resource that the lease is on.
    pub resource: ResourceName,
    /// That the lease is one's own.
    pub proof: Proof,
    /// The lease's TTL from now on, when the caller chose one.
    pub ttl: Option<Ttl>,
}

impl RenewRequest {
    /// Takes it in, for a resource.
    ///
    /// # Errors
    /// Names the field at fault.
    pub fn read(&self, resource: ResourceName) -> Result<Renewed, Invalid> {
        let proof = proof(self.lease_id.as_deref(), self.client_id.as_deref(), self.fencing_token)?;
        Ok(Renewed { resource, proof, ttl: self.lease_duration_ms.map(Ttl::from_ms) })
    }
}

/// Renew many leases in one log entry.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewManyRequest {
    /// 1 to 10,000 leases; the answers come in the same order.
    #[schema(min_items = 1, max_items = 10_000)]
    leases: Vec<LeaseToRenew>,
}

/// One lease of many.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LeaseToRenew {
    /// The resource's name, not encoded.
    #[schema(min_length = 1, max_length = 256)]
    resource: String,
    /// The lease id from the grant: 22 characters of unpadded base64url.
    #[schema(min_length = 22, max_length = 22)]
    lease_id: String,
    /// The lease's TTL from now on, in ms, within the policy. Default: as before.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false)]
    lease_duration_ms: Option<u64>,
}

impl RenewManyRequest {
    /// How many leases there are.
    pub fn count(&self) -> usize {
        self.leases.len()
    }

    /// Takes them in, in order.
    ///
    /// # Errors
    /// Names the lease and its field at fault, such as `leases[3].resource`; none is renewed then.
    pub fn read(&self) -> Result<Vec<Renewed>, Invalid> {
        if self.leases.is_empty() {
            return Err(Invalid::Value {
                field: "leases".to_owned(),
                text: format!("the list is empty: expected 1 to {LEASES_MAX} leases"),
            });
        }
        let read = |(number, lease): (usize, &LeaseToRenew)| {
            lease.read().map_err(|invalid| invalid.inside(&format!("leases[{number}]")))
        };
        self.leases.iter().enumerate().map(read).collect()
    }
}

impl LeaseToRenew {
    fn read(&self) -> Result<Renewed, Invalid> {
        Ok(Renewed {
            resource: resource(&self.resource)?,
            proof: proof(Some(&self.lease_id), None, None)?,
            ttl: self.lease_duration_ms.map(Ttl::from_ms),
        })
    }
}

/// End a lease. Either `leaseId`, or `clientId` and `fencingToken` where the policy allows it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReleaseRequest {
    /// The lease id from the grant: 22 characters of unpadded base64url.
    #[serde(default, deserialize_with = "if_there")]
    #[schema(nullable = false, min_length = 22, max_length = 22)]
    lease_id: Option<String>,
    /// The owner that acquired.
    #[serde(default, deserialize_with = "if_there")]
    #[schema(nullable = false, max_length = 128)]
    client_id: Option<String>,
    /// The lease's token, 1 to 2^53 − 1.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false)]
    fencing_token: Option<u64>,
}

impl ReleaseRequest {
    /// Takes it in.
    ///
    /// # Errors
    /// Names the field at fault.
    pub fn read(&self) -> Result<Proof, Invalid> {
        proof(self.lease_id.as_deref(), self.client_id.as_deref(), self.fencing_token)
    }
}

/// Leave the queue, or make sure that a request never enters it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CancelRequest {
    /// The owner that asked.
    #[schema(min_length = 1, max_length = 128)]
    client_id: String,
    /// The request id that it asked with.
    #[schema(min_length = 1, max_length = 128)]
    request_id: String,
}

/// A cancel in kunci's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// The owner that asked.
    pub owner: Owner,
    /// The request.
    pub request_id: RequestId,
}

impl CancelRequest {
    /// Takes it in.
    ///
    /// # Errors
    /// Names the field at fault.
    pub fn read(&self) -> Result<Cancelled, Invalid> {
        Ok(Cancelled { owner: owner(&self.client_id)?, request_id: request_id(&self.request_id)? })
    }
}

/// End a lease by an operator's wish.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ForceReleaseRequest {
    /// The token of the lease that is meant, so that a successor can't be hit: 1 to 2^53 − 1.
    #[serde(deserialize_with = "whole")]
    fencing_token: u64,
    /// Why, for the audit: 1 to 256 bytes.
    #[schema(min_length = 1, max_length = 256, example = "host worker-7 is gone")]
    reason: String,
}

/// A forced release in kunci's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// The lease that is meant.
    pub token: FencingToken,
    /// Why.
    pub reason: Reason,
}

impl ForceReleaseRequest {
    /// Takes it in.
    ///
    /// # Errors
    /// Names the field at fault.
    pub fn read(&self) -> Result<Forced, Invalid> {
        Ok(Forced {
            token: token("fencingToken", self.fencing_token)?,
            reason: Reason::parse(&self.reason).map_err(at("reason"))?,
        })
    }
}

/// A protected resource reports that it refused a stale token.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FencingRejectionRequest {
    /// The resource's name, not encoded.
    #[schema(min_length = 1, max_length = 256)]
    resource: String,
    /// The token that was refused: 1 to 2^53 − 1.
    #[serde(deserialize_with = "whole")]
    token: u64,
    /// The larger token that had been accepted before: 1 to 2^53 − 1.
    #[serde(deserialize_with = "whole")]
    current: u64,
}

/// A reported rejection in kunci's types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencingRejection {
    /// The resource.
    pub resource: ResourceName,
    /// The token that was refused.
    pub token: FencingToken,
    /// The token that had been accepted.
    pub current: FencingToken,
}

impl FencingRejectionRequest {
    /// Takes it in.
    ///
    /// # Errors
    /// Names the field at fault; a token that isn't smaller than the current one was wrongly refused.
    pub fn read(&self) -> Result<FencingRejection, Invalid> {
        let rejection = FencingRejection {
            resource: resource(&self.resource)?,
            token: token("token", self.token)?,
            current: token("current", self.current)?,
        };
        if rejection.token >= rejection.current {
            let text = format!(
                "token {} isn't smaller than the current {}: a fence lets it pass",
                self.token, self.current
            );
            return Err(Invalid::Value { field: "token".to_owned(), text });
        }
        Ok(rejection)
    }
}

/// The report was taken.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, ToSchema)]
pub struct FencingRejectionBody {
    /// `true`.
    pub recorded: bool,
    /// The revision of the node's state.
    pub revision: u64,
}
