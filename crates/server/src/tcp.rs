//! What every front door knows about TCP: options of a connection, peers that are gone, accepting.
//!
//! Owns: when a silent peer counts as gone, and that running out of descriptors neither spins nor parks a door. Never: a
//! byte of a protocol.

use crate::streams::{ClientStream, Listener};
use kunci_process::sleep;
use rustix::net::{Shutdown, shutdown, sockopt};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// A silent peer is asked after this time whether it is there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(10);
/// And again in this rhythm.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(3);
/// And is given up after so many times without an answer: 19 s in all.
const KEEPALIVE_TIMES: u32 = 3;
/// What was sent and not acknowledged for so long was sent to nobody. Linux judges probes by this too, when it sends the next
/// one, and not by their count: a little less than the 19 s, or it would be 22.
const UNACKNOWLEDGED_MS: u32 = 18_000;

/// From one failed accept to the next try: descriptors come back as connections end.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// From one word in the log about failing accepts to the next.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// Connections that a stop still takes: as many as a listener keeps waiting.
const LEFT_OVER_MAX: usize = 1_024;

impl ClientStream for TcpStream {
    fn prepare(&self) -> io::Result<()> {
        self.set_nodelay(true)?;
        sockopt::set_socket_keepalive(self, true)?;
        sockopt::set_tcp_keepidle(self, KEEPALIVE_AFTER)?;
        sockopt::set_tcp_keepintvl(self, KEEPALIVE_EVERY)?;
        sockopt::set_tcp_keepcnt(self, KEEPALIVE_TIMES)?;
        sockopt::set_tcp_user_timeout(self, UNACKNOWLEDGED_MS)?;
        Ok(())
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.peer_addr().ok()
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(cx)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_ready(cx)
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        Self::try_read(self, bytes)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        Self::try_write(self, bytes)
    }

    fn try_write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        Self::try_write_vectored(self, bytes)
    }

    fn end_writing(&self) -> io::Result<()> {
        Ok(shutdown(self, Shutdown::Write)?)
    }

    /// Unread bytes hide the close from whoever waits to read, so this asks for urgent data, which nobody sends, and
    /// which the runtime also reports as ready when the reading side is closed.
    async fn closed_by_peer(&self) {
        // An error ends the connection just as well.
        drop(self.ready(Interest::PRIORITY).await);
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        Ok(stream)
    }

    fn left_over(self) -> Vec<TcpStream> {
        let Ok(listener) = self.into_std() else { return Vec::new() };
        // It doesn't block: `into_std` leaves it so.
        let streams = std::iter::from_fn(|| listener.accept().ok()).take(LEFT_OVER_MAX);
        let usable = streams.filter_map(|(stream, _)| {
            stream.set_nonblocking(true).ok()?;
            TcpStream::from_std(stream).ok()
        });
        usable.collect()
    }
}

/// A listener that gets over failing accepts.
pub(crate) struct Accepting<L> {
    listener: L,
    /// What is accepted, for the log.
    what: &'static str,
    said: Option<Instant>,
    unsaid: u64,
}

impl<L: Listener> Accepting<L> {
    pub(crate) fn new(listener: L, what: &'static str) -> Self {
        Self { listener, what, said: None, unsaid: 0 }
    }

    /// The next connection. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> L::Stream {
        loop {
            match self.listener.accept().await {
                Ok(stream) => return stream,
                Err(error) => {
                    self.failed(&error);
                    if !is_of_one_peer(&error) {
                        sleep(AGAIN_AFTER).await;
                    }
                }
            }
        }
    }

    fn failed(&mut self, error: &io::Error) {
        self.unsaid += 1;
        let now = kunci_process::now();
        if self.said.is_none_or(|said| now.duration_since(said) >= SAY_EVERY) {
            tracing::error!(
                %error,
                times = self.unsaid,
                "can't take {} connections; raise the limit of open files if it says so",
                self.what
            );
            (self.said, self.unsaid) = (Some(now), 0);
        }
    }

    /// Closes the listener, and gives those that were connected and not taken yet: they would be reset with it.
    pub(crate) fn left_over(self) -> Vec<L::Stream> {
        self.listener.left_over()
    }
}

/// Whether only the connection that was about to be taken is lost.
fn is_of_one_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
