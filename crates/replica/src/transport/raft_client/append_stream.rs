//! One of the library's streams of requests, over a kept connection.
//!
//! Owns: which answer belongs to which stream, when a stream ends, and the one new try on a fresh connection.
//! Never: waits without a bound for an answer.
//!
//! Trap 1 of the design: a stream ends only after each request has its answer, and a clean end is the end of the
//! stream and no error, for which the library would wait before the next.

use super::append_link::{AppendLink, Broken};
use super::{Appended, append_failed};
use crate::raft_types::TypeConfig;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use openraft::raft::{AppendEntriesRequest, StreamAppendResult};
use std::time::Duration;

/// Sends the requests of `input` and gives their answers.
pub(super) fn run<S>(link: &mut AppendLink, input: S, patience: Duration) -> BoxStream<'_, Appended>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + Unpin + 'static,
{
    link.tidy();
    let run = Run { link, input: Some(input), patience, waiting: 0, again: None };
    stream::unfold(Some(run), |run| async move {
        let mut run = run?;
        let answer = run.next().await?;
        // After anything but success the stream is over.
        let goes_on = matches!(answer, Ok(Ok(_)));
        Some((answer, goes_on.then_some(run)))
    })
    .boxed()
}

struct Run<'l, S> {
    link: &'l mut AppendLink,
    /// `None` when all requests were taken.
    input: Option<S>,
    patience: Duration,
    /// Requests of this stream without their answer. The link may owe more than these: answers to streams that
    /// were given up come first.
    waiting: usize,
    /// The only request so far, sent on a connection from before. If that turns out dead the request goes out again.
    again: Option<AppendEntriesRequest<TypeConfig>>,
}

enum Event {
    Answer(Result<StreamAppendResult<TypeConfig>, Broken>),
    /// To a stream that was given up.
    EarlierAnswer(Result<StreamAppendResult<TypeConfig>, Broken>),
    Request(AppendEntriesRequest<TypeConfig>),
    NoMoreRequests,
}

impl<S> Run<'_, S>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Send + Unpin + 'static,
{
    async fn next(&mut self) -> Option<Appended> {
        while self.input.is_some() || self.waiting > 0 {
            let done = match self.event().await? {
                Event::Answer(Ok(answer)) => {
                    self.waiting = self.waiting.saturating_sub(1);
                    self.again = None;
                    return Some(Ok(answer));
                }
                Event::EarlierAnswer(Ok(Ok(_))) => Ok(()),
                // What it says isn't for this stream, but no more answers follow it.
                Event::EarlierAnswer(Ok(Err(_))) => self.connection_ended(Broken::Closed).await,
                Event::Answer(Err(broken)) | Event::EarlierAnswer(Err(broken)) => {
                    self.connection_ended(broken).await
                }
                Event::Request(request) => self.request(request).await,
                Event::NoMoreRequests => {
                    self.input = None;
                    Ok(())
                }
            };
            if let Err(broken) = done {
                return Some(Err(append_failed(self.link, broken)));
            }
        }
        None
    }

    /// Waits for what comes first. Both can be given up.
    async fn event(&mut self) -> Option<Event> {
        let Self { link, input, .. } = self;
        let (is_up, has_room) = (link.is_up(), link.has_room());
        let is_earlier = link.owed() > self.waiting;
        tokio::select! {
            biased;
            answer = link.answer(), if is_up => {
                Some(if is_earlier { Event::EarlierAnswer(answer) } else { Event::Answer(answer) })
            }
            Some(event) = next_of(input), if has_room => Some(event),
            // Not reached: a stream whose connection is gone waits for no answer.
            else => None,
        }
    }

    async fn request(&mut self, request: AppendEntriesRequest<TypeConfig>) -> Result<(), Broken> {
        let (is_first, is_kept) = (self.waiting == 0, self.link.is_up());
        let sent = self.link.send(&request, self.patience).await;
        self.again = (is_first && is_kept).then_some(request);
        match sent {
            Ok(()) => {
                self.waiting += 1;
                Ok(())
            }
            Err(broken) => self.try_again(broken).await,
        }
    }

    /// The connection broke. Nothing is lost when this stream waited for nothing.
    async fn connection_ended(&mut self, broken: Broken) -> Result<(), Broken> {
        if self.waiting == 0 { Ok(()) } else { self.try_again(broken).await }
    }

    /// Sends the only request again on a fresh connection. Taking it twice does no harm at the other end.
    async fn try_again(&mut self, broken: Broken) -> Result<(), Broken> {
        let may_help = matches!(broken, Broken::Io(_) | Broken::Closed);
        let Some(request) = self.again.take().filter(|_| may_help) else { return Err(broken) };
        self.link.send(&request, self.patience).await?;
        self.waiting = 1;
        Ok(())
    }
}

/// The next request or the end of them; `None` when the end was seen before.
async fn next_of<S>(input: &mut Option<S>) -> Option<Event>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + Unpin,
{
    Some(input.as_mut()?.next().await.map_or(Event::NoMoreRequests, Event::Request))
}
