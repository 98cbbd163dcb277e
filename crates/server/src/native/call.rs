//! Requests that are under way, as one future for each call of the service.
//!
//! Owns: which requests a call answers. Never: what they are answered.

use super::calls::End;
use super::order::Place;
use super::together;
use futures::future::BoxFuture;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// One or more requests that are under way.
pub(super) enum Call {
    /// The place is there until it has ended.
    Alone(Option<Place>, BoxFuture<'static, Option<End>>),
    Together(together::Ends),
}

/// What a call ended with: each request of it with its answer, unless nobody is to be told.
pub(super) type Ended = Vec<(Place, Option<End>)>;

impl Future for Call {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        match &mut *self {
            Self::Alone(place, end) => {
                let end = ready!(end.as_mut().poll(cx));
                Poll::Ready(place.take().map(|place| (place, end)).into_iter().collect())
            }
            Self::Together(ends) => {
                let ends = ready!(ends.as_mut().poll(cx));
                Poll::Ready(ends.into_iter().map(|(place, end)| (place, Some(end))).collect())
            }
        }
    }
}
