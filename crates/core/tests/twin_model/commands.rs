//! What each command does in the naive table.

use super::time::{Over, fence};
use super::{Call, Lease, Record, State, Terms, Twin, Waiting, arguments};
use kunci_core::RequestKey;
use kunci_core::command::{Acquire, Cancel, Command, Departure, Detach, Proof, Renewal, RequestIdFrom};
use kunci_core::event::{Change, Event, EventKind};
use kunci_core::reply::{
    AbandonReply, AcquireRefusal, AcquireReply, CancelReply, DetachReply, ForceReleaseReply, HeldBy, Last,
    LeaseEnd, NotHolder, OverLimit, RaiseRevisionReply, ReleaseReply, RenewReply, Reply, SetPolicyReply,
    Told,
};
use kunci_types::{ClusterTime, ResourceName, Revision, Ttl, Wait};

impl Twin {
    pub(super) fn command(&mut self, command: &Command) -> (Reply, u64) {
        let reply = match command {
            Command::Acquire(acquire) => Reply::Acquire(self.acquire(acquire)),
            Command::Renew(renew) => {
                Reply::Renew(renew.leases.iter().map(|renewal| self.renew(renewal)).collect())
            }
            Command::Release(release) => {
                Reply::Release(match self.prove(&release.resource, &release.proof) {
                    Ok(_) => {
                        self.end(&release.resource, LeaseEnd::Released, |token| Change::Released {
                            token: fence(token),
                        });
                        ReleaseReply::Released(Told::First)
                    }
                    Err(NotHolder::Ended(LeaseEnd::Released)) => ReleaseReply::Released(Told::Again),
                    Err(why) => ReleaseReply::NotHolder(why),
                })
            }
            Command::Cancel(cancel) => Reply::Cancel(self.cancel(cancel)),
            Command::Detach(detach) => Reply::Detach(self.detach(detach)),
            Command::Abandon(abandon) => {
                let unseen = Some((abandon.attempt, self.term));
                let lease =
                    self.leases.iter().find(|it| it.request == abandon.request && it.unseen == unseen);
                Reply::Abandon(match lease.map(|lease| lease.resource.clone()) {
                    Some(resource) => {
                        self.end(&resource, LeaseEnd::Abandoned, |token| Change::Abandoned {
                            token: fence(token),
                        });
                        AbandonReply::Abandoned
                    }
                    None => AbandonReply::Stale,
                })
            }
            Command::ForceRelease(force) => Reply::ForceRelease(match self.lease(&force.resource).cloned() {
                Some(lease) if lease.token == force.token.get() => {
                    let (token, reason) = (force.token, force.reason.clone());
                    self.end(&force.resource, LeaseEnd::Forced, |_| Change::Forced { token, reason });
                    ForceReleaseReply::Forced { owner: lease.terms.owner }
                }
                Some(lease) => ForceReleaseReply::OtherToken { held_by: self.held_by(&lease) },
                None => ForceReleaseReply::NotHeld,
            }),
            Command::TakeOver => self.take_over(),
            Command::SetPolicy(set) => Reply::SetPolicy(if set.replaces.get() != self.policy_revision {
                SetPolicyReply::OtherRevision { current: Revision::new(self.policy_revision).unwrap() }
            } else if let Err(invalid) = set.policy.check() {
                SetPolicyReply::Invalid(invalid)
            } else {
                self.policy = set.policy.clone();
                self.policy_revision = self.happened_kind(EventKind::PolicyChanged);
                SetPolicyReply::Changed
            }),
            Command::RaiseRevision(raise) => Reply::RaiseRevision(self.raise(raise.floor)),
            Command::RaiseFeatureLevel(raise) => {
                self.level = self.level.max(raise.level);
                Reply::RaiseFeatureLevel(self.level)
            }
        };
        (reply, self.revision)
    }

    fn acquire(&mut self, acquire: &Acquire) -> AcquireReply {
        let request = RequestKey::new(&acquire.caller, &acquire.request_id);
        let Some(record) = self.records.iter().find(|record| record.request == request).cloned() else {
            return self.acquire_new(&request, acquire).unwrap_or_else(AcquireReply::Refused);
        };
        let same = record.arguments.as_ref().is_none_or(|known| *known == arguments(acquire));
        if record.resource != acquire.resource || !same {
            return AcquireReply::Refused(AcquireRefusal::RequestIdReused);
        }
        match record.state {
            State::Granted => {
                let at = self.leases.iter().position(|lease| lease.request == request).unwrap();
                self.leases[at].unseen = None;
                AcquireReply::Granted(self.show(&self.leases[at], Told::Again))
            }
            State::Ended { how, token, .. } => {
                AcquireReply::Refused(AcquireRefusal::LeaseEnded { how, token: fence(token) })
            }
            State::TimedOut { .. } => AcquireReply::Refused(AcquireRefusal::TimedOut(Told::Again)),
            State::Cancelled { .. } => AcquireReply::Refused(AcquireRefusal::Cancelled(Told::Again)),
            State::Waiting(waiting) => {
                match waiting.call {
                    Call::Open { attempt, .. } if attempt != acquire.attempt => {
                        let superseded = AcquireReply::Refused(AcquireRefusal::Superseded);
                        self.answers.push((attempt, superseded, self.revision));
                    }
                    _ => {}
                }
                if self.is_free(&acquire.resource) {
                    return AcquireReply::Granted(self.grant(&request, waiting.terms, acquire.attempt));
                }
                self.set_call(&request, Call::Open { attempt: acquire.attempt, term: self.term });
                AcquireReply::Queued
            }
        }
    }

    fn acquire_new(
        &mut self,
        request: &RequestKey,
        acquire: &Acquire,
    ) -> Result<AcquireReply, AcquireRefusal> {
        let ttl = acquire.ttl.map_or(self.policy.ttl_ms_default, Ttl::as_ms);
        self.policy.check_ttl(Ttl::from_ms(ttl)).map_err(AcquireRefusal::OutOfPolicy)?;
        self.policy.check_wait(acquire.wait).map_err(AcquireRefusal::OutOfPolicy)?;
        self.policy.check_lock_delay(acquire.lock_delay).map_err(AcquireRefusal::OutOfPolicy)?;
        let terms = Terms {
            owner: acquire.owner.clone(),
            ttl,
            delay: acquire.lock_delay.as_ms(),
            id: acquire.lease_id,
            server_made: acquire.request_id_from == RequestIdFrom::Server,
        };
        let mut record = Record {
            request: request.clone(),
            caller: acquire.caller.clone(),
            resource: acquire.resource.clone(),
            arguments: Some(arguments(acquire)),
            state: State::Granted,
        };
        if self.is_free(&acquire.resource) {
            self.room(self.lease_room(&acquire.resource)).map_err(AcquireRefusal::OverLimit)?;
            self.records.push(record);
            return Ok(AcquireReply::Granted(self.grant(request, terms, acquire.attempt)));
        }
        let Wait::UpToMs(wait) = acquire.wait else {
            return Err(match self.closed_until(&acquire.resource) {
                Some(until) => AcquireRefusal::LockDelay { remaining_ms: until - self.now },
                None => AcquireRefusal::Held(self.held_by(self.lease(&acquire.resource).unwrap())),
            });
        };
        self.room(self.waiter_room(&acquire.resource)).map_err(AcquireRefusal::OverLimit)?;
        let place = self.happened(&acquire.resource, &acquire.owner, Change::Queued);
        record.state = State::Waiting(Waiting {
            terms,
            place,
            since: self.now,
            until: self.now + wait,
            call: Call::Open { attempt: acquire.attempt, term: self.term },
        });
        self.records.push(record);
        Ok(AcquireReply::Queued)
    }

    fn room(&self, first: Result<(), OverLimit>) -> Result<(), OverLimit> {
        first?;
        let max = self.policy.outcomes_max;
        if self.records.len() as u64 >= max { Err(OverLimit::Outcomes { max }) } else { Ok(()) }
    }

    fn lease_room(&self, resource: &ResourceName) -> Result<(), OverLimit> {
        let of_namespace = |lease: &&Lease| lease.resource.namespace() == resource.namespace();
        let max = self.policy.leases_per_namespace_max;
        if self.leases.iter().filter(of_namespace).count() as u64 >= max {
            return Err(OverLimit::LeasesOfNamespace { max });
        }
        let max = self.policy.leases_max;
        if self.leases.len() as u64 >= max { Err(OverLimit::Leases { max }) } else { Ok(()) }
    }

    fn waiter_room(&self, resource: &ResourceName) -> Result<(), OverLimit> {
        let max = self.policy.waiters_per_resource_max;
        if self.waiters(resource).len() as u64 >= max {
            return Err(OverLimit::WaitersOfResource { max });
        }
        let max = self.policy.waiters_per_namespace_max;
        let namespace = resource.namespace();
        let of_namespace = self.waiting().filter(|(record, _)| record.resource.namespace() == namespace);
        if of_namespace.count() as u64 >= max {
            return Err(OverLimit::WaitersOfNamespace { max });
        }
        let max = self.policy.waiters_max;
        if self.waiting().count() as u64 >= max { Err(OverLimit::Waiters { max }) } else { Ok(()) }
    }

    fn held_by(&self, lease: &Lease) -> HeldBy {
        HeldBy {
            holder: lease.terms.owner.clone(),
            token: fence(lease.token),
            remaining_ms: lease.until - self.now,
            queue_length: self.waiters(&lease.resource).len() as u64,
        }
    }

    /// The place among the leases of the one that is proven.
    fn prove(&self, resource: &ResourceName, proof: &Proof) -> Result<usize, NotHolder> {
        if matches!(proof, Proof::OwnerToken { .. }) && !self.policy.owner_token_proof {
            return Err(NotHolder::ProofNotAllowed);
        }
        let proven = |lease: &Lease| match proof {
            Proof::LeaseId(id) => lease.terms.id == *id,
            Proof::OwnerToken { caller, owner, token } => {
                lease.caller == *caller && lease.terms.owner == *owner && lease.token == token.get()
            }
        };
        let current = self.leases.iter().position(|lease| lease.resource == *resource && proven(lease));
        current.ok_or_else(|| {
            self.records
                .iter()
                .filter(|record| record.resource == *resource)
                .find_map(|record| match (&record.state, proof) {
                    (State::Ended { how, id, .. }, Proof::LeaseId(shown)) if id == shown => Some(*how),
                    (State::Ended { how, token: ended, .. }, Proof::OwnerToken { caller, token, .. })
                        if *ended == token.get() && record.caller == *caller =>
                    {
                        Some(*how)
                    }
                    _ => None,
                })
                .map_or(NotHolder::UnknownLease, NotHolder::Ended)
        })
    }

    fn renew(&mut self, renewal: &Renewal) -> RenewReply {
        let at = match self.prove(&renewal.resource, &renewal.proof) {
            Ok(at) => at,
            Err(why) => return RenewReply::NotHolder(why),
        };
        if let Some(ttl) = renewal.ttl
            && let Err(out_of_policy) = self.policy.check_ttl(ttl)
        {
            return RenewReply::OutOfPolicy(out_of_policy);
        }
        let lease = &mut self.leases[at];
        let ttl = renewal.ttl.map_or(lease.terms.ttl, Ttl::as_ms);
        let wanted = self.now + ttl;
        let until = lease.until.max(wanted.min(lease.hold_until));
        if until <= self.now {
            return RenewReply::NotHolder(NotHolder::Ended(LeaseEnd::Expired));
        }
        if wanted <= lease.hold_until || until > lease.until {
            lease.graced = false;
        }
        lease.until = until;
        lease.terms.ttl = ttl;
        lease.unseen = None;
        let last = if wanted > lease.hold_until { Last::Final } else { Last::No };
        RenewReply::Renewed { remaining_ms: until - self.now, last }
    }

    fn cancel(&mut self, cancel: &Cancel) -> CancelReply {
        let request = RequestKey::new(&cancel.caller, &cancel.request_id);
        let Some(record) = self.records.iter().find(|record| record.request == request).cloned() else {
            if let Err(limit) = self.room(Ok(())) {
                return CancelReply::OverLimit(limit);
            }
            self.records.push(Record {
                request,
                caller: cancel.caller.clone(),
                resource: cancel.resource.clone(),
                arguments: None,
                state: State::Cancelled { at: self.now },
            });
            return CancelReply::Cancelled(Told::First);
        };
        if record.resource != cancel.resource {
            return CancelReply::RequestIdReused;
        }
        match record.state {
            State::Waiting(_) => {
                self.wait_over(&request, Over::Cancelled);
                CancelReply::Cancelled(Told::First)
            }
            State::Granted => {
                let at = self.leases.iter().position(|lease| lease.request == request).unwrap();
                self.leases[at].unseen = None;
                CancelReply::Granted(self.show(&self.leases[at], Told::Again))
            }
            State::Ended { how, token, .. } => CancelReply::LeaseEnded { how, token: fence(token) },
            State::TimedOut { .. } | State::Cancelled { .. } => CancelReply::Cancelled(Told::Again),
        }
    }

    fn detach(&mut self, detach: &Detach) -> DetachReply {
        let Some(record) = self.records.iter().find(|record| record.request == detach.request).cloned()
        else {
            return DetachReply::Stale;
        };
        if let Some(lease) = self.leases.iter().find(|lease| lease.request == detach.request) {
            return match lease.unseen {
                Some((attempt, _)) if attempt == detach.attempt => {
                    DetachReply::Granted(self.show(lease, Told::First))
                }
                _ => DetachReply::Stale,
            };
        }
        let State::Waiting(waiting) = record.state else { return DetachReply::Stale };
        if !matches!(waiting.call, Call::Open { attempt, .. } if attempt == detach.attempt) {
            return DetachReply::Stale;
        }
        let waiters = self.waiters(&record.resource);
        let ahead = waiters.iter().filter(|(_, other)| other.place < waiting.place).count();
        if detach.departure == Departure::Told {
            self.make_returnable(&detach.request);
        }
        self.detach_waiter(&detach.request);
        if waiting.terms.server_made && detach.departure == Departure::Lost {
            return DetachReply::Dropped;
        }
        DetachReply::Detached { position: ahead as u64 + 1 }
    }

    fn take_over(&mut self) -> Reply {
        self.term += 1;
        let anybody_waits = self.waiting().next().is_some();
        self.presence_until = anybody_waits.then_some(self.now + 2_000);
        for lease in &mut self.leases {
            let least = self.now + self.policy.failover_grace_ms.min(lease.terms.ttl);
            if !lease.graced && least > lease.until {
                lease.graced = true;
                lease.until = least;
            }
        }
        Reply::TakeOver
    }

    fn raise(&mut self, floor: Revision) -> RaiseRevisionReply {
        let max = Revision::new(1 << 52).unwrap();
        if floor > max {
            return RaiseRevisionReply::TooHigh { max };
        }
        if floor.get() <= self.revision {
            return RaiseRevisionReply::AlreadyAbove;
        }
        self.revision = floor.get();
        let at = ClusterTime::from_ms(self.now);
        self.events.push(Event { revision: floor, at, kind: EventKind::RevisionRaised });
        RaiseRevisionReply::Raised
    }
}
