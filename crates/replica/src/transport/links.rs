//! How byte streams between nodes are made.
//!
//! Owns: the seam between the peer protocol and the network: TCP here, a simulated network in the simulator. Never:
//! looks at a byte.

mod names;

use futures::future::BoxFuture;
use names::Names;
use rustix::net::sockopt;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// Bytes in both directions, in order.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Any such stream.
pub type BoxedStream = Box<dyn Stream>;

/// The way out: makes streams to other nodes.
pub trait Links: Send + Sync {
    /// Connects to `address`, a `host:port`. The caller bounds the time.
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>>;
}

/// The way in: gives the streams that other nodes make.
pub trait Doorway: Send {
    /// Waits for the next one. Safe to drop while it waits.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Arrival>>;
}

/// A stream that another node made.
pub struct Arrival {
    /// The stream.
    pub stream: BoxedStream,
    /// Where it comes from, for people.
    pub from: String,
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a stream from {}", self.from)
    }
}

/// How long unacknowledged bytes may be on the way before the stream breaks.
const UNACKNOWLEDGED_MAX_MS: u32 = 5000;
/// A silent peer is asked after this time whether it is there, and then every second until the stream breaks.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(2);
/// Time from one such question to the next.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(1);

/// The real network. A clone is another handle to the same memory of names.
#[derive(Clone, Debug, Default)]
pub struct TcpLinks {
    names: Names,
}

impl Links for TcpLinks {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async move {
            // Looked up at every connect: a node may have moved.
            let addresses = self.names.addresses(address).await?;
            let stream = TcpStream::connect(addresses.as_slice()).await?;
            prepare(&stream)?;
            Ok(Box::new(stream) as BoxedStream)
        })
    }
}

impl Doorway for TcpListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Arrival>> {
        Box::pin(async move {
            let (stream, from): (TcpStream, SocketAddr) = Self::accept(self).await?;
            // It is gone already. That is no fault of the door.
            prepare(&stream).map_err(|error| io::Error::new(io::ErrorKind::ConnectionAborted, error))?;
            Ok(Arrival { stream: Box::new(stream), from: from.to_string() })
        })
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // A peer that vanished without a word. Every purpose has deadlines of its own; this ends what none watches.
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MAX_MS)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EVERY)?;
    Ok(())
}
