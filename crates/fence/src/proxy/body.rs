//! A body on its way from one connection to another.
//!
//! Owns: that one that wasn't finished is never taken for a whole one. Never: holds more than one piece.

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;
use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::UnsyncBoxBody;

/// A body that ends before its end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("cut off: {0}")]
pub(super) struct Cut(&'static str);

/// The near end of a body; dropped without [`Pieces::finish`] it breaks the far one.
pub(super) struct Pieces(Option<Sender<Bytes, Cut>>);

impl Pieces {
    /// Both ends.
    pub(super) fn new() -> (Self, UnsyncBoxBody<Bytes, Cut>) {
        let (sender, channel) = Channel::new(1);
        (Self(Some(sender)), channel.boxed_unsync())
    }

    /// Hands over the next piece; whether somebody still takes it.
    pub(super) async fn send(&mut self, frame: Frame<Bytes>) -> bool {
        match &mut self.0 {
            Some(sender) => sender.send(frame).await.is_ok(),
            None => false,
        }
    }

    /// That was all.
    pub(super) fn finish(mut self) {
        self.0 = None;
    }

    /// There is more, and it doesn't come.
    pub(super) fn cut(mut self, why: &'static str) {
        if let Some(sender) = self.0.take() {
            sender.abort(Cut(why));
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            sender.abort(Cut("it was given up"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Behind a chunked body's last piece comes its end mark: half an order must not look like an order.
    #[tokio::test]
    async fn only_a_body_that_was_finished_is_whole() {
        let ends: [(fn(Pieces), bool); 3] =
            [(Pieces::finish, true), (drop, false), (|pieces| pieces.cut("the client has gone"), false)];
        for (end, is_whole) in ends {
            let (mut pieces, body) = Pieces::new();
            let sending = async {
                assert!(pieces.send(Frame::data(Bytes::from_static(b"half"))).await);
                end(pieces);
            };
            let (received, ()) = tokio::join!(body.collect(), sending);
            assert_eq!(received.is_ok(), is_whole);
        }
    }
}
