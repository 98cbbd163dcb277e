//! What every handler of a call has at hand: the door, and the service behind it.

use super::answer::Failure;
use super::front::Front;
use crate::service::Service;
use axum::extract::FromRequestParts;
use http::request::Parts;
use kunci_types::{ClientAddress, Origin};
use std::ops::Deref;
use tokio_util::sync::CancellationToken;

/// The door of a node that belongs to a cluster. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) service: Service,
    front: Front,
}

impl Door {
    /// None while the node belongs to no cluster.
    pub(super) fn of(front: &Front) -> Option<Self> {
        Some(Self { service: front.service.get()?.clone(), front: front.clone() })
    }
}

impl Deref for Door {
    type Target = Front;

    fn deref(&self) -> &Front {
        &self.front
    }
}

impl FromRequestParts<Front> for Door {
    type Rejection = Failure;

    async fn from_request_parts(_: &mut Parts, front: &Front) -> Result<Self, Failure> {
        Self::of(front).ok_or_else(|| front.refuse_without_cluster())
    }
}

/// Where the client of this request is. On a request that was passed on, the node says it that passed it on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct From(pub(super) Option<ClientAddress>);

impl From {
    /// Where its commands come from.
    pub(super) fn origin(self) -> Origin {
        Origin::at(self.0)
    }
}

/// The peer of this request has closed its side: it doesn't wait for the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Gone(pub(super) CancellationToken);
