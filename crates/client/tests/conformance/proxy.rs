//! What stands between the clients and a node: it carries bytes, or doesn't.

use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The weather of all proxies.
#[derive(Clone)]
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

    pub(crate) fn silent(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn back(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

/// Carries what comes to `listener` to the node.
pub(crate) async fn run(listener: TcpListener, node: SocketAddr, weather: Weather) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(carry(client, node, weather.clone()));
    }
}

async fn carry(client: TcpStream, node: SocketAddr, weather: Weather) {
    let mut cuts = weather.cuts.subscribe();
    let both = async {
        weather.open.subscribe().wait_for(|open| *open).await.unwrap();
        let Ok(server) = TcpStream::connect(node).await else { return };
        let (client_read, client_write) = client.into_split();
        let (server_read, server_write) = server.into_split();
        tokio::select! {
            () = one_way(client_read, server_write, &weather) => {}
            () = one_way(server_read, client_write, &weather) => {}
        }
    };
    tokio::select! {
        () = both => {}
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
