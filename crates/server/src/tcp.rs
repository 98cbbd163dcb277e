//! What every front door knows about TCP: options of a connection, peers that are gone, accepting.
//!
//! Owns: when a silent peer counts as gone, and that running out of descriptors neither spins nor parks a door. Never: a
//! byte of a protocol.

use rustix::net::sockopt;
use std::io;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

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

/// Sets what every connection has: no delay, and an end for a peer that is gone without a word.
pub(crate) fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_TIMES)?;
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MS)?;
    Ok(())
}

/// Waits until the peer has closed its side, also while bytes that it sent before are unread.
///
/// Unread bytes hide the close from whoever waits to read, so this asks for urgent data, which nobody sends, and
/// which the runtime also reports as ready when the reading side is closed.
pub(crate) async fn closed_by_peer(stream: &TcpStream) {
    // An error ends the connection just as well.
    drop(stream.ready(Interest::PRIORITY).await);
}

/// A listener that gets over failing accepts.
pub(crate) struct Accepting {
    listener: TcpListener,
    /// What is accepted, for the log.
    what: &'static str,
    said: Option<Instant>,
    unsaid: u64,
}

impl Accepting {
    pub(crate) fn new(listener: TcpListener, what: &'static str) -> Self {
        Self { listener, what, said: None, unsaid: 0 }
    }

    /// The next connection. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return stream,
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
        let now = Instant::now();
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
    pub(crate) fn left_over(self) -> Vec<TcpStream> {
        let Ok(listener) = self.listener.into_std() else { return Vec::new() };
        // It doesn't block: `into_std` leaves it so.
        let streams = std::iter::from_fn(|| listener.accept().ok()).take(LEFT_OVER_MAX);
        let usable = streams.filter_map(|(stream, _)| {
            stream.set_nonblocking(true).ok()?;
            TcpStream::from_std(stream).ok()
        });
        usable.collect()
    }
}

/// Whether only the connection that was about to be taken is lost.
fn is_of_one_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
