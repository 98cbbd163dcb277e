//! Where the connections that other members make go.
//!
//! Owns: the way from a connection's purpose to who serves it, and how many there are. Never: what is said on it.

use super::door::Incoming;
use super::handshake::Purpose;
use super::links::BoxedStream;
use super::raft_server::{Host, serve};
use std::fmt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A connection that another member made to pass on its clients' calls. It is HTTP/2 from the first byte.
pub struct CallsFrom {
    /// The member.
    pub node_id: u64,
    /// The connection.
    pub stream: BoxedStream,
}

impl fmt::Debug for CallsFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "calls from node {}", self.node_id)
    }
}

/// Gives each connection to who serves it, until `stop`, which ends them all.
pub(crate) async fn dispatch(
    host: Host,
    mut incoming: mpsc::Receiver<Incoming>,
    calls: mpsc::Sender<CallsFrom>,
    stop: CancellationToken,
) {
    let mut served = JoinSet::new();
    loop {
        let connection = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = served.join_next(), if !served.is_empty() => continue,
            connection = incoming.recv() => connection,
        };
        let Some(Incoming { from, purpose, connection }) = connection else { return };
        match purpose {
            Purpose::Calls => {
                // Nobody takes calls here, or too many wait: the member sees a connection that ends.
                drop(calls.try_send(CallsFrom { node_id: from, stream: connection.into_stream() }));
            }
            Purpose::Append | Purpose::Ask | Purpose::Snapshot => {
                let serving = serve(host.clone(), Incoming { from, purpose, connection });
                drop(kunci_process::spawn_into(&mut served, serving));
            }
            Purpose::Door => {}
        }
    }
}
