//! Wire forms: JSON bodies, native lines and error codes, and how they become kunci's types and come from them.
//!
//! Owns: every field's name, unit and bound as callers see it. Never: a rule of the business; a number that a
//! field can carry may still be out of policy, which the log decides.
#![forbid(unsafe_code)]

mod audit;
mod body;
mod cluster;
mod code;
mod event;
mod grant;
mod invalid;
mod lease_id;
mod membership;
pub mod native;
mod number;
mod policy;
mod problem;
mod request;
mod view;

pub use audit::{AuditBody, AuditRecord};
pub use body::parse;
pub use cluster::{ClusterBody, LiveBody, NodeBody, ReadyBody};
pub use code::{Applied, Code};
pub use event::{EventBody, HistoryBody};
pub use grant::{
    CancelBody, ForceReleaseBody, GrantBody, QueuedBody, ReleaseBody, RenewBody, RenewManyBody, RenewResult,
};
pub use invalid::Invalid;
pub use lease_id::{lease_id_text, parse_lease_id};
pub use membership::{
    AddBody, AddRequest, InitBody, InitRequest, RemoveBody, RemoveRequest, ReplaceBody, ReplaceRequest,
    TransferBody, TransferRequest,
};
pub use policy::{PolicyAnswer, PolicyBody, PolicyChangeRequest};
pub use problem::Problem;
pub use request::{
    AcquireRequest, Asked, CancelRequest, Cancelled, FencingRejection, FencingRejectionBody,
    FencingRejectionRequest, ForceReleaseRequest, Forced, LEASES_MAX, LeaseToRenew, Proof, ReleaseRequest,
    RenewManyRequest, RenewRequest, Renewed, resource,
};
pub use view::{ListBody, ListedBody, QueueBody, StatusBody, WaiterBody};
