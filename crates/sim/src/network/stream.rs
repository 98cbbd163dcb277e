//! One end of a connection, as the product's code sees it.
//!
//! Owns: who waits for what. Never: holds a byte.

use super::Shared;
use super::connection::Side;
use super::state::Key;
use kunci_server::ClientStream;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One end of a connection.
pub struct SimStream {
    shared: Arc<Shared>,
    key: Key,
    side: Side,
}

/// What somebody waits for.
#[derive(Clone, Copy)]
enum Wanted {
    Bytes,
    Room,
}

impl SimStream {
    pub(super) const fn new(shared: Arc<Shared>, key: Key, side: Side) -> Self {
        Self { shared, key, side }
    }

    /// Does something that may have to wait, for whoever has `cx`.
    fn poll_with<R>(
        &self,
        cx: &mut Context<'_>,
        wanted: Wanted,
        work: impl FnOnce(&mut super::state::State) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.shared.with(|state| match work(state) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if let Some(connection) = state.connections.get_mut(&self.key) {
                    let end = connection.end_mut(self.side);
                    let place = match wanted {
                        Wanted::Bytes => &mut end.reader,
                        Wanted::Room => &mut end.writer,
                    };
                    register(place, cx);
                }
                Poll::Pending
            }
            done => Poll::Ready(done),
        })
    }
}

fn register(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *place = Some(cx.waker().clone()),
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.shared.with(|state| state.drop_end(self.key, self.side));
    }
}

impl AsyncRead for SimStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (key, side) = (self.key, self.side);
        let read =
            self.poll_with(cx, Wanted::Bytes, |state| state.read(key, side, buf.initialize_unfilled()));
        read.map_ok(|count| buf.advance(count))
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let (key, side) = (self.key, self.side);
        self.poll_with(cx, Wanted::Room, |state| state.write(key, side, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Who is gone already needn't be told.
        drop(self.end_writing());
        Poll::Ready(Ok(()))
    }
}

impl ClientStream for SimStream {
    fn prepare(&self) -> io::Result<()> {
        Ok(())
    }

    /// A client's place in a world is its connection; one address for each few tells as much.
    fn peer_address(&self) -> Option<SocketAddr> {
        let last = u8::try_from(self.key % 250).unwrap_or_default();
        Some(SocketAddr::from(([10, 0, 0, last], 1)))
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, Wanted::Bytes, |state| state.is_readable(self.key, self.side))
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, Wanted::Room, |state| state.is_writable(self.key, self.side))
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.shared.with(|state| state.read(self.key, self.side, bytes))
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.shared.with(|state| state.write(self.key, self.side, bytes))
    }

    fn try_write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let first = bytes.iter().find(|bytes| !bytes.is_empty());
        self.try_write(first.map_or(&[], |bytes| bytes))
    }

    fn end_writing(&self) -> io::Result<()> {
        self.shared.with(|state| state.end_writing(self.key, self.side))
    }

    async fn closed_by_peer(&self) {
        poll_fn(|cx| {
            self.shared.with(|state| {
                let Some(connection) = state.connections.get_mut(&self.key) else { return Poll::Ready(()) };
                let end = connection.end_mut(self.side);
                if end.is_at_end || end.broken.is_some() {
                    return Poll::Ready(());
                }
                register(&mut end.watcher, cx);
                Poll::Pending
            })
        })
        .await;
    }
}

impl std::fmt::Debug for SimStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of connection {}", self.side, self.key)
    }
}
