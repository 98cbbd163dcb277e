//! How byte streams between nodes are made.
//!
//! Owns: the seam between the peer protocol and the network: TCP here, a simulated network in the simulator. Never:
//! looks at a byte.

use futures::future::BoxFuture;
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
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// The real network.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpLinks;

impl Links for TcpLinks {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async move {
            // Names are looked up at every connect: a node may have moved.
            let stream = TcpStream::connect(address).await?;
            prepare(&stream)?;
            Ok(Box::new(stream) as BoxedStream)
        })
    }
}

impl Doorway for TcpListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Arrival>> {
        Box::pin(async move {
            let (stream, from): (TcpStream, SocketAddr) = Self::accept(self).await?;
            prepare(&stream)?;
            Ok(Arrival { stream: Box::new(stream), from: from.to_string() })
        })
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // A peer that vanished without a word: every purpose has deadlines of its own; this ends what none watches.
    rustix::net::sockopt::set_tcp_user_timeout(
        stream,
        u32::try_from(UNACKNOWLEDGED_MAX.as_millis()).unwrap_or(u32::MAX),
    )?;
    Ok(())
}
