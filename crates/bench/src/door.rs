//! The way to the cluster that is loaded: its native doors through `kunci-client`, or the HTTP of one node.
//!
//! Owns: one form of request for both. Never: measures, or decides what comes next.

mod http;
mod native;

pub(crate) use http::Http;

use crate::caller::Failed;
use kunci_client::native::WaitFor;
use kunci_client::{Client, ResourceName};
use kunci_types::{LeaseId, Owner, RequestId, Ttl};

/// The way to the cluster. A clone is another handle to the same connections.
#[derive(Clone, Debug)]
pub(crate) enum Door {
    /// Through native doors.
    Native(Client),
    /// Through the HTTP of one node.
    Http(Http),
}

/// An acquire, as it goes out.
#[derive(Clone, Debug)]
pub(crate) struct Acquire<'a> {
    pub(crate) key: &'a ResourceName,
    pub(crate) request_id: &'a RequestId,
    pub(crate) owner: &'a Owner,
    pub(crate) ttl: Ttl,
    pub(crate) wait: WaitFor,
}

impl Door {
    /// Takes a resource.
    pub(crate) async fn acquire(&self, acquire: &Acquire<'_>) -> Result<LeaseId, Failed> {
        match self {
            Self::Native(client) => native::acquire(client, acquire).await,
            Self::Http(http) => http.acquire(acquire).await,
        }
    }

    /// Cancels a request, and returns the lease that it was granted before that.
    pub(crate) async fn cancel(
        &self,
        key: &ResourceName,
        request_id: &RequestId,
        owner: &Owner,
    ) -> Result<Option<LeaseId>, Failed> {
        match self {
            Self::Native(client) => native::cancel(client, key, request_id, owner).await,
            Self::Http(http) => http.cancel(key, request_id, owner).await,
        }
    }

    pub(crate) async fn renew(&self, key: &ResourceName, lease_id: LeaseId) -> Result<(), Failed> {
        match self {
            Self::Native(client) => native::renew(client, key, lease_id).await,
            Self::Http(http) => http.renew(key, lease_id).await,
        }
    }

    pub(crate) async fn release(&self, key: &ResourceName, lease_id: LeaseId) -> Result<(), Failed> {
        match self {
            Self::Native(client) => native::release(client, key, lease_id).await,
            Self::Http(http) => http.release(key, lease_id).await,
        }
    }

    pub(crate) async fn status(&self, key: &ResourceName) -> Result<(), Failed> {
        match self {
            Self::Native(client) => native::status(client, key).await,
            Self::Http(http) => http.status(key).await,
        }
    }

    /// The id of the cluster.
    pub(crate) fn cluster(&self) -> Option<String> {
        match self {
            Self::Native(client) => client.cluster(),
            Self::Http(http) => http.cluster(),
        }
    }

    /// Ends what still goes on in the background.
    pub(crate) async fn close(&self) {
        match self {
            Self::Native(client) => client.close().await,
            // It has nothing of its own: a connection without a request ends by itself.
            Self::Http(_) => {}
        }
    }
}
