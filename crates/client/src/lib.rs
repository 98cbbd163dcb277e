//! Locks of a kunci cluster, for Rust programs on tokio.
//!
//! A [`Client`] keeps connections to the cluster's native doors and renews all its locks in the background. A
//! [`HeldLock`] says at any time how sure it is to be held, and that it is lost even when no server answers.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/node.inc"));
//! # async fn write_report(token: u64) -> String { format!("written under {token}") }
//! # fn main() { node::run(async |address| {
//! use kunci_client::Client;
//! use std::time::Duration;
//!
//! // Usually three addresses: ["10.0.0.1:7401", "10.0.0.2:7401", "10.0.0.3:7401"].
//! let client = Client::connect([address]).await?;
//!
//! let report = client
//!     .lock("reports/nightly")
//!     .ttl(Duration::from_secs(10))
//!     .with(async |lock| {
//!         tokio::select! {
//!             report = write_report(lock.token().get()) => Ok(report),
//!             loss = lock.lost() => Err(loss),
//!         }
//!     })
//!     .await??;
//! # assert_eq!(report, "written under 1");
//! # Ok(()) }) }
//! ```
//!
//! What a client must do, and why, is in `docs/clients.md`.

mod acquire;
mod client;
mod clock;
mod connector;
mod decide;
mod error;
mod held;
mod keeper;
mod links;
mod lock;
mod patience;
mod random;
mod release;
mod renew;
mod renewer;
mod several;
mod shared;
mod state;
mod status;
mod timing;
mod wire;

pub use client::{Client, ClientBuilder};
pub use clock::{Alarm, BootClock, Clock, Moment, RuntimeClock};
pub use connector::{BoxedStream, ByteStream, Connector, TcpConnector};
pub use error::{Certainty, Error, ErrorKind, Retry};
pub use held::{HeldLock, InDoubt, States};
pub use kunci_api::{Applied, Code, Proof, lease_id_text, native, parse_lease_id};
pub use kunci_types::{FencingToken, ResourceName};
pub use lock::LockRequest;
pub use random::{Randomness, SystemRandomness};
pub use several::{HeldLocks, LocksRequest};
pub use state::{Ending, Loss, State};
pub use status::Status;
