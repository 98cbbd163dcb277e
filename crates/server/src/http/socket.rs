//! A peer's connection with its patience: a read or write that takes too long is an error.
//!
//! Owns: the times of a connection: its first byte, the head of a request, idleness, an unread answer. Never: the
//! time of a body (the handler reads it) or of an answer that is waited for.

use super::front::Front;
use crate::metrics::DoorMeasures;
use crate::streams::ClientStream;
use futures::task::AtomicWaker;
use kunci_process::{Sleep, sleep};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

/// What a connection does: it is idle, a head is on its way, or a request is being served.
#[derive(Debug)]
pub(super) struct Phase {
    now: AtomicU8,
    /// The connection, to be asked again when its request ends: only then its idle time begins.
    connection: AtomicWaker,
}

impl Phase {
    /// A new connection is expected to send a head at once.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { now: AtomicU8::new(HEAD), connection: AtomicWaker::new() })
    }

    /// A whole head has come.
    pub(super) fn begin_request(&self) {
        self.now.store(BUSY, Ordering::Relaxed);
    }

    /// The answer was handed over.
    pub(super) fn end_request(&self) {
        self.now.store(IDLE, Ordering::Relaxed);
        self.connection.wake();
    }
}

/// A connection with its patience.
pub(super) struct Socket<S> {
    stream: Arc<S>,
    phase: Arc<Phase>,
    head_within: Duration,
    idle_within: Duration,
    write_within: Duration,
    /// The phase that is timed, and its end.
    read_end: Option<(u8, Pin<Box<Sleep>>)>,
    write_end: Option<Pin<Box<Sleep>>>,
    measures: Arc<DoorMeasures>,
}

impl<S: ClientStream> Socket<S> {
    pub(super) fn new(stream: Arc<S>, phase: Arc<Phase>, front: &Front) -> Self {
        let limits = &front.limits;
        Self {
            stream,
            phase,
            head_within: limits.head_within,
            idle_within: limits.idle_within,
            write_within: limits.write_within,
            read_end: None,
            write_end: None,
            measures: Arc::clone(&front.measures),
        }
    }

    fn bytes_came(&mut self) {
        // Only the first byte of a head begins its time: a byte now and then must not prolong it.
        let began = self.phase.now.compare_exchange(IDLE, HEAD, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if began {
            self.read_end = None;
        }
    }

    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let phase = self.phase.now.load(Ordering::Relaxed);
        let within = match phase {
            BUSY => {
                self.read_end = None;
                self.phase.connection.register(cx.waker());
                return Poll::Pending;
            }
            HEAD => self.head_within,
            _ => self.idle_within,
        };
        if self.read_end.as_ref().is_none_or(|(timed, _)| *timed != phase) {
            self.read_end = Some((phase, Box::pin(sleep(within))));
        }
        if let Some((_, end)) = &mut self.read_end {
            ready!(end.as_mut().poll(cx));
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no whole request in time")))
    }

    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&S) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        while self.stream.poll_writable(cx)?.is_ready() {
            match write(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => {
                    self.write_end = None;
                    self.measures.sent.add(written.as_ref().map_or(0, |count| *count as u64));
                    return Poll::Ready(written);
                }
            }
        }
        let within = self.write_within;
        let end = self.write_end.get_or_insert_with(|| Box::pin(sleep(within)));
        ready!(end.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer doesn't read its answer")))
    }
}

impl<S: ClientStream> AsyncRead for Socket<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.stream.poll_readable(cx)?.is_ready() {
            match this.stream.try_read(buf.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(count) => {
                    buf.advance(count);
                    this.measures.received.add(count as u64);
                    this.bytes_came();
                    return Poll::Ready(Ok(()));
                }
            }
        }
        this.poll_patience(cx)
    }
}

impl<S: ClientStream> AsyncWrite for Socket<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.stream.end_writing() {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            Ok(()) | Err(_) => Poll::Ready(Ok(())),
        }
    }
}
