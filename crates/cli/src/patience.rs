//! Repeating a request until its outcome is known.
//!
//! Owns: for how long, how often, and what it means when time is up. Never: repeats what isn't safe to repeat:
//! each change names a request id, a lease or a token, so that it applies once.

use crate::answer::Answer;
use crate::client::{Call, CallError, Client};
use crate::door::{Ask, Door};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kunci_client::{BootClock, Clock as _, Moment};
use std::time::Duration;
use tokio::time::sleep;

/// From one attempt to the next.
const PAUSE: Duration = Duration::from_millis(200);

/// What to do when nobody is there.
pub(crate) const CHECK: &str = "check --endpoints or --url, or start a node with `kunci server`";

/// For so long nothing is said about it: a leader change takes less, on a busy machine too.
const SAID_AFTER: Duration = Duration::from_secs(3);

/// A run of attempts without a decision.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    failing_since: Option<Moment>,
    was_said: bool,
    applied: Applied,
}

/// What is known of a request that isn't decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applied {
    /// No attempt can have been applied.
    No,
    /// One of them may have been.
    Unknown,
}

impl Patience {
    /// Gives up once attempts have failed for `limit` without a break.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, failing_since: None, was_said: false, applied: Applied::No }
    }

    /// Takes in one attempt: a decision, `None` after a pause when it is worth another try, or a failure when time
    /// is up. Time counts from the first failure, however long a call that waited had been open before.
    pub(crate) async fn judge(
        &mut self,
        attempt: Result<Answer, CallError>,
        output: &Output,
    ) -> Result<Option<Answer>, Failure> {
        let why = match attempt {
            Ok(answer) if !answer.is_passing() => {
                (self.failing_since, self.was_said) = (None, false);
                return Ok(Some(answer));
            }
            Ok(answer) => {
                if answer.is_unknown() {
                    self.applied = Applied::Unknown;
                }
                Failure::refusal(&answer)
            }
            Err(error @ CallError::NotSent { .. }) => {
                Failure::new(Exit::Unavailable, format!("{error}; {CHECK}"))
            }
            Err(error @ CallError::NoAnswer { .. }) => {
                self.applied = Applied::Unknown;
                Failure::new(Exit::Unknown, format!("{error}; repeat the same command to find out"))
            }
        };
        let now = BootClock.now();
        let since = *self.failing_since.get_or_insert(now);
        if now.plus(PAUSE).since(since) >= self.limit {
            return Err(self.time_is_up(why));
        }
        if now.since(since) >= SAID_AFTER && !self.was_said {
            self.was_said = true;
            // What to do comes with the failure, should it be one in the end.
            let fact = why.text.split("; ").next().unwrap_or_default();
            output.say(&format!("{fact} (trying again for {:?})", self.limit));
        }
        sleep(PAUSE).await;
        Ok(None)
    }

    fn time_is_up(&self, why: Failure) -> Failure {
        match self.applied {
            Applied::No => Failure { exit: Exit::Unavailable, ..why },
            // An earlier attempt counts too, though the last one wasn't even sent.
            Applied::Unknown if why.exit != Exit::Unknown => Failure::new(
                Exit::Unknown,
                format!("an earlier attempt may have been applied; since then: {why}"),
            ),
            Applied::Unknown => why,
        }
    }
}

/// Sends a request until the server decides it.
pub(crate) async fn call(
    client: &Client,
    call: &Call,
    patience: Duration,
    output: &Output,
) -> Result<Answer, Failure> {
    until_decided(async || client.call(call).await, patience, output).await
}

/// The same through either door.
pub(crate) async fn ask(
    door: &Door,
    ask: &Ask,
    patience: Duration,
    output: &Output,
) -> Result<Answer, Failure> {
    until_decided(async || door.ask(ask).await, patience, output).await
}

async fn until_decided(
    attempt: impl AsyncFn() -> Result<Answer, CallError>,
    patience: Duration,
    output: &Output,
) -> Result<Answer, Failure> {
    let mut patience = Patience::new(patience);
    loop {
        if let Some(answer) = patience.judge(attempt().await, output).await? {
            return Ok(answer);
        }
    }
}

/// Sends a request once; for reads, which a person repeats.
pub(crate) async fn read(client: &Client, call: &Call) -> Result<Answer, Failure> {
    client.call(call).await.map_err(not_read)
}

/// The same through either door.
pub(crate) async fn look(door: &Door, ask: &Ask) -> Result<Answer, Failure> {
    door.ask(ask).await.map_err(not_read)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands over what it has")]
fn not_read(error: CallError) -> Failure {
    Failure::new(Exit::Unavailable, format!("{error}; {CHECK}"))
}
