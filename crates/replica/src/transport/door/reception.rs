//! The handshake from the side that is called.
//!
//! Owns: its steps and their time. Never: takes longer than that, for whomever.

use super::first_byte::Looked;
use super::host::{Host, LetIn, Way};
use super::said::Said;
use super::trouble::Trouble;
use crate::transport::handshake::{self, Answer, Hello, Refusal, RefusalCode, Unreadable, Welcome};
use crate::transport::links::{Arrival, BoxedStream};
use crate::transport::tls::{PeerSecurity, Shown};
use kunci_process::timeout;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// From the first packet to the answer.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(1);
/// How long one that wasn't let in has to read why.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// Whose door it is, and what it takes to be let in.
pub(super) struct Reception {
    pub(super) security: PeerSecurity,
    pub(super) host: Host,
    pub(super) said: Said,
}

/// A connection that came to nothing, with its stream while the peer can be told.
struct Failed {
    trouble: Trouble,
    stream: Option<BoxedStream>,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self { trouble: Trouble::Broken(error), stream: None }
    }
}

impl Reception {
    /// Receives one connection, to the end of its handshake. Notes when the peer says something.
    pub(super) async fn receive(self: Arc<Self>, arrival: Arrival, has_spoken: Arc<AtomicBool>) {
        let Arrival { stream, from } = arrival;
        match timeout(HANDSHAKE_WITHIN, self.shake(stream, &has_spoken)).await {
            Ok(Ok(())) => {}
            Ok(Err(Failed { trouble, stream })) => {
                if !trouble.is_of_joining() {
                    self.said.say(trouble.kind(), &from, &trouble);
                }
                if let Some(stream) = stream {
                    drop(timeout(READ_WITHIN, trouble.tell(stream)).await);
                }
            }
            Err(_) if has_spoken.load(Ordering::Relaxed) => {
                self.said.say("slow", &from, &"its handshake took too long");
            }
            // Whoever only looks whether the port is open isn't worth a word.
            Err(_) => {}
        }
    }

    async fn shake(&self, stream: BoxedStream, has_spoken: &AtomicBool) -> Result<(), Failed> {
        let Some((first, mut looked)) = Looked::at(stream).await? else {
            return Ok(());
        };
        has_spoken.store(true, Ordering::Relaxed);
        match &self.security {
            PeerSecurity::Plain => {
                let hello = handshake::read(&mut looked).await;
                self.answer(looked.into_stream(), hello, None).await
            }
            PeerSecurity::Tls(_) if handshake::begins_plain(first) => {
                let text = "the peer door of this node takes TLS only: give the calling node --peer-ca, --peer-cert \
                            and --peer-key too";
                let trouble = Trouble::Refused(Refusal::new(RefusalCode::Certificate, text));
                Err(Failed { trouble, stream: Some(Box::new(looked)) })
            }
            PeerSecurity::Tls(tls) => {
                let (mut stream, shown) = tls.accept(Box::new(looked)).await.map_err(|(error, stream)| {
                    let trouble = tls.explain_as_called(&error).map_or(Trouble::Broken(error), Trouble::Tls);
                    Failed { trouble, stream: Some(stream) }
                })?;
                let hello = handshake::read(&mut stream).await;
                self.answer(stream, hello, Some(&shown)).await
            }
        }
    }

    async fn answer(
        &self,
        mut stream: BoxedStream,
        hello: Result<Hello, Unreadable>,
        shown: Option<&Shown>,
    ) -> Result<(), Failed> {
        let answered = match hello {
            Ok(hello) => self.welcome(&mut stream, &hello, shown).await,
            Err(unreadable) => Err(Trouble::Unreadable(unreadable)),
        };
        match answered {
            Ok(None) => Ok(()),
            Ok(Some(let_in)) => {
                let_in.go(stream);
                Ok(())
            }
            Err(trouble) => Err(Failed { trouble, stream: Some(stream) }),
        }
    }

    /// Says welcome to whom it may; gives those who want more than that what they need for it.
    async fn welcome(
        &self,
        stream: &mut BoxedStream,
        hello: &Hello,
        shown: Option<&Shown>,
    ) -> Result<Option<LetIn<'_>>, Trouble> {
        let caller = hello.caller;
        let (version, way) = self.host.way(hello, shown).map_err(Trouble::Refused)?;
        match way {
            Way::Through(node, purpose) => {
                let let_in = node.let_in(caller.node_id, purpose).await.map_err(Trouble::Refused)?;
                let welcome = Welcome { version, place: Some(node.me.into()), member: None };
                handshake::write(stream, &Answer::Welcome(welcome)).await.map_err(Trouble::Broken)?;
                Ok(Some(let_in))
            }
            Way::AtTheDoor => {
                let (place, member) = self.host.card();
                let welcome = Welcome { version, place, member: Some(member) };
                handshake::write(stream, &Answer::Welcome(welcome)).await.map_err(Trouble::Broken)?;
                match handshake::read(stream).await {
                    Ok(invitation) => {
                        self.host.invited(caller, invitation).map(Some).map_err(Trouble::Refused)
                    }
                    // It only wanted to know who is here.
                    Err(Unreadable::Ended(_)) => Ok(None),
                    Err(unreadable) => Err(Trouble::Unreadable(unreadable)),
                }
            }
        }
    }
}
