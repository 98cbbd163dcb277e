//! Repeating a request until its outcome is known.
//!
//! Owns: for how long, how often, and what it means when time is up. Never: repeats what isn't safe to repeat:
//! each change names a request id, a lease or a token, so that it applies once.

use crate::answer::Answer;
use crate::client::{Call, CallError, Client};
use crate::clock::Moment;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use std::time::Duration;
use tokio::time::sleep;

/// From one attempt to the next.
const PAUSE: Duration = Duration::from_millis(200);

/// A run of attempts without a decision.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    failing_since: Option<Moment>,
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
        Self { limit, failing_since: None, applied: Applied::No }
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
                self.failing_since = None;
                return Ok(Some(answer));
            }
            Ok(answer) => {
                if answer.is_unknown() {
                    self.applied = Applied::Unknown;
                }
                Failure::refusal(&answer)
            }
            Err(error @ CallError::NotSent { .. }) => Failure::new(
                Exit::Unavailable,
                format!("{error}; check --url, or start a node with `kunci server`"),
            ),
            Err(error @ CallError::NoAnswer { .. }) => {
                self.applied = Applied::Unknown;
                Failure::new(Exit::Unknown, format!("{error}; repeat the same command to find out"))
            }
        };
        let since = *self.failing_since.get_or_insert_with(|| {
            if !self.limit.is_zero() {
                // What to do comes with the failure, should it be one in the end.
                let fact = why.text.split("; ").next().unwrap_or_default();
                output.say(&format!("{fact} (trying again for {:?})", self.limit));
            }
            Moment::now()
        });
        if Moment::now().plus(PAUSE).since(since) >= self.limit {
            return Err(self.time_is_up(why));
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
    let mut patience = Patience::new(patience);
    loop {
        let attempt = client.call(call).await;
        if let Some(answer) = patience.judge(attempt, output).await? {
            return Ok(answer);
        }
    }
}

/// Sends a request once; for reads, which a person repeats.
pub(crate) async fn read(client: &Client, call: &Call) -> Result<Answer, Failure> {
    match client.call(call).await {
        Ok(answer) => Ok(answer),
        Err(error) => Err(Failure::new(
            Exit::Unavailable,
            format!("{error}; check --url, or start a node with `kunci server`"),
        )),
    }
}
