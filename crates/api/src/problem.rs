//! The one body of every refusal: `application/problem+json` (RFC 9457).
//!
//! Owns: its fields. Never: the caller's secrets, addresses or causes; those go to the log.

use crate::code::{Applied, Code};
use crate::invalid::Invalid;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A refusal: what, why, whether it happened, and what stood in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `urn:kunci:error:` and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:kunci:error:held")]
    pub kind: String,
    /// The code in a few words, for people.
    pub title: String,
    /// The HTTP status, again.
    pub status: u16,
    /// The stable code: what programs go by.
    pub code: Code,
    /// What was found and what was expected, for people; its wording may change.
    pub detail: String,
    /// Whether the request took effect: `no` or `unknown`.
    pub applied: Applied,
    /// The cluster's revision when this was decided (count of ownership and queue events, up to 2^53 − 1).
    pub revision: u64,
    /// `false` in a refusal of an acquire that did not take effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub acquired: Option<bool>,
    /// `false` in a refusal of a renewal that did not take effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub renewed: Option<bool>,
    /// `false` in a refusal of a release that did not take effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub released: Option<bool>,
    /// The request id of a refused acquire: repeat it with this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request_id: Option<String>,
    /// `true` when the answer comes from the record of an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub repeated: Option<bool>,
    /// The owner of the current lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub holder: Option<String>,
    /// The token of the lease that it is about (1 to 2^53 − 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub fencing_token: Option<u64>,
    /// How long the current lease or the lock-delay lasts, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remaining_ms: Option<u64>,
    /// How many wait for the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub queue_length: Option<u64>,
    /// How the lease ended, or why the proof proves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// When to ask again, in ms from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_after_ms: Option<u64>,
    /// The field or parameter at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub field: Option<String>,
    /// The byte of that field at which the fault is, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub at: Option<u64>,
    /// The value that was found, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub found_ms: Option<u64>,
    /// The least that the policy allows, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub min_ms: Option<u64>,
    /// The most that the policy allows, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_ms: Option<u64>,
    /// The least that is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub min: Option<u64>,
    /// The limit that is reached, or the most that is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max: Option<u64>,
    /// The policy's limit that is reached, by its field name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub limit: Option<String>,
    /// The revision of the policy in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub policy_revision: Option<u64>,
    /// The oldest revision that can be watched from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub oldest: Option<u64>,
}

impl Problem {
    /// A refusal with this code; `detail` says in lower case what was found and what was expected.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:kunci:error:{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            applied: code.applied(),
            retry_after_ms: code.retry_after_ms(),
            revision: 0,
            acquired: None,
            renewed: None,
            released: None,
            request_id: None,
            repeated: None,
            holder: None,
            fencing_token: None,
            remaining_ms: None,
            queue_length: None,
            reason: None,
            field: None,
            at: None,
            found_ms: None,
            min_ms: None,
            max_ms: None,
            min: None,
            max: None,
            limit: None,
            policy_revision: None,
            oldest: None,
        }
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Self {
            field: invalid.field().map(str::to_owned),
            at: invalid.at(),
            ..Self::new(Code::Invalid, invalid.to_string())
        }
    }
}
