//! Locks of a kunci cluster, for Rust programs on tokio.
//!
//! A [`Client`] keeps connections to the cluster's native doors and renews all its locks in the background. A
//! [`HeldLock`] says at any time how sure it is to be held, and that it is lost even when no server answers.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use kunci_client::Client;
//! use std::time::Duration;
//!
//! let client = Client::connect(["127.0.0.1:7401"]).await?;
//! let report = client.lock("reports/nightly").ttl(Duration::from_secs(10)).with(async |lock| {
//!     tokio::select! {
//!         report = write_report(lock.token().get()) => Some(report),
//!         loss = lock.lost() => { eprintln!("stopped: {loss}"); None }
//!     }
//! }).await?;
//! # Ok(())
//! # }
//! # async fn write_report(token: u64) -> String { String::new() }
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
pub use kunci_api::{Code, native};
pub use kunci_types::{FencingToken, ResourceName};
pub use lock::LockRequest;
pub use several::{HeldLocks, LocksRequest};
pub use state::{Ending, Loss, State};
pub use status::Status;
