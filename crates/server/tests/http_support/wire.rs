//! A peer door over loopback whose wire can be cut: then nothing comes through any more, and nobody is told.

use futures::future::BoxFuture;
use kunci_replica::transport::{Arrival, Doorway, Links, TcpLinks};
use kunci_replica::{BoxedStream, PeerDoor, PeerSecurity};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;

/// All of one node's connections to and from its peers.
#[derive(Clone, Default)]
pub(crate) struct Wire(Arc<AtomicBool>);

impl Wire {
    /// A peer door on this wire, and where it is.
    pub(crate) async fn door(&self) -> (PeerDoor, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let doorway = Box::new(On { what: listener, wire: self.clone() });
        let links = Arc::new(On { what: TcpLinks::default(), wire: self.clone() });
        (PeerDoor::new(doorway, links, PeerSecurity::Plain), address)
    }

    pub(crate) fn cut(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_cut(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct On<T> {
    what: T,
    wire: Wire,
}

impl Links for On<TcpLinks> {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async move {
            if self.wire.is_cut() {
                std::future::pending::<()>().await;
            }
            let what = self.what.connect(address).await?;
            Ok(Box::new(On { what, wire: self.wire.clone() }) as BoxedStream)
        })
    }
}

impl Doorway for On<TcpListener> {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Arrival>> {
        Box::pin(async move {
            let Arrival { stream, from } = Doorway::accept(&mut self.what).await?;
            Ok(Arrival { stream: Box::new(On { what: stream, wire: self.wire.clone() }), from })
        })
    }
}

impl AsyncRead for On<BoxedStream> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.wire.is_cut() {
            return Poll::Pending;
        }
        Pin::new(&mut self.what).poll_read(cx, buf)
    }
}

impl AsyncWrite for On<BoxedStream> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.wire.is_cut() {
            return Poll::Ready(Ok(buf.len()));
        }
        Pin::new(&mut self.what).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.what).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.wire.is_cut() {
            return Poll::Pending;
        }
        Pin::new(&mut self.what).poll_shutdown(cx)
    }
}
