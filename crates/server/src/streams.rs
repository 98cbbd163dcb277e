//! What the front doors stand on: byte streams that clients make, and where they come in.
//!
//! Owns: the seam between the doors and the network: TCP here, a simulated network in the simulator. Never: looks at a
//! byte.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// Where clients' streams come in.
pub trait Listener: Send + 'static {
    /// What comes in.
    type Stream: ClientStream;

    /// Waits for the next one. Safe to drop while it waits.
    ///
    /// # Errors
    /// As the network says; the next one may come all the same.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Closes it, and gives those that were connected and not taken yet: they would be reset with it.
    fn left_over(self) -> Vec<Self::Stream>;
}

/// A stream that a client made. Only one task waits for it; reading and writing themselves never wait, and fail with
/// [`io::ErrorKind::WouldBlock`] where they would have to.
pub trait ClientStream: Send + Sync + 'static {
    /// Sets what every connection has: no delay, and an end for a peer that is gone without a word.
    ///
    /// # Errors
    /// When it is gone already.
    fn prepare(&self) -> io::Result<()>;

    /// Where the peer is, if that is known.
    fn peer_address(&self) -> Option<SocketAddr>;

    /// Whether there may be something to read: bytes, the end, or an error.
    ///
    /// # Errors
    /// When the stream can't be waited for.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Whether something may be written.
    ///
    /// # Errors
    /// When the stream can't be waited for.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads what is there; 0 is the end.
    ///
    /// # Errors
    /// When nothing is there, or the stream is broken.
    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes as much as there is room for, at least a byte.
    ///
    /// # Errors
    /// When there is no room, or the stream is broken.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// The same from several places.
    ///
    /// # Errors
    /// As [`ClientStream::try_write`].
    fn try_write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Says to the peer that nothing more comes. What it sends can still be read.
    ///
    /// # Errors
    /// When the stream is broken.
    fn end_writing(&self) -> io::Result<()>;

    /// Waits until the peer has closed its side, also while bytes that it sent before are unread.
    fn closed_by_peer(&self) -> impl Future<Output = ()> + Send;
}

/// Ends a connection from this side: what the peer still sends is read and left alone, until it has closed its side too.
/// Closing over unread bytes would take from it what it was told last.
pub(crate) async fn end(stream: &impl ClientStream) -> io::Result<()> {
    stream.end_writing()?;
    let mut unread = [0; 1024];
    loop {
        poll_fn(|cx| stream.poll_readable(cx)).await?;
        match stream.try_read(&mut unread) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
}
