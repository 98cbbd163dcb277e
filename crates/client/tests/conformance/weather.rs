//! What lies between a client and the nodes: it carries bytes, or doesn't.

use futures::future::BoxFuture;
use kunci_client::{BoxedStream, Connector};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, split};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// The weather of some clients. A clone is another handle to the same.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    /// Bytes are carried.
    open: Arc<watch::Sender<bool>>,
    /// Counts the times that every connection was cut.
    cuts: Arc<watch::Sender<u64>>,
}

impl Weather {
    pub(crate) fn fine() -> Self {
        Self { open: Arc::new(watch::Sender::new(true)), cuts: Arc::new(watch::Sender::new(0)) }
    }

    /// From now on nothing comes through, and nobody is told.
    pub(crate) fn silent(&self) {
        self.open.send_replace(false);
    }

    /// What was held back comes through, and everything else.
    pub(crate) fn back(&self) {
        self.open.send_replace(true);
    }

    /// Every connection breaks.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Connector for Weather {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async move {
            let node = TcpStream::connect(address).await?;
            node.set_nodelay(true)?;
            let (client, between) = tokio::io::duplex(64 * 1024);
            tokio::spawn(carry(between, node, self.clone()));
            Ok(Box::new(client) as BoxedStream)
        })
    }
}

async fn carry(client: DuplexStream, node: TcpStream, weather: Weather) {
    let mut cuts = weather.cuts.subscribe();
    let (client_read, client_write) = split(client);
    let (node_read, node_write) = node.into_split();
    tokio::select! {
        () = one_way(client_read, node_write, &weather) => {}
        () = one_way(node_read, client_write, &weather) => {}
        _ = cuts.changed() => {}
    }
}

async fn one_way(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, weather: &Weather) {
    let mut open = weather.open.subscribe();
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count) = from.read(&mut bytes).await {
        open.wait_for(|open| *open).await.unwrap();
        if count == 0 || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
