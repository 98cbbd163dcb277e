//! Held locks that are renewed, while others are acquired and released: a third of each.

use super::{Player, noted};
use crate::book::{Book, Kind};
use crate::caller::{Caller, Failed, Held};
use futures::future::ready;
use futures::stream::{self, StreamExt as _};
use kunci_client::{Moment, ResourceName};
use std::collections::VecDeque;
use std::pin::pin;
use tokio_util::sync::CancellationToken;

/// Requests that one client has under way while locks are taken at first and given back at last.
const AT_ONCE: usize = 32;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Acquire,
    Renew,
    Release,
}

/// Holds its share of the locks, the one that was acquired or renewed last at the back. Renewals and releases take the
/// front in turn, so each lock is renewed once in its life, and none is left alone for longer than half a round.
pub(crate) struct Mix {
    caller: Caller,
    number: u32,
    share: usize,
    held: VecDeque<Held>,
    next: Step,
    /// Names that were used.
    named: u64,
}

impl Mix {
    /// Client `number`, which holds `share` locks.
    pub(crate) fn new(caller: Caller, number: u32, share: usize) -> Self {
        // Not all begin with the same: the proportions shall hold at any time.
        let next = [Step::Acquire, Step::Renew, Step::Release][number as usize % 3];
        Self { caller, number, share, held: VecDeque::with_capacity(share + 1), next, named: 0 }
    }

    fn fresh_key(&mut self) -> Result<ResourceName, Failed> {
        self.named += 1;
        self.caller.key(format_args!("{}/{}", self.number, self.named))
    }

    /// What to do now. A lock that was lost is made up for.
    fn step(&mut self) -> Step {
        let next = self.next;
        self.next = match next {
            Step::Acquire => Step::Renew,
            Step::Renew => Step::Release,
            Step::Release => Step::Acquire,
        };
        match next {
            Step::Renew | Step::Release if self.held.is_empty() => Step::Acquire,
            Step::Release if self.held.len() < self.share => Step::Acquire,
            next => next,
        }
    }
}

impl Player for Mix {
    async fn prepare(&mut self) -> Result<(), Failed> {
        let keys: Vec<_> = (0..self.share).map(|_| self.fresh_key()).collect::<Result<_, _>>()?;
        let caller = &self.caller;
        // What is under way is waited for: dropped, it could leave a lock behind.
        let enough = caller.common.stop.child_token();
        let wanted = stream::iter(keys).take_while(|_| ready(!enough.is_cancelled()));
        let taking = wanted.map(|key| {
            let caller = caller.clone();
            async move { caller.acquire_free(&key).await }
        });
        let mut taking = pin!(taking.buffered(AT_ONCE));
        let mut prepared = Ok(());
        while let Some(taken) = taking.next().await {
            match taken {
                Ok(held) => self.held.push_back(held),
                Err(failed) => {
                    enough.cancel();
                    prepared = prepared.and(Err(failed));
                }
            }
        }
        prepared
    }

    async fn turn(&mut self, book: &Book, start: Moment) -> Result<(), Failed> {
        let step = self.step();
        let oldest = match step {
            Step::Acquire => None,
            Step::Renew | Step::Release => self.held.pop_front(),
        };
        let Some(held) = oldest else {
            let key = self.fresh_key()?;
            let acquired = self.caller.acquire_free(&key).await;
            self.held.push_back(noted(book, Kind::Acquire, start, acquired)?);
            return Ok(());
        };
        let (result, keeps) = if step == Step::Renew {
            (noted(book, Kind::Renew, start, self.caller.renew(&held).await), true)
        } else {
            (noted(book, Kind::Release, start, self.caller.release(&held).await), false)
        };
        match &result {
            Ok(()) if keeps => self.held.push_back(held),
            // Its next turn comes soon.
            Err(failed) if failed.is_undecided() => self.held.push_front(held),
            Ok(()) | Err(_) => {}
        }
        result
    }

    async fn give_back(self) -> u64 {
        let Self { caller, held, .. } = self;
        let mut left = held.len() as u64;
        // Where one can't be given back after several tries, the next can't either.
        let hopeless = CancellationToken::new();
        let still_held = stream::iter(held).take_while(|_| ready(!hopeless.is_cancelled()));
        let releasing = still_held.map(|held| {
            let caller = caller.clone();
            async move { caller.release(&held).await }
        });
        let mut releasing = pin!(releasing.buffer_unordered(AT_ONCE));
        while let Some(released) = releasing.next().await {
            if released.is_err_and(|failed| failed.is_undecided()) {
                hopeless.cancel();
            } else {
                left -= 1;
            }
        }
        left
    }
}
