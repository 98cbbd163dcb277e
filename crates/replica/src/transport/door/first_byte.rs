//! A look at what a connection begins with.
//!
//! Owns: the first byte, until it is read again. Never: judges it.

use crate::transport::links::BoxedStream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// A stream whose first byte was looked at and will be read all the same.
pub(super) struct Looked {
    first: Option<u8>,
    stream: BoxedStream,
}

impl Looked {
    /// Waits for the first byte. `None` when there is none.
    pub(super) async fn at(mut stream: BoxedStream) -> io::Result<Option<(u8, Self)>> {
        let mut first = [0];
        let read = stream.read(&mut first).await?;
        Ok((read > 0).then(|| (first[0], Self { first: Some(first[0]), stream })))
    }

    /// The stream itself, if its first byte was read.
    pub(super) fn into_stream(self) -> BoxedStream {
        if self.first.is_some() { Box::new(self) } else { self.stream }
    }
}

impl AsyncRead for Looked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buffer.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Looked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
