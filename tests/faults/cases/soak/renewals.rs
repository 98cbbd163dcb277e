//! How many renewals go over the wire, and how many there should be.
//!
//! Owns: counting, in each second, on the bytes that clients send. Never: changes a byte.

use crate::clock::now_us;
use kunci_client::{BoxedStream, Connector, TcpConnector};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    /// Renewals that were sent.
    pub(super) sent: u64,
    /// The most in one second.
    pub(super) peak: u64,
    /// Renewals that the time for which locks were held comes to, at a third of their TTL.
    pub(super) due: f64,
    second: u64,
    in_second: u64,
}

impl Count {
    /// Renewals keep to their schedule, also while nobody answers them: one at a third of the TTL; when that fails, one on
    /// each connection, and then a pause of a twentieth of the TTL. With one more at each beginning, `had` locks in all.
    pub(super) fn expect_no_storm(&self, had: u64, held_max: usize) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of some thousands"
        )]
        let allowed = (self.due * 1.5) as u64 + 2 * had + 1_000;
        assert!(self.sent <= allowed, "{} renewals were sent, {allowed} can be explained", self.sent);
        let allowed = 4 * held_max as u64 + 200;
        assert!(self.peak <= allowed, "{} in one second, for {held_max} locks at most", self.peak);
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>9}  renewals sent", self.sent)?;
        writeln!(f, "{:>9.0}  renewals due, had each been answered", self.due)?;
        write!(f, "{:>9}  renewals in one second, at most", self.peak)
    }
}

/// Counts for all clients. A clone is another handle to the same count.
#[derive(Clone, Debug, Default)]
pub(super) struct Renewals(Arc<Mutex<Count>>);

impl Renewals {
    /// A lock was held for this long.
    pub(super) fn was_held(&self, had: Duration, ttl: Duration) {
        self.0.lock().unwrap().due += had.as_secs_f64() / (ttl.as_secs_f64() / 3.0);
    }

    /// What was counted so far.
    pub(super) fn count(&self) -> Count {
        *self.0.lock().unwrap()
    }

    fn sent(&self, renewals: u64) {
        let mut count = self.0.lock().unwrap();
        let second = now_us() / 1_000_000;
        if second != count.second {
            (count.second, count.in_second) = (second, 0);
        }
        count.sent += renewals;
        count.in_second += renewals;
        count.peak = count.peak.max(count.in_second);
    }
}

impl Connector for Renewals {
    fn connect<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = io::Result<BoxedStream>> + Send + 'a>> {
        Box::pin(async move {
            let stream = TcpConnector.connect(address).await?;
            Ok(Box::new(Counted { stream, renewals: self.clone(), is_at_start: true }) as BoxedStream)
        })
    }
}

/// A connection whose lines are looked at.
struct Counted {
    stream: BoxedStream,
    renewals: Renewals,
    /// The next byte begins a line.
    is_at_start: bool,
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = written {
            let mut renewals = 0;
            for byte in &bytes[..count] {
                renewals += u64::from(self.is_at_start && *byte == b'N');
                self.is_at_start = *byte == b'\n';
            }
            if renewals > 0 {
                self.renewals.sent(renewals);
            }
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
