//! Why a connection came to nothing.
//!
//! Owns: the words, for the log here and for the peer. Never: more of them than fit into one message.

use crate::transport::handshake::{self, Answer, Refusal, RefusalCode, Unreadable};
use crate::transport::links::BoxedStream;
use std::fmt;
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Why a connection came to nothing.
pub(super) enum Trouble {
    Refused(Refusal),
    Unreadable(Unreadable),
    Tls(String),
    Broken(io::Error),
}

impl Trouble {
    /// A word for each kind, of which one is said in a while.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code().word(),
            Self::Unreadable(_) => "unreadable",
            Self::Tls(_) => "tls",
            Self::Broken(_) => "broken",
        }
    }

    /// Whether it belongs to the way a node joins: the leader calls it from the moment that it is a member, which is
    /// a little before the node itself knows.
    pub(super) fn is_of_joining(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.code() == RefusalCode::NoCluster)
    }

    /// Tells the peer, if it can read that.
    pub(super) async fn tell(&self, mut stream: BoxedStream) -> io::Result<()> {
        let refusal = match self {
            Self::Refused(refusal) => refusal.clone(),
            // To TLS these are bytes of something else, which is what it needs to know.
            Self::Unreadable(Unreadable::Tls) => Refusal::new(RefusalCode::Certificate, self.to_string()),
            Self::Unreadable(Unreadable::TooLong(_) | Unreadable::Damaged | Unreadable::Content(_)) => {
                Refusal::new(RefusalCode::Other, self.to_string())
            }
            Self::Unreadable(Unreadable::Ended(_) | Unreadable::Foreign(_)) | Self::Broken(_) => {
                return Ok(());
            }
            // TLS has said it itself.
            Self::Tls(_) => return end(stream).await,
        };
        handshake::write(&mut stream, &Answer::Refused(refusal)).await?;
        end(stream).await
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => f.write_str(&refusal.text()),
            Self::Unreadable(Unreadable::Tls) => f.write_str(
                "it talks TLS and the peer door of this node doesn't: give this node --peer-ca, --peer-cert and \
                 --peer-key too",
            ),
            Self::Unreadable(unreadable) => write!(f, "{unreadable}"),
            Self::Tls(text) => f.write_str(text),
            Self::Broken(error) => write!(f, "{error}"),
        }
    }
}

/// Says that nothing follows, and reads what the peer sends until it has read that: closing over unread bytes may
/// take the last words away from it. The caller bounds the time.
pub(super) async fn end(mut stream: BoxedStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = [0; 4096];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}
