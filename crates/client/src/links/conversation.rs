//! One connection, from its welcome to its end.
//!
//! Owns: tags, which answer belongs to which request, and noticing that the other side has fallen silent. Never: makes
//! a connection.

use super::choice::Health;
use super::line::{Lines, TooLong};
use super::link::{CallError, Order, Reply, Standing};
use crate::connector::BoxedStream;
use crate::wire;
use kunci_api::native::{Outcome, Request};
use kunci_process::sleep_until;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::Instant;

/// While an answer is missing, this much silence is asked about.
const ASK_AFTER: Duration = Duration::from_secs(1);
/// On an idle connection, this much.
const ASK_IDLE_AFTER: Duration = Duration::from_secs(15);
/// Who doesn't answer that within this time is gone.
const GONE_AFTER: Duration = Duration::from_millis(1_500);
/// Requests without an answer on one connection: the protocol's limit.
const UNANSWERED_MAX: usize = 4_096;
/// Bytes that wait to be written; more requests are taken once they are.
const UNWRITTEN_BYTES_MAX: usize = 64 * 1024;
/// How much to read at once.
const READ_BYTES: usize = 16 * 1024;
/// The tag of hellos and pings, whose answers nobody waits for.
const OWN_TAG: u64 = 0;

/// Why a conversation ended.
#[derive(Debug)]
pub(super) enum End {
    /// What went wrong.
    Broken(Arc<str>),
    /// Nobody can ask for anything any more.
    Unwanted,
}

impl End {
    fn broken(why: impl Into<Arc<str>>) -> Self {
        Self::Broken(why.into())
    }
}

impl From<TooLong> for End {
    fn from(_: TooLong) -> Self {
        Self::broken("an answer longer than the protocol allows; check that the address is a native door")
    }
}

/// What a server says when it is greeted.
#[derive(Debug, Default)]
pub(super) struct Welcome {
    pub(super) cluster: Option<String>,
    pub(super) leader: Option<String>,
}

pub(super) struct Conversation {
    reader: ReadHalf<BoxedStream>,
    writer: WriteHalf<BoxedStream>,
    lines: Lines,
    unwritten: Vec<u8>,
    unanswered: BTreeMap<u64, Reply>,
    last_tag: u64,
    standing: Arc<Standing>,
    asked_at: Option<Instant>,
    opened_at: Instant,
    /// Since when an answer is missing.
    busy_since: Instant,
}

impl Conversation {
    /// Says hello and waits for the welcome.
    pub(super) async fn open(
        stream: BoxedStream,
        standing: Arc<Standing>,
    ) -> Result<(Self, Welcome), String> {
        let (reader, writer) = split(stream);
        let mut this = Self {
            reader,
            writer,
            lines: Lines::default(),
            unwritten: Vec::new(),
            unanswered: BTreeMap::new(),
            last_tag: OWN_TAG,
            standing,
            asked_at: None,
            opened_at: kunci_process::now(),
            busy_since: kunci_process::now(),
        };
        wire::write(wire::hello(), OWN_TAG, &mut this.unwritten);
        let hello = std::mem::take(&mut this.unwritten);
        this.writer.write_all(&hello).await.map_err(|error| error.to_string())?;
        let mut welcome = None;
        while welcome.is_none() {
            let count = this.reader.read_buf(this.lines.buffer()).await.map_err(|error| error.to_string())?;
            if count == 0 {
                return Err("closed before a welcome".to_owned());
            }
            let read = this.lines.take_all(|line| match wire::read(line) {
                Ok((_, Outcome::Welcome(said))) => {
                    welcome = Some(Welcome { cluster: said.cluster, leader: said.leader });
                    Ok(())
                }
                Ok((_, Outcome::Error(refused))) => Err(End::broken(wire::detail(&refused))),
                Ok(_) => Err(End::broken("another answer than a welcome")),
                Err(error) => Err(End::broken(error)),
            });
            if let Err(End::Broken(why)) = read {
                return Err(why.to_string());
            }
        }
        this.standing.heard_now();
        Ok((this, welcome.unwrap_or_default()))
    }

    /// Carries requests and answers until the connection ends; then every request without an answer is told.
    pub(super) async fn run(mut self, first: Option<Order>, orders: &mut mpsc::Receiver<Order>) -> End {
        if let Some(order) = first {
            self.take(order);
        }
        let end = self.talk(orders).await;
        if let End::Broken(why) = &end {
            for reply in std::mem::take(&mut self.unanswered).into_values() {
                // Whoever has stopped waiting doesn't want to know.
                let _ = reply.send(Err(CallError::NoAnswer(why.clone())));
            }
        }
        end
    }

    async fn talk(&mut self, orders: &mut mpsc::Receiver<Order>) -> End {
        let mut doubts = self.standing.doubts();
        let mut silence = pin!(sleep_until(self.silent_at()));
        loop {
            self.lines.buffer().reserve(READ_BYTES);
            let silent_at = self.silent_at();
            // One that rings too early is set anew then; setting it for each answer would cost more.
            if silent_at < silence.deadline() || silence.is_elapsed() {
                silence.as_mut().reset(silent_at);
            }
            let has_room = self.has_room();
            tokio::select! {
                biased;
                read = self.reader.read_buf(self.lines.buffer()) => match read {
                    Ok(0) => return End::broken("closed by the server"),
                    Ok(_) => if let Err(end) = self.answers() { return end },
                    Err(error) => return End::broken(error.to_string()),
                },
                written = self.writer.write(&self.unwritten), if !self.unwritten.is_empty() => match written {
                    Ok(0) => return End::broken("closed by the server"),
                    Ok(count) => drop(self.unwritten.drain(..count)),
                    Err(error) => return End::broken(error.to_string()),
                },
                order = orders.recv(), if has_room => match order {
                    None => return End::Unwanted,
                    Some(order) => {
                        // An answer wakes many callers at once: those who ask again right away go out in one write.
                        yield_now().await;
                        self.take_with(order, orders);
                    }
                },
                () = silence.as_mut() => if let Some(end) = self.silence() { return end },
                sent_at = doubted(&mut doubts) => if self.is_mute_since(sent_at) {
                    return End::broken("the server accepts and doesn't answer");
                },
            }
        }
    }

    fn has_room(&self) -> bool {
        self.unwritten.len() < UNWRITTEN_BYTES_MAX && self.unanswered.len() < UNANSWERED_MAX
    }

    /// Takes what else is there too, so that it goes out in one write.
    fn take_with(&mut self, order: Order, orders: &mut mpsc::Receiver<Order>) {
        self.take(order);
        while self.has_room()
            && let Ok(order) = orders.try_recv()
        {
            self.take(order);
        }
    }

    fn take(&mut self, order: Order) {
        // Nobody waits for it any more: a renewal of a released lease isn't sent after the release.
        if order.reply.is_closed() {
            return;
        }
        if self.unanswered.is_empty() {
            self.busy_since = kunci_process::now();
        }
        self.last_tag += 1;
        wire::write(order.request, self.last_tag, &mut self.unwritten);
        self.unanswered.insert(self.last_tag, order.reply);
    }

    fn answers(&mut self) -> Result<(), End> {
        self.standing.heard_now();
        self.asked_at = None;
        let unanswered = &mut self.unanswered;
        self.lines.take_all(|line| {
            match wire::read(line).map_err(End::broken)? {
                (Some(OWN_TAG), _) => {}
                (Some(tag), outcome) => {
                    if let Some(reply) = unanswered.remove(&tag) {
                        let _ = reply.send(Ok(outcome));
                    }
                }
                // It is about the connection as a whole, which is then closed.
                (None, Outcome::Error(refused)) => return Err(End::broken(wire::detail(&refused))),
                (None, _) => {}
            }
            Ok(())
        })
    }

    /// When silence has lasted long enough to do something about it.
    fn silent_at(&self) -> Instant {
        let is_idle = self.unanswered.is_empty() && self.unwritten.is_empty();
        match self.asked_at {
            Some(asked_at) => asked_at + GONE_AFTER,
            None if is_idle => self.standing.heard() + ASK_IDLE_AFTER,
            None => self.standing.heard().max(self.busy_since) + ASK_AFTER,
        }
    }

    fn silence(&mut self) -> Option<End> {
        if kunci_process::now() < self.silent_at() {
            return None;
        }
        if self.asked_at.is_some() {
            return Some(End::broken("the server has fallen silent"));
        }
        wire::write(Request::Ping, OWN_TAG, &mut self.unwritten);
        self.asked_at = Some(kunci_process::now());
        None
    }

    /// Whether nothing was heard since that instant, which must lie within this conversation.
    fn is_mute_since(&self, sent_at: Instant) -> bool {
        let is_mute = sent_at >= self.opened_at && self.standing.heard() <= sent_at;
        if !is_mute {
            self.standing.set(Health::Up);
        }
        is_mute
    }
}

/// Returns when somebody waited in vain for an answer to what was sent then.
async fn doubted(doubts: &mut watch::Receiver<Option<Instant>>) -> Instant {
    while doubts.changed().await.is_ok() {
        if let Some(sent_at) = *doubts.borrow_and_update() {
            return sent_at;
        }
    }
    // Nobody is left to doubt anything.
    std::future::pending().await
}
