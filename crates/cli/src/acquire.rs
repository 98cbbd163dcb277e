//! Asking for a lock until there is an answer, and taking the question back.
//!
//! Owns: the repeated acquire with one request id, waits without a limit, the clean-up of an interrupted one.
//! Never: decides what the lock is for; `acquire` and `exec` both use this.

use crate::answer::Answer;
use crate::client::CallError;
use crate::door::{Ask, Door, Verb};
use crate::duration::as_ms;
use crate::exit::{Exit, Failure};
use crate::identity::new_request_id;
use crate::lease::{Lease, RELEASE_MAX};
use crate::output::Output;
use crate::patience::Patience;
use http::StatusCode;
use kunci_client::{BootClock, Clock as _, Moment};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The server holds a waiting call for 20 s; after this much more it is dead.
const HELD_OPEN: Duration = Duration::from_secs(20);
/// What an answer may take beyond the wait.
const ANSWER_SLACK: Duration = Duration::from_secs(5);
/// A wait without a limit asks for this much and begins anew; the policy may allow less.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// Whoever waits for longer is told so.
pub(crate) const SAID_AFTER: Duration = Duration::from_secs(2);
/// For this long an interrupted wait is cancelled.
const CANCEL_MAX: Duration = Duration::from_secs(5);
/// From one attempt to cancel to the next.
const CANCEL_PAUSE: Duration = Duration::from_millis(200);

/// What to do when the lock isn't free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Be refused.
    Try,
    /// Queue for this long.
    UpTo(Duration),
    /// Queue as long as it takes.
    NoLimit,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// What to lock.
    pub(crate) resource: String,
    /// Who asks.
    pub(crate) owner: String,
    /// The request id to use; without one each request draws its own.
    pub(crate) request_id: Option<String>,
    /// The lease's TTL; without one the server's default.
    pub(crate) ttl: Option<Duration>,
    /// When it isn't free.
    pub(crate) wait: Wait,
    /// How long the resource stays closed should the lease expire.
    pub(crate) lock_delay: Option<Duration>,
    /// A note for whoever looks at the lock.
    pub(crate) metadata: Option<String>,
    /// For how long attempts may fail without a break.
    pub(crate) patience: Duration,
}

/// A lock that was got.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    /// The lease.
    pub(crate) lease: Lease,
    /// Its fencing token.
    pub(crate) token: u64,
    /// How long the lease lasts at least, from `sent_at`.
    pub(crate) remaining: Duration,
    /// When the call that brought it was sent.
    pub(crate) sent_at: Moment,
    /// When the answer came.
    pub(crate) answered_at: Moment,
    /// The server's body.
    pub(crate) body: Value,
}

/// One acquire, from the first call to a grant, a refusal or its clean-up.
#[derive(Debug)]
pub(crate) struct Acquiring<'a> {
    door: &'a Door,
    output: &'a Output,
    wanted: &'a Wanted,
    /// The request that is open on the server, once one was sent.
    open: Option<String>,
    longest_wait: Duration,
    began_at: Moment,
}

impl<'a> Acquiring<'a> {
    /// Prepares to ask.
    pub(crate) fn new(door: &'a Door, output: &'a Output, wanted: &'a Wanted) -> Self {
        Self { door, output, wanted, open: None, longest_wait: LONGEST_WAIT, began_at: BootClock.now() }
    }

    /// Asks until there is a grant or a refusal. May be dropped; then call [`Self::take_back`].
    pub(crate) async fn run(&mut self) -> Result<Grant, Failure> {
        loop {
            let Some(wait) = self.wait_now() else {
                let mut failure = Failure::new(Exit::Refused, "the wait is over; use a longer --wait");
                failure.body["code"] = "timed_out".into();
                return Err(failure);
            };
            let request_id = match &self.wanted.request_id {
                Some(given) => given.clone(),
                None => new_request_id()?,
            };
            self.open = Some(request_id.clone());
            let (answer, sent_at) = self.ask(&request_id, wait).await?;
            if answer.is_success() {
                return self.grant(answer, sent_at);
            }
            if !self.may_begin_anew(&answer) {
                // The server has closed the request: nothing to take back.
                self.open = None;
                return Err(Failure::refusal(&answer));
            }
        }
    }

    /// Cancels what is open, and gives back what was granted meanwhile; within 5 s each.
    pub(crate) async fn take_back(&self) -> Result<(), String> {
        let Some(request_id) = &self.open else { return Ok(()) };
        let body = json!({ "clientId": self.wanted.owner, "requestId": request_id });
        let ask = Ask::new(Verb::Cancel, &self.wanted.resource, body);
        let mut last = "no time to try".to_owned();
        let tries = async {
            loop {
                match self.door.ask(&ask).await {
                    Ok(answer) if answer.is_passing() => last = answer.refusal_text(),
                    Ok(answer) => return answer,
                    Err(error) => last = error.to_string(),
                }
                sleep(CANCEL_PAUSE).await;
            }
        };
        let answered = timeout(CANCEL_MAX, tries).await;
        let Ok(answer) = answered else { return Err(last) };
        match answer.text("leaseId") {
            Some(lease_id) if answer.is_success() => self.lease(lease_id).release(RELEASE_MAX).await,
            _ => Ok(()),
        }
    }

    /// Adds the request id to a failure, so that the same request can be repeated.
    pub(crate) fn name_request(&self, mut failure: Failure) -> Failure {
        if let Some(request_id) = &self.open {
            failure.text = format!("{}; add --request-id {request_id}", failure.text);
            failure.body["requestId"] = request_id.as_str().into();
        }
        failure
    }

    /// How long the next request may wait; `None` when the whole wait is over.
    fn wait_now(&self) -> Option<Duration> {
        match self.wanted.wait {
            Wait::Try => Some(Duration::ZERO),
            Wait::NoLimit => Some(self.longest_wait),
            Wait::UpTo(wait) if self.open.is_none() => Some(wait),
            Wait::UpTo(wait) => {
                let left = wait.saturating_sub(BootClock.now().since(self.began_at));
                (left >= Duration::from_millis(1)).then_some(left)
            }
        }
    }

    /// Calls with one request id until the server has decided it; returns when the deciding call was sent.
    async fn ask(&self, request_id: &str, wait: Duration) -> Result<(Answer, Moment), Failure> {
        let ask = Ask {
            answer_within: wait.min(HELD_OPEN) + ANSWER_SLACK,
            ..Ask::new(Verb::Acquire, &self.wanted.resource, self.body(request_id, wait))
        };
        let mut patience = Patience::new(self.wanted.patience);
        let mut position = None;
        loop {
            let sent_at = BootClock.now();
            let attempt = self.patiently(&ask).await;
            let Some(answer) = patience.judge(attempt, self.output).await? else { continue };
            if answer.status != StatusCode::ACCEPTED {
                return Ok((answer, sent_at));
            }
            if position != answer.number("position") {
                position = answer.number("position");
                let place =
                    position.map(|position| format!(", number {position} in the queue")).unwrap_or_default();
                self.output.say(&format!("waiting for {}{place}", self.wanted.resource));
            }
        }
    }

    /// Asks once. Over HTTP a call that waits comes back every 20 s and says where it stands; the native door is silent
    /// until it is decided, so the person is told once that it waits.
    async fn patiently(&self, ask: &Ask) -> Result<Answer, CallError> {
        let mut asking = std::pin::pin!(self.door.ask(ask));
        if matches!(self.door, Door::Native(_)) && self.wanted.wait != Wait::Try {
            tokio::select! {
                biased;
                answered = &mut asking => return answered,
                () = sleep(SAID_AFTER) => self.output.say(&format!("waiting for {}", self.wanted.resource)),
            }
        }
        asking.await
    }

    fn body(&self, request_id: &str, wait: Duration) -> Value {
        let mut body = json!({
            "clientId": self.wanted.owner,
            "requestId": request_id,
            "waitTimeoutMs": as_ms(wait),
        });
        let optional = [
            ("leaseDurationMs", self.wanted.ttl.map(|ttl| as_ms(ttl).into())),
            ("lockDelayMs", self.wanted.lock_delay.map(|delay| as_ms(delay).into())),
            ("metadata", self.wanted.metadata.clone().map(Value::String)),
        ];
        for (field, value) in optional {
            if let Some(value) = value {
                body[field] = value;
            }
        }
        body
    }

    /// Whether a refusal only ends this request id and not the wait as a whole.
    fn may_begin_anew(&mut self, answer: &Answer) -> bool {
        let is_given = self.wanted.request_id.is_some();
        match (answer.code(), self.wanted.wait) {
            // Granted while nobody could hear it, and over since.
            ("lease_ended", Wait::NoLimit | Wait::UpTo(_)) | ("timed_out", Wait::NoLimit) => !is_given,
            // Refused before it was recorded: the same request id is still unused.
            (_, Wait::NoLimit) if answer.status == StatusCode::UNPROCESSABLE_ENTITY => {
                self.policy_shortens_the_wait(answer)
            }
            _ => false,
        }
    }

    /// Takes in that the policy allows less than the longest wait.
    fn policy_shortens_the_wait(&mut self, answer: &Answer) -> bool {
        let says = |name: &str| answer.text(name).is_some_and(|text| text.contains("wait"));
        let is_about_the_wait = says("field") || says("detail");
        match answer.number("maxMs").map(Duration::from_millis) {
            Some(max) if is_about_the_wait && !max.is_zero() && max < self.longest_wait => {
                self.longest_wait = max;
                true
            }
            _ => false,
        }
    }

    fn grant(&self, answer: Answer, sent_at: Moment) -> Result<Grant, Failure> {
        let (Some(lease_id), Some(token), Some(ms)) =
            (answer.text("leaseId"), answer.number("fencingToken"), answer.number("remainingMs"))
        else {
            let text = "the answer to the acquire has no lease; check that --endpoints or --url names a kunci server";
            return Err(Failure::new(Exit::Unknown, text));
        };
        let lease = self.lease(lease_id);
        let remaining = Duration::from_millis(ms);
        Ok(Grant { lease, token, remaining, sent_at, answered_at: BootClock.now(), body: answer.body })
    }

    fn lease(&self, lease_id: &str) -> Lease {
        Lease {
            door: self.door.clone(),
            resource: self.wanted.resource.clone(),
            lease_id: lease_id.to_owned(),
        }
    }
}
