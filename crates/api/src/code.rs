//! The stable codes: what went wrong, whether it happened, whether to ask again.
//!
//! Owns: each code's text, HTTP status and advice. The code is the contract; title and detail are for people.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether a refused request took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Applied {
    /// It did not, and will not.
    No,
    /// It may have, or still may.
    Unknown,
}

macro_rules! codes {
    ($($(#[doc = $meaning:literal])+ $name:ident = $text:literal, $status:literal, $title:literal, $todo:literal;)*) => {
        /// What went wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
        pub enum Code {
            $($(#[doc = $meaning])+ #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// Every code, by status.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The text on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The HTTP status that it comes with.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// What it is called, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($meaning),+),)* }
            }

            /// What the caller does next.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$name => $todo,)* }
            }
        }
    };
}

codes! {
    /// The request can't be read: JSON that isn't, a field that is unknown, missing, repeated or no whole number, or a name that breaks the rules. `field` names the field and `at` the byte, where there is one.
    Invalid = "invalid", 400, "malformed request", "Correct the request; the same one will always be refused.";
    /// There is no such path. A free resource is not an error: its status is `held: false`.
    NotFound = "not_found", 404, "no such path", "Check the path and that the URL names a kunci server; a `/` inside a resource name is sent as `%2F`.";
    /// The path is there, and not for this method; `Allow` says which.
    MethodNotAllowed = "method_not_allowed", 405, "method not allowed", "Use a method that `Allow` lists.";
    /// The body didn't arrive in time.
    TooSlow = "too_slow", 408, "body too slow", "Send the body at once, on a new connection.";
    /// Somebody else holds the resource, or waits for it, and the request didn't want to wait.
    Held = "held", 409, "the resource is held", "Try later, or ask with `waitTimeoutMs` to queue.";
    /// A lock-delay keeps the resource closed after an expired or forced lease; `remainingMs` says how long.
    LockDelay = "lock_delay", 409, "the resource is closed by a lock-delay", "Try again after `remainingMs`, or ask with `waitTimeoutMs`.";
    /// The wait was over before the resource was free. No grant follows.
    TimedOut = "timed_out", 409, "the wait is over", "Ask again with a new request id.";
    /// The request was cancelled, or dropped because its client stayed away for longer than the waiter grace. No grant follows.
    Cancelled = "cancelled", 409, "the request was cancelled", "Ask again with a new request id, if it is still wanted.";
    /// A newer call with the same request id gets the answer; this older one ends without.
    Superseded = "superseded", 409, "a newer call gets the answer", "Nothing, if the newer call is yours; otherwise draw request ids at random for each acquire.";
    /// The lease has ended; `reason` says how: `released`, `expired`, `forced` or `abandoned`. There is never a second grant for its request id.
    LeaseEnded = "lease_ended", 409, "the lease has ended", "Stop the work it protected; acquire again with a new request id.";
    /// The request id belongs to another request: other resource, lease duration, lock-delay or metadata.
    RequestIdReused = "request_id_reused", 409, "the request id was used for another request", "Draw a request id of 128 random bits for each acquire.";
    /// The proof proves nothing. `reason`: `unknown_lease`, `proof_not_allowed` (the policy takes lease ids only), or for a forced release `other_lease` and `not_held`.
    NotHolder = "not_holder", 409, "not the holder", "Stop the work; read the lock's status.";
    /// The policy was changed since the revision that the change names.
    PolicyChanged = "policy_changed", 409, "the policy has changed", "Read the policy again and repeat the change against its `policyRevision`.";
    /// The membership is being changed already; there is one change at a time.
    ChangeInProgress = "change_in_progress", 409, "a change is in progress", "Wait until `GET /cluster` shows that the change is done, then ask again.";
    /// The change would leave the cluster without a quorum, or close to it.
    UnsafeChange = "unsafe_change", 409, "the change is unsafe", "Bring the members that are down back first, or add others; `force` is for what can't come back.";
    /// This node belongs to a cluster already.
    AlreadyFormed = "already_formed", 409, "the node has a cluster", "Nothing, if it is the cluster that is meant; otherwise start a node with an empty data folder.";
    /// The node belongs to another cluster, and its data with it.
    OtherCluster = "other_cluster", 409, "the node is of another cluster", "Check the address; a node that shall change clusters starts with an empty data folder.";
    /// The node can't take that part yet: it isn't caught up, or can't be counted on right now.
    NotReady = "not_ready", 409, "the node isn't ready", "Wait until `GET /cluster` shows it healthy and caught up, then ask again.";
    /// No member has that id.
    UnknownNode = "unknown_node", 409, "no such member", "Read the members' ids from `GET /cluster`.";
    /// Events after that revision are no longer kept; `oldest` is the oldest revision to watch from.
    Compacted = "compacted", 410, "events are no longer kept", "Read the locks with `GET /locks`, then watch from that answer's `revision`.";
    /// The body or the list in it is too large.
    TooLarge = "too_large", 413, "request too large", "Send less, or in several requests.";
    /// The body isn't declared as JSON. A web page of another origin can't declare that without being asked, so it can't touch the locks of whoever looks at it.
    UnsupportedMediaType = "unsupported_media_type", 415, "not JSON", "Send `Content-Type: application/json`.";
    /// A value breaks the policy: `field`, `minMs` and `maxMs` (or `min` and `max`) say which and what is allowed.
    OutOfPolicy = "out_of_policy", 422, "out of policy", "Use a value within the policy, `GET /policy`, or have it changed.";
    /// A limit of the policy is reached: `limit` and `max` say which.
    OverLimit = "over_limit", 429, "a limit is reached", "Wait for `Retry-After`, then try again with the same request id.";
    /// A quorum can't be reached. Nothing was proposed.
    NoQuorum = "no_quorum", 503, "no quorum", "Try again with the same request id after `Retry-After`, also at another node.";
    /// No node leads right now, or this one doesn't serve yet. Nothing was proposed.
    NoLeader = "no_leader", 503, "no leader", "Try again with the same request id after `Retry-After`, also at another node.";
    /// Too much waits to be done, or too many connections are open. Nothing was proposed.
    Overloaded = "overloaded", 503, "overloaded", "Try again with the same request id after `Retry-After`, and less often.";
    /// The disk of the data folder is nearly full. Nothing was proposed; renewals, releases and reads go on.
    StorageLow = "storage_low", 503, "storage is low", "Free disk space on the nodes; then try again with the same request id.";
    /// The node that the change is about doesn't answer at its peer address. Nothing was proposed.
    PeerUnreachable = "peer_unreachable", 503, "the peer can't be reached", "Check that the node runs and that its peer address is right and open to the members.";
    /// Not every node of the cluster knows this call yet. Nothing was proposed.
    NotEnabled = "not_enabled", 503, "not enabled yet", "Finish the upgrade of all nodes first.";
    /// The request was proposed, and whether it took effect isn't known here.
    OutcomeUnknown = "outcome_unknown", 503, "the outcome is unknown", "Repeat it with the same request id: the answer is then the one outcome it has.";
}

impl Code {
    /// Whether the request took effect.
    ///
    /// A superseded call is unknown too: its request goes on under the newer call.
    pub const fn applied(self) -> Applied {
        match self {
            Self::OutcomeUnknown | Self::Superseded => Applied::Unknown,
            _ => Applied::No,
        }
    }

    /// When to ask again, in ms, for refusals that pass by themselves. `Retry-After` is this, rounded up to
    /// whole seconds.
    pub const fn retry_after_ms(self) -> Option<u64> {
        match self {
            // About an election, or a batch.
            Self::NoQuorum | Self::NoLeader => Some(500),
            Self::Overloaded | Self::PeerUnreachable => Some(1_000),
            // Somebody has to do something about it.
            Self::StorageLow => Some(5_000),
            Self::OutcomeUnknown => Some(200),
            Self::OverLimit => Some(2_000),
            Self::NotEnabled => Some(60_000),
            _ => None,
        }
    }
}
