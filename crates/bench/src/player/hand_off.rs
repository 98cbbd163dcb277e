//! One resource that everybody wants: whoever gets it gives it back, and queues again.

use super::{Player, noted};
use crate::book::{Book, Kind};
use crate::caller::{Caller, Failed, Held};
use crate::stage::Stage;
use kunci_client::native::WaitFor;
use kunci_client::{Moment, ResourceName};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// When it is over, a hand-off that is under way is waited for so long.
const LAST_HAND_OFF: Duration = Duration::from_secs(5);

/// The one resource.
#[derive(Debug)]
pub(crate) struct Hot {
    key: ResourceName,
    /// When the release was to start that the next grant follows; `None` once that has come. Only the holder sets it.
    released_at: watch::Sender<Option<Moment>>,
}

impl Hot {
    pub(crate) fn new(caller: &Caller) -> Result<Arc<Self>, Failed> {
        Ok(Arc::new(Self { key: caller.key("hot")?, released_at: watch::Sender::new(None) }))
    }

    fn releases(&self, start: Moment) {
        self.released_at.send_replace(Some(start));
    }

    /// When what now arrived at the next holder began.
    fn arrived(&self) -> Option<Moment> {
        self.released_at.send_replace(None)
    }

    /// Returns once the run is over and no hand-off is under way, or has been for too long.
    async fn quiet(&self, stage: &Stage) {
        stage.over().cancelled().await;
        let mut released_at = self.released_at.subscribe();
        // Nobody changes it any more: then there is nothing to wait for either.
        let _ = timeout(LAST_HAND_OFF, released_at.wait_for(Option::is_none)).await;
    }
}

/// Waits for the resource, or has it.
pub(crate) struct HandOff {
    caller: Caller,
    hot: Arc<Hot>,
    held: Option<Held>,
    /// It was released already, and no answer said so.
    is_repeated: bool,
}

impl HandOff {
    pub(crate) fn new(caller: Caller, hot: Arc<Hot>) -> Self {
        Self { caller, hot, held: None, is_repeated: false }
    }
}

impl Player for HandOff {
    /// Queues, and waits for the grant.
    async fn ready(&mut self, book: &Book, stage: &Stage) -> Result<(), Failed> {
        if self.held.is_some() {
            return Ok(());
        }
        let key = &self.hot.key;
        let request_id = self.caller.request_id()?;
        let asked_at = stage.now();
        let granted = tokio::select! {
            granted = self.caller.acquire(key, &request_id, WaitFor::AsLongAsAllowed) => granted,
            () = self.hot.quiet(stage) => {
                // A queue as it was: no failure, and nothing to measure.
                let _ = self.caller.take_back(key, &request_id).await;
                return Ok(());
            }
        };
        if granted.is_ok()
            && let Some(released_at) = self.hot.arrived()
        {
            book.note(Kind::HandOff, released_at, Ok(()));
        }
        if granted.as_ref().is_err_and(Failed::may_have_happened) {
            let _ = self.caller.take_back(key, &request_id).await;
        }
        self.held = Some(noted(book, Kind::Acquire, asked_at, granted)?);
        Ok(())
    }

    async fn turn(&mut self, book: &Book, start: Moment) -> Result<(), Failed> {
        let Some(held) = &self.held else { return Ok(()) };
        // A repeated release says nothing about when the next holder could have it.
        if !self.is_repeated {
            self.hot.releases(start);
        }
        let released = noted(book, Kind::Release, start, self.caller.release(held).await);
        self.is_repeated = released.as_ref().is_err_and(Failed::is_undecided);
        if !self.is_repeated {
            self.held = None;
        }
        released
    }

    async fn give_back(self) -> u64 {
        self.caller.give_back(self.held).await
    }
}
