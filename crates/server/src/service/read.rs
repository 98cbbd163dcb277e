//! Looking at the locks: linearizable, unless it says otherwise.

use super::{Outcome, Refused, Service, Stamped, wall_clock};
use kunci_api::{
    Code, EventBody, HistoryBody, ListBody, ListedBody, PolicyAnswer, PolicyBody, Problem, QueueBody,
    StatusBody, WaiterBody,
};
use kunci_core::event::{Change, Event, EventKind};
use kunci_core::view::{Listed, Status, View, WaiterView};
use kunci_replica::{Answered, Watch};
use kunci_types::{FencingToken, ResourceName, Revision};

impl Service {
    pub(super) async fn read<T>(
        &self,
        view: impl FnOnce(&View<'_>) -> T,
    ) -> Result<Answered<T>, Box<Refused>> {
        self.replica.read(view).await.map_err(|refusal| self.undecided(refusal))
    }

    /// How a resource stands.
    ///
    /// # Errors
    /// When this node can't prove that it leads; so for every read here.
    pub async fn status(&self, resource: ResourceName) -> Outcome<StatusBody> {
        let answered = self.read(|table| table.status(&resource)).await?;
        let status = listed(Listed { resource, status: answered.value.clone() });
        Ok(stamped(&answered, |revision| StatusBody { status, revision }))
    }

    /// How several resources stand, all at one moment, in the order given.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn statuses(&self, resources: Vec<ResourceName>) -> Outcome<Vec<StatusBody>> {
        let answered =
            self.read(|table| resources.iter().map(|name| table.status(name)).collect::<Vec<_>>()).await?;
        let (revision, position) = (answered.revision.get(), answered.position);
        let named = resources.into_iter().zip(answered.value);
        let body = named
            .map(|(resource, status)| StatusBody { status: listed(Listed { resource, status }), revision });
        Ok(Stamped { body: body.collect(), position })
    }

    /// Who waits for a resource.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn queue(&self, resource: ResourceName) -> Outcome<QueueBody> {
        let answered = self.read(|table| table.queue(&resource)).await?;
        let waiters = answered.value.iter().map(waiter).collect();
        let resource = resource.to_string();
        Ok(stamped(&answered, |revision| QueueBody { resource, waiters, revision }))
    }

    /// What happened to a resource, as far back as this node keeps events.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn history(&self, resource: ResourceName) -> Outcome<HistoryBody> {
        self.last_events(resource, usize::MAX).await
    }

    /// The same, but only the last `limit` events.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn last_events(&self, resource: ResourceName, limit: usize) -> Outcome<HistoryBody> {
        let answered = self.read(|table| table.now().as_ms()).await?;
        let cluster_time_ms = answered.value;
        // Read after the barrier: it may show more than the revision says, so that is cut off.
        let events = self.replica.history(&resource, limit).into_iter();
        let events = events.filter(|event| event.revision <= answered.revision);
        let events = events.map(|event| event_body(&event)).collect();
        let resource = resource.to_string();
        Ok(stamped(&answered, |revision| HistoryBody { resource, events, cluster_time_ms, revision }))
    }

    /// One page of the resources whose names begin with `prefix`, after the name `after`.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Outcome<ListBody> {
        // One more than asked for shows whether there is another page.
        let mut answered = self.read(|table| table.list(prefix, after, limit.saturating_add(1))).await?;
        let has_more = answered.value.len() > limit;
        answered.value.truncate(limit);
        let last = answered.value.last().map(|listed| listed.resource.to_string());
        let locks = answered.value.drain(..).map(listed).collect();
        let next = last.filter(|_| has_more);
        Ok(stamped(&answered, |revision| ListBody { locks, next, revision }))
    }

    /// The resources with the longest queues.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn hot(&self, limit: usize) -> Outcome<ListBody> {
        let mut answered = self.read(|table| table.hot(limit)).await?;
        let locks = answered.value.drain(..).map(listed).collect();
        Ok(stamped(&answered, |revision| ListBody { locks, next: None, revision }))
    }

    /// The resources whose leases or lock-delays end next.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn expiring(&self, limit: usize) -> Outcome<ListBody> {
        let mut answered = self.read(|table| table.expiring(limit)).await?;
        let locks = answered.value.drain(..).map(listed).collect();
        Ok(stamped(&answered, |revision| ListBody { locks, next: None, revision }))
    }

    /// The limits in force.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn policy(&self) -> Outcome<PolicyAnswer> {
        let answered = self.read(|table| (PolicyBody::from(table.policy()), table.policy_revision())).await?;
        let (policy, policy_revision) = answered.value.clone();
        let policy_revision = policy_revision.get();
        Ok(stamped(&answered, |revision| PolicyAnswer { policy, policy_revision, revision }))
    }

    /// The longest wait that the policy allows, in ms, as this node knows it.
    pub fn wait_ms_max(&self) -> u64 {
        self.replica.local_view(|table| table.policy().wait_ms_max).value
    }

    /// Watches events after a revision, or from now on; and says after which one.
    ///
    /// # Errors
    /// When events after that revision are no longer kept, or this node can't prove that it leads.
    pub async fn watch(&self, after: Option<Revision>) -> Outcome<(Watch, Revision)> {
        let answered = self.read(|_| ()).await?;
        let after = after.unwrap_or(answered.revision);
        match self.replica.watch(Some(after)) {
            Ok(watch) => Ok(Stamped { body: (watch, after), position: answered.position }),
            Err(compacted) => Err(self.refused_at(self.compacted(compacted), &answered)),
        }
    }

    /// The refusal for a watcher that fell behind what is kept.
    pub fn compacted(&self, compacted: kunci_replica::Compacted) -> Problem {
        Problem {
            oldest: Some(compacted.oldest.get()),
            revision: self.replica.local_view(|_| ()).revision.get(),
            ..Problem::new(Code::Compacted, compacted.to_string())
        }
    }
}

fn stamped<T, B>(answered: &Answered<T>, body: impl FnOnce(u64) -> B) -> Stamped<B> {
    Stamped { body: body(answered.revision.get()), position: answered.position }
}

fn listed(listed: Listed) -> ListedBody {
    let resource = listed.resource.to_string();
    match listed.status {
        Status::Free { queue_length } => ListedBody { resource, queue_length, ..ListedBody::default() },
        Status::Closed { remaining_ms, queue_length } => {
            ListedBody { resource, lock_delay_ms: Some(remaining_ms), queue_length, ..ListedBody::default() }
        }
        Status::Held(held) => ListedBody {
            resource,
            held: true,
            holder: Some(held.owner.to_string()),
            fencing_token: Some(held.token.get()),
            remaining_ms: Some(held.remaining_ms),
            expires_at: Some(wall_clock::in_ms(held.remaining_ms)),
            held_ms: Some(held.held_ms),
            held_since: Some(wall_clock::ms_ago(held.held_ms)),
            ttl_ms: Some(held.ttl_ms),
            metadata: held.metadata.map(String::from),
            lock_delay_ms: None,
            queue_length: held.queue_length,
        },
    }
}

fn waiter(waiter: &WaiterView) -> WaiterBody {
    WaiterBody {
        owner: waiter.owner.to_string(),
        position: waiter.position,
        waited_ms: waiter.waited_ms,
        wait_remaining_ms: waiter.wait_remaining_ms,
        attached: waiter.attached,
    }
}

/// An event in the words of the wire.
pub fn event_body(event: &Event) -> EventBody {
    let body = EventBody {
        revision: event.revision.get(),
        cluster_time_ms: event.at.as_ms(),
        ..EventBody::default()
    };
    match &event.kind {
        EventKind::PolicyChanged => EventBody { kind: "policy_changed", ..body },
        EventKind::RevisionRaised => EventBody { kind: "revision_raised", ..body },
        EventKind::Resource { resource, owner, change } => {
            let (resource, owner) = (Some(resource.to_string()), Some(owner.to_string()));
            change_body(change, event.revision, EventBody { resource, owner, ..body })
        }
    }
}

fn change_body(change: &Change, revision: Revision, body: EventBody) -> EventBody {
    let ended =
        |kind, token: &FencingToken| EventBody { kind, fencing_token: Some(token.get()), ..body.clone() };
    match change {
        Change::Queued => EventBody { kind: "queued", ..body },
        Change::Granted { ttl_ms } => {
            EventBody { kind: "granted", fencing_token: Some(revision.get()), ttl_ms: Some(*ttl_ms), ..body }
        }
        Change::Released { token } => ended("released", token),
        Change::Expired { token } => ended("expired", token),
        Change::Forced { token, reason } => {
            EventBody { reason: Some(reason.to_string()), ..ended("forced", token) }
        }
        Change::Abandoned { token } => ended("abandoned", token),
        Change::TimedOut => EventBody { kind: "timed_out", ..body },
        Change::Cancelled => EventBody { kind: "cancelled", ..body },
        Change::Dropped => EventBody { kind: "dropped", ..body },
    }
}
