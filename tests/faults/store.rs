//! A toy protected store: it keeps the largest token that it has seen, and compares and writes in one step.
//!
//! Owns: S9 in its smallest form. A line `write <token> <writer>` is answered by `ok`, or `refused <largest token>`. It
//! knows nothing of locks, leases or time; a token is all that it is shown.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// What was accepted, in order, and what was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    largest: u64,
    pub(crate) accepted: Vec<(u64, String)>,
    pub(crate) refused: Vec<(u64, String)>,
}

impl Journal {
    fn write(&mut self, token: u64, writer: &str) -> Result<(), u64> {
        if token < self.largest {
            self.refused.push((token, writer.to_owned()));
            return Err(self.largest);
        }
        self.largest = token;
        self.accepted.push((token, writer.to_owned()));
        Ok(())
    }
}

/// The store's door.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Journal>>);

impl Store {
    /// What has happened so far.
    pub(crate) fn journal(&self) -> Journal {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves until `end` is sent or dropped.
    pub(crate) async fn serve(self, at: SocketAddr, mut end: oneshot::Receiver<()>) {
        let door = TcpListener::bind(at).await.unwrap();
        loop {
            tokio::select! {
                accepted = door.accept() => {
                    let (peer, _) = accepted.unwrap();
                    let store = self.clone();
                    tokio::spawn(async move { store.talk(peer).await });
                }
                _ = &mut end => return,
            }
        }
    }

    async fn talk(self, peer: TcpStream) -> Option<()> {
        let (reading, mut writing) = peer.into_split();
        let mut lines = BufReader::new(reading).lines();
        while let Some(line) = lines.next_line().await.ok()? {
            let mut words = line.split(' ').skip(1);
            let (token, writer) = (words.next()?.parse().ok()?, words.next()?);
            let written = self.0.lock().unwrap_or_else(PoisonError::into_inner).write(token, writer);
            let answer = match written {
                Ok(()) => "ok\n".to_owned(),
                Err(largest) => format!("refused {largest}\n"),
            };
            writing.write_all(answer.as_bytes()).await.ok()?;
        }
        None
    }
}

/// One writer's connection to a store.
pub(crate) struct Writer {
    lines: tokio::io::Lines<BufReader<tokio::net::tcp::OwnedReadHalf>>,
    writing: tokio::net::tcp::OwnedWriteHalf,
}

impl Writer {
    pub(crate) async fn open(at: SocketAddr) -> Self {
        let (reading, writing) = TcpStream::connect(at).await.unwrap().into_split();
        Self { lines: BufReader::new(reading).lines(), writing }
    }

    /// Writes under a token; the error is the larger token that the store has seen.
    pub(crate) async fn write(&mut self, token: u64, writer: &str) -> Result<(), u64> {
        self.writing.write_all(format!("write {token} {writer}\n").as_bytes()).await.unwrap();
        let answer = self.lines.next_line().await.unwrap().expect("the store answers every line");
        match answer.strip_prefix("refused ") {
            Some(largest) => Err(largest.parse().unwrap()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S9: once token n was accepted nothing with a smaller one is; equal ones pass.
    #[test]
    fn a_smaller_token_than_the_largest_is_refused() {
        let mut journal = Journal::default();
        assert_eq!(journal.write(5, "a"), Ok(()));
        assert_eq!(journal.write(7, "b"), Ok(()));
        assert_eq!(journal.write(5, "a"), Err(7));
        assert_eq!(journal.write(7, "b"), Ok(()));
    }
}
