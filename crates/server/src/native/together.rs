//! Requests that came together and go together: one look at the locks for many statuses, one command for many renewals.
//!
//! Owns: which do. Never: makes one wait for another that hasn't come yet.

use super::calls::{End, Kind};
use super::order::Place;
use crate::service::{Outcome as Called, Service, Stamped};
use futures::future::BoxFuture;
use kunci_api::native::{Op, Outcome};
use kunci_api::{RenewManyBody, RenewResult, Renewed, StatusBody};
use kunci_types::{Origin, ResourceName};

/// More don't go at once: the locks stand still while they are looked at.
const AT_ONCE_MAX: usize = 256;

/// How each of them ended.
pub(super) type Ends = BoxFuture<'static, Vec<(Place, End)>>;

/// Requests of one kind, in the order in which they came.
pub(super) struct Together {
    service: Service,
    places: Vec<Place>,
    what: What,
    /// Where they come from: all from one connection.
    origin: Origin,
}

enum What {
    Statuses(Vec<ResourceName>),
    Renewals(Vec<Renewed>),
}

impl Together {
    /// The first of them.
    pub(super) fn new(service: Service, origin: Origin, place: Place, first: Kind) -> Self {
        let what = match first {
            Kind::Status(key) => What::Statuses(vec![key]),
            Kind::Renew(renewed) => What::Renewals(vec![renewed]),
        };
        Self { service, places: vec![place], what, origin }
    }

    /// Adds one more; gives it back when it can't go with these.
    pub(super) fn add(&mut self, place: Place, next: Kind) -> Result<(), (Place, Kind)> {
        if self.places.len() >= AT_ONCE_MAX {
            return Err((place, next));
        }
        match (&mut self.what, next) {
            (What::Statuses(keys), Kind::Status(key)) => keys.push(key),
            (What::Renewals(renewals), Kind::Renew(renewed)) => renewals.push(renewed),
            (_, next) => return Err((place, next)),
        }
        self.places.push(place);
        Ok(())
    }

    /// Begins them all.
    pub(super) fn begin(self) -> Ends {
        let Self { service, places, what, origin } = self;
        match what {
            What::Statuses(keys) => Box::pin(async move {
                let called = service.statuses(keys).await;
                each(&service, Op::Status, places, called, StatusBody::into)
            }),
            What::Renewals(renewals) => Box::pin(async move {
                let called = service.renew_many(renewals, origin).await;
                let called = called.map(|Stamped { body, position }| {
                    let RenewManyBody { results, .. } = body;
                    Stamped { body: results, position }
                });
                each(&service, Op::Renew, places, called, renewed)
            }),
        }
    }
}

fn each<T>(
    service: &Service,
    op: Op,
    places: Vec<Place>,
    called: Called<Vec<T>>,
    outcome: impl Fn(T) -> Outcome,
) -> Vec<(Place, End)> {
    match called {
        Ok(Stamped { body, position }) => {
            let ends = body.into_iter().map(|one| End::at((outcome(one), position)));
            places.into_iter().zip(ends).collect()
        }
        Err(why) => {
            let end = |place| (place, End::refused(service, op, (*why).clone()));
            places.into_iter().map(end).collect()
        }
    }
}

fn renewed(result: RenewResult) -> Outcome {
    match result.problem {
        Some(problem) => Outcome::refused(Some(Op::Renew), problem),
        None => {
            Outcome::Renewed { ttl_ms: result.remaining_ms.unwrap_or_default(), is_final: result.is_final }
        }
    }
}
