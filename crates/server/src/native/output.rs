//! Answers on their way into the socket.
//!
//! Owns: how much of them is kept for a peer that reads slowly, and the moment from which a grant counts as handed out.
//! Never: waits.

use crate::service::OpenCall;
use crate::streams::ClientStream;
use kunci_api::native::Answer;
use std::collections::VecDeque;
use std::io;
use tokio::time::Instant;

/// From this many bytes that went out on, they are dropped from what is kept, though more is to come.
const SENT_BYTES_MAX: usize = 64 << 10;

/// What a connection's peer is told and hasn't taken yet.
#[derive(Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    sent: usize,
    /// Each grant with the end of its line, counted in all bytes of the connection's life.
    grants: VecDeque<(u64, OpenCall)>,
    /// Bytes that went out and were dropped.
    before: u64,
    /// Since when the peer takes nothing.
    blocked: Option<Instant>,
}

impl Output {
    /// Appends an answer. A grant comes with its call, which is delivered once the whole line is in the socket; if the
    /// connection ends before, the call is dropped and so the grant abandoned.
    pub(super) fn push(&mut self, answer: &Answer, grant: Option<OpenCall>) {
        answer.write(&mut self.bytes);
        if let Some(call) = grant {
            self.grants.push_back((self.before + self.bytes.len() as u64, call));
        }
    }

    /// How many bytes wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Since when the peer takes nothing though something waits.
    pub(super) fn blocked_since(&self) -> Option<Instant> {
        self.blocked
    }

    /// Writes as much as the socket takes; says how many bytes that was.
    pub(super) fn flush(&mut self, stream: &impl ClientStream) -> io::Result<u64> {
        let mut written = 0;
        while self.len() > 0 {
            match stream.try_write(self.bytes.get(self.sent..).unwrap_or_default()) {
                Ok(count) => {
                    written += count as u64;
                    self.went_out(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked.get_or_insert_with(kunci_process::now);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if self.len() == 0 || self.sent > SENT_BYTES_MAX {
            self.before += self.sent as u64;
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        Ok(written)
    }

    /// Keeps no memory for a connection on which nothing is under way.
    pub(super) fn give_back(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > 0 {
            (self.bytes, self.grants) = (Vec::new(), VecDeque::new());
        }
    }

    fn went_out(&mut self, count: usize) {
        self.blocked = None;
        self.sent += count;
        let sent = self.before + self.sent as u64;
        while let Some((end, call)) = self.grants.pop_front() {
            if end > sent {
                self.grants.push_front((end, call));
                break;
            }
            call.delivered();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{AcquireAnswer, Service, Stamped};
    use kunci_api::native::{At, Op, Subject};
    use kunci_api::{parse, resource};
    use kunci_replica::{Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig};
    use std::time::Duration;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::sleep;

    async fn granted(service: &Service, name: &str) -> (Answer, Option<OpenCall>) {
        let asked = parse::<kunci_api::AcquireRequest>(br#"{"clientId":"a"}"#).unwrap().read().unwrap();
        let mut call = service
            .acquire(resource(name).unwrap(), asked, None, kunci_types::Origin::UNKNOWN)
            .await
            .unwrap();
        let Stamped { body, .. } = call.answer(Duration::from_secs(5)).await.unwrap();
        let AcquireAnswer::Granted(body) = body else { panic!("not granted") };
        let subject = Some(Subject { op: Op::Acquire, key: Some(resource(name).unwrap()) });
        (Answer { subject, outcome: body.into(), at: At::default(), tag: None }, Some(call))
    }

    /// Section 3: a grant is never taken back once its answer was handed out, and abandoned after the waiter grace
    /// when it was not.
    #[tokio::test]
    async fn a_grant_counts_as_handed_out_from_the_moment_its_line_is_in_the_socket() {
        let data = tempfile::tempdir().unwrap();
        let peers = PeerDoor::bind(([127, 0, 0, 1], 0).into(), PeerSecurity::Plain).await.unwrap();
        let config = ReplicaConfig::new(data.path(), Member::default());
        let replica = Replica::form(config, peers, None).await.unwrap();
        assert!(replica.serving(Duration::from_secs(5)).await);
        let service = Service::new(replica.clone());
        let change = parse(br#"{"replaces":0,"policy":{"waiterGraceMs":200}}"#).unwrap();
        service.change_policy(&change, kunci_types::Origin::UNKNOWN).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        socket.writable().await.unwrap();

        let mut output = Output::default();
        let (answer, call) = granted(&service, "handed-out").await;
        output.push(&answer, call);
        output.flush(&socket).unwrap();
        assert_eq!((output.len(), output.grants.len()), (0, 0));
        // Nobody reads, so the last line of this many doesn't fit.
        let (answer, _) = granted(&service, "fills-the-socket").await;
        while output.blocked_since().is_none() {
            output.push(&answer, None);
            output.flush(&socket).unwrap();
        }
        let (answer, call) = granted(&service, "kept").await;
        output.push(&answer, call);
        output.flush(&socket).unwrap();
        assert_eq!(output.grants.len(), 1);
        drop(output);

        for _ in 0..200 {
            if !service.status(resource("kept").unwrap()).await.unwrap().body.status.held {
                break;
            }
            sleep(Duration::from_millis(25)).await;
        }
        let history = service.history(resource("kept").unwrap()).await.unwrap().body.events;
        assert_eq!(history.last().unwrap().kind, "abandoned");
        assert!(service.status(resource("handed-out").unwrap()).await.unwrap().body.status.held);
        replica.stop().await;
    }
}
