//! How byte streams to a server come about.
//!
//! Owns: the seam through which a simulator brings its own network, and TCP. Never: looks into the bytes.

use futures::future::BoxFuture;
use std::fmt;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes both ways.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Any kind of byte stream.
pub type BoxedStream = Box<dyn ByteStream>;

/// Makes connections. The client bounds how long one may take.
pub trait Connector: fmt::Debug + Send + Sync + 'static {
    /// Connects to `address`, a `host:port`.
    ///
    /// # Errors
    /// As the network says.
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>>;
}

/// Plain TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnector;

impl Connector for TcpConnector {
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            // Requests are written whole, so there is nothing to be gained by holding one back.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxedStream)
        })
    }
}
