//! Places for connections, of which there are so many.
//!
//! Owns: the count of connections whose handshake is over, and their end when the door closes. Never: knows what
//! they are for.

use crate::transport::links::BoxedStream;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The most connections in all: a handful of each member, with much room.
pub(super) const PLACES_MAX: usize = 256;
/// The most connections of one node: one that keeps forgetting its own must not take the places of all.
pub(super) const PLACES_OF_ONE_MAX: usize = 64;

/// The places. A clone is another handle to the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    taken: Arc<Mutex<BTreeMap<u64, usize>>>,
}

impl Places {
    /// Takes a place for a connection of node `from`.
    ///
    /// # Errors
    /// Says which limit is reached.
    pub(super) fn take(&self, from: u64) -> Result<Taken, String> {
        let mut taken = self.taken();
        if taken.get(&from).is_some_and(|of_one| *of_one >= PLACES_OF_ONE_MAX) {
            return Err(format!("node {from} has {PLACES_OF_ONE_MAX} connections here already"));
        }
        if taken.values().sum::<usize>() >= PLACES_MAX {
            return Err(format!("{PLACES_MAX} connections of nodes are open here already"));
        }
        *taken.entry(from).or_default() += 1;
        Ok(Taken { places: self.clone(), from })
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    places: Places,
    from: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        if let Some(of_one) = taken.get_mut(&self.from) {
            *of_one -= 1;
            if *of_one == 0 {
                taken.remove(&self.from);
            }
        }
    }
}

/// A stream that has a place, and breaks once the door is closed.
pub(super) struct Held {
    stream: BoxedStream,
    closed: CancellationToken,
    // One for each half of the stream: each has a task of its own to wake.
    closed_for_reading: Pin<Box<WaitForCancellationFutureOwned>>,
    closed_for_writing: Pin<Box<WaitForCancellationFutureOwned>>,
    _place: Taken,
}

impl Held {
    pub(super) fn new(stream: BoxedStream, closed: &CancellationToken, place: Taken) -> Self {
        Self {
            stream,
            closed: closed.clone(),
            closed_for_reading: Box::pin(closed.clone().cancelled_owned()),
            closed_for_writing: Box::pin(closed.clone().cancelled_owned()),
            _place: place,
        }
    }

    fn poll_writing<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut BoxedStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.closed.is_cancelled() {
            return Poll::Ready(Err(is_closed()));
        }
        let polled = poll(Pin::new(&mut self.stream), context);
        if polled.is_pending() && self.closed_for_writing.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(is_closed()));
        }
        polled
    }
}

impl AsyncRead for Held {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.closed.is_cancelled() {
            return Poll::Ready(Err(is_closed()));
        }
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_pending() && self.closed_for_reading.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(is_closed()));
        }
        polled
    }
}

impl AsyncWrite for Held {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_writing(context, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_writing(context, AsyncWrite::poll_shutdown)
    }
}

fn is_closed() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "this node's peer door is closed")
}
