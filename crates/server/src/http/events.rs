//! `/events`: what happens to the locks, as Server-Sent Events.
//!
//! Owns: the stream's form and its signs of life. Never: a buffer for a slow reader; whoever falls out of the ring of
//! events is told, and whoever doesn't read is cut off by the socket's time.

use super::answer::{Answer, Failure};
use super::connection::POSITION;
use super::door::{Door, Gone};
use super::query::{number, parameters};
use crate::service::{Stamped, event_body};
use axum::body::{Body, Bytes};
use axum::extract::RawQuery;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use futures::stream::unfold;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use kunci_api::{Code, EventBody, Invalid, Problem};
use kunci_core::event::{Event, EventKind};
use kunci_process::sleep;
use kunci_replica::{Compacted, Lead, Watch};
use kunci_types::Revision;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// A chunk carries at most so many events, so that a reader that comes back gets them in few writes.
const EVENTS_PER_CHUNK: usize = 256;

/// What happens to the locks, from a revision on, as Server-Sent Events.
///
/// The event's `id` is its revision, its name the `kind`, its data one line of JSON. A comment comes as a sign of life
/// every 10 s. The stream ends with an event `compacted`, whose data is a problem, when the reader falls behind what is
/// kept.
#[utoipa::path(
    get, path = "/events", tag = "events",
    params(
        ("prefix" = Option<String>, Query, description = "Only resources whose names begin with this; without it also events about no resource."),
        ("after" = Option<u64>, Query, description = "Only events after this revision, 0 to 2^53 − 1. Without it: from now on."),
        ("Last-Event-ID" = Option<u64>, Header, description = "As browsers send it when they connect again; goes before `after`."),
    ),
    responses(
        (status = 200, description = "The stream.", body = EventBody, content_type = "text/event-stream"),
        (status = 410, description = "Events after that revision are no longer kept: `compacted`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn events(door: Door, RawQuery(query): RawQuery, headers: HeaderMap, gone: Gone) -> Answer {
    let wanted = wanted(query.as_deref(), &headers);
    let (prefix, after) = wanted.map_err(|invalid| door.service.refuse(invalid))?;
    let permit = Arc::clone(&door.streams).try_acquire_owned().map_err(|_| {
        door.count_stream_too_many();
        let detail = format!("this node has its {} streams of events open", door.limits.streams_max);
        Failure::from(door.service.refuse(Problem::new(Code::Overloaded, detail)))
    })?;
    let Stamped { body: (watch, after), position } = door.service.watch(after).await?;
    let lead = door.service.lead_changes();
    let stream = Stream { door, lead, watch, prefix, gone, seen: after, told: None, _permit: permit };
    let chunks = unfold(Some(stream), |stream| async {
        let (chunk, stream) = stream?.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), stream))
    });
    let headers = [(CONTENT_TYPE, "text/event-stream".to_owned()), (POSITION, position.to_string())];
    let response: Response = (headers, Body::from_stream(chunks)).into_response();
    Ok(response)
}

fn wanted(query: Option<&str>, headers: &HeaderMap) -> Result<(String, Option<Revision>), Invalid> {
    let [prefix, after] = parameters(query, ["prefix", "after"])?;
    let revision = |field: &str, text: &str| number(field, text, 0, Revision::MAX.get()).map(Revision::new);
    let after = match headers.get("last-event-id") {
        // Browsers repeat the address with its `after`; where they are is what this header says.
        Some(last) => revision("Last-Event-ID", last.to_str().unwrap_or("not text"))?,
        None => after.map(|text| revision("after", &text)).transpose()?.flatten(),
    };
    Ok((prefix.unwrap_or_default(), after))
}

/// One reader.
struct Stream {
    door: Door,
    lead: watch::Receiver<Lead>,
    watch: Watch,
    prefix: String,
    gone: Gone,
    /// Everything up to here was sent, or isn't wanted.
    seen: Revision,
    /// The last id that was sent.
    told: Option<Revision>,
    _permit: OwnedSemaphorePermit,
}

enum Step {
    Event(Arc<Event>),
    Compacted(Compacted),
    Alive,
    End,
}

impl From<Option<Result<Arc<Event>, Compacted>>> for Step {
    fn from(next: Option<Result<Arc<Event>, Compacted>>) -> Self {
        match next {
            Some(Ok(event)) => Self::Event(event),
            Some(Err(compacted)) => Self::Compacted(compacted),
            None => Self::End,
        }
    }
}

impl Stream {
    /// The next chunk, and the stream unless that is its last.
    async fn next(mut self) -> Option<(String, Option<Self>)> {
        if self.told.is_none() {
            // At once, so that a reader knows that it is connected, and where a new connection has to go on.
            let chunk = format!("retry: 1000\n: after revision {}\n", self.seen) + &self.place();
            return Some((chunk, Some(self)));
        }
        let mut chunk = String::new();
        for _ in 0..EVENTS_PER_CHUNK {
            let step = if chunk.is_empty() {
                self.wait().await
            } else {
                // What is there already goes along; nobody waits for more.
                let Some(next) = self.watch.next().now_or_never() else { break };
                Step::from(next)
            };
            match step {
                Step::Event(event) => self.push(&event, &mut chunk),
                Step::Alive => {
                    chunk.push_str(": alive\n");
                    chunk.push_str(&self.place());
                    break;
                }
                Step::Compacted(compacted) => {
                    let problem = self.door.service.compacted(compacted);
                    let data = serde_json::to_string(&problem).unwrap_or_default();
                    // Writing to a text can't fail.
                    let _ = write!(chunk, "event: compacted\ndata: {data}\n\n");
                    return Some((chunk, None));
                }
                Step::End => return (!chunk.is_empty()).then_some((chunk, None)),
            }
        }
        if chunk.is_empty() {
            chunk = self.place();
        }
        Some((chunk, Some(self)))
    }

    async fn wait(&mut self) -> Step {
        tokio::select! {
            biased;
            () = self.door.stop.cancelled() => Step::End,
            () = self.gone.0.cancelled() => Step::End,
            // A node that doesn't lead any more may hear of nothing: its readers go on at the new leader.
            _ = self.lead.wait_for(|lead| *lead != Lead::Here) => Step::End,
            next = self.watch.next() => next.into(),
            () = sleep(self.door.limits.alive_every) => Step::Alive,
        }
    }

    fn push(&mut self, event: &Event, chunk: &mut String) {
        self.seen = event.revision;
        let is_wanted = match &event.kind {
            EventKind::Resource { resource, .. } => resource.as_str().starts_with(&self.prefix),
            EventKind::PolicyChanged | EventKind::RevisionRaised => self.prefix.is_empty(),
        };
        if !is_wanted {
            return;
        }
        let body: EventBody = event_body(event);
        let data = serde_json::to_string(&body).unwrap_or_default();
        // Writing to a text can't fail.
        let _ = write!(chunk, "id: {}\nevent: {}\ndata: {data}\n\n", event.revision, body.kind);
        self.told = Some(event.revision);
    }

    /// An id without data: no event for the reader, but where it goes on, past what it didn't want.
    fn place(&mut self) -> String {
        if self.told == Some(self.seen) {
            return "\n".to_owned();
        }
        self.told = Some(self.seen);
        format!("id: {}\n\n", self.seen)
    }
}
