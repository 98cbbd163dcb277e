//! The policy as JSON.
//!
//! Owns: its field names and both directions. Never: which values make sense; [`Policy::check`] does.

use crate::invalid::Invalid;
use crate::number::{if_there, whole, whole_if_there};
use kunci_types::{Policy, Revision};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! policy {
    ($($(#[doc = $doc:literal])+ $field:ident;)*) => {
        /// The limits in force. Intervals are in ms, up to 366 days; counts go up to 2^32.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct PolicyBody {
            $($(#[doc = $doc])+ pub $field: u64,)*
            /// Whether `clientId` and `fencingToken` renew and release in place of the lease id. Whoever may read a
            /// lock knows both, so this is for trusted networks.
            pub owner_token_proof: bool,
        }

        /// The limits to change; those that are left out stay as they are.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        struct PolicyPart {
            $(
                $(#[doc = $doc])+
                #[serde(default, deserialize_with = "whole_if_there")]
                #[schema(nullable = false)]
                $field: Option<u64>,
            )*
            /// Whether `clientId` and `fencingToken` renew and release in place of the lease id.
            #[serde(default, deserialize_with = "if_there")]
            #[schema(nullable = false)]
            owner_token_proof: Option<bool>,
        }

        impl PolicyPart {
            fn over(&self, policy: &Policy) -> Policy {
                Policy {
                    $($field: self.$field.unwrap_or(policy.$field),)*
                    owner_token_proof: self.owner_token_proof.unwrap_or(policy.owner_token_proof),
                }
            }
        }

        impl From<&Policy> for PolicyBody {
            fn from(policy: &Policy) -> Self {
                Self { $($field: policy.$field,)* owner_token_proof: policy.owner_token_proof }
            }
        }
    };
}

policy! {
    /// Shortest lease, in ms; at least 1.
    ttl_ms_min;
    /// Longest lease, in ms; at least `ttlMsMin`.
    ttl_ms_max;
    /// The lease given when a caller names none, in ms; between the two.
    ttl_ms_default;
    /// How long one lease may be renewed, counted from its grant, in ms; at least `ttlMsMax`.
    total_hold_ms_max;
    /// Longest wait, in ms; at least 1.
    wait_ms_max;
    /// Longest lock-delay, in ms.
    lock_delay_ms_max;
    /// How long the outcome of an ended request is remembered, in ms; at least 10,000.
    retry_window_ms;
    /// How many outcomes are remembered at most.
    outcomes_max;
    /// Waiters of one resource.
    waiters_per_resource_max;
    /// Waiters of one namespace.
    waiters_per_namespace_max;
    /// Waiters in all.
    waiters_max;
    /// Held leases of one namespace.
    leases_per_namespace_max;
    /// Held leases in all.
    leases_max;
    /// How long a detached waiter keeps its place, and an unseen grant its lease, in ms; at least 1.
    waiter_grace_ms;
    /// The least time that a new leader gives a lease, in ms, or the lease's TTL when that is smaller.
    failover_grace_ms;
}

/// The policy in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAnswer {
    /// The limits.
    pub policy: PolicyBody,
    /// The revision at which they were set, 0 for the defaults: what a change must name.
    pub policy_revision: u64,
    /// The revision that the answer shows.
    pub revision: u64,
}

/// Change the limits.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyChangeRequest {
    /// The `policyRevision` of the policy that this replaces; when another one is in force by then, nothing changes.
    #[serde(deserialize_with = "whole")]
    replaces: u64,
    /// The limits to change; those that are left out stay as they are.
    policy: PolicyPart,
}

impl PolicyChangeRequest {
    /// The revision of the policy that this replaces.
    ///
    /// # Errors
    /// When the number can't be a revision.
    pub fn replaces(&self) -> Result<Revision, Invalid> {
        Revision::new(self.replaces).ok_or_else(|| Invalid::Value {
            field: "replaces".to_owned(),
            text: format!("{} is no revision: expected 0 to {}", self.replaces, Revision::MAX),
        })
    }

    /// The whole policy as it would be, given the one that is replaced.
    pub fn over(&self, policy: &Policy) -> Policy {
        self.policy.over(policy)
    }
}

impl PolicyBody {
    /// The wire's name for a field of [`Policy`]: `ttl_ms_max` is `ttlMsMax`.
    pub fn field_name(field: &str) -> String {
        let mut words = field.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |mut name, word| {
            let mut letters = word.chars();
            name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            name.push_str(letters.as_str());
            name
        })
    }
}
