//! The model's actions as entries, and the names in them.

use super::{Action, Bound, STEP_MS, TTL_MS, WAIT_MS, World};
use kunci_core::RequestKey;
use kunci_core::command::{
    Abandon, Acquire, Cancel, Command, Departure, Detach, Entry, ForceRelease, Proof, Release, Renew,
    Renewal, RequestIdFrom,
};
use kunci_core::view::Status;
use kunci_types::{Attempt, Caller, LeaseId, LockDelay, Owner, Reason, RequestId, ResourceName, Ttl, Wait};

impl Bound {
    pub(crate) fn entry(&self, world: &mut World, action: Action) -> Entry {
        let now = world.table.now();
        let later = now.plus_ms(STEP_MS);
        let (now, command) = match action {
            Action::Try(request) => (now, Some(self.acquire(world, request, Wait::Try))),
            Action::Wait(request) => (now, Some(self.acquire(world, request, Wait::UpToMs(WAIT_MS)))),
            Action::Renew(request) => (now, Some(self.renew(world, request))),
            Action::StepAndRenew(request) => (later, Some(self.renew(world, request))),
            Action::Release(request) => {
                let (resource, proof) = self.proof(world, request);
                (now, Some(Command::Release(Release { resource, proof })))
            }
            Action::Cancel(request) => {
                let resource = resource(self.resource_of[request]);
                let (caller, request_id) = (caller(request), request_id());
                (now, Some(Command::Cancel(Cancel { resource, caller, request_id })))
            }
            Action::Detach { request, call } => {
                let (request, attempt) = (key(request), attempt(request, call));
                (now, Some(Command::Detach(Detach { request, attempt, departure: Departure::Lost })))
            }
            Action::Abandon(request) => {
                let call = world.memory.calls[request] - 1;
                let (request, attempt) = (key(request), attempt(request, call));
                (now, Some(Command::Abandon(Abandon { request, attempt })))
            }
            Action::Force(at) => {
                let resource = resource(at);
                let Status::Held(held) = world.table.status(&resource) else {
                    // The memory says that it is held; a table that says otherwise breaks the first property.
                    world.memory.expect(0, false);
                    return Entry::new(now, Vec::new());
                };
                let reason = Reason::parse("why").unwrap();
                (now, Some(Command::ForceRelease(ForceRelease { resource, token: held.token, reason })))
            }
            Action::TakeOver => (now, Some(Command::TakeOver)),
            Action::StepAndTakeOver => (later, Some(Command::TakeOver)),
            Action::Step | Action::Restore => (later, None),
        };
        Entry::new(now, command.into_iter().collect())
    }

    fn acquire(&self, world: &mut World, request: usize, wait: Wait) -> Command {
        let call = world.memory.calls[request];
        world.memory.calls[request] += 1;
        Command::Acquire(Acquire {
            resource: resource(self.resource_of[request]),
            caller: caller(request),
            owner: owner(request),
            request_id: request_id(),
            request_id_from: RequestIdFrom::Client,
            ttl: Some(Ttl::from_ms(TTL_MS)),
            wait,
            lock_delay: LockDelay::from_ms(self.lock_delay_ms),
            metadata: None,
            lease_id: lease_id(request, call),
            attempt: attempt(request, call),
        })
    }

    fn renew(&self, world: &World, request: usize) -> Command {
        let (resource, proof) = self.proof(world, request);
        Command::Renew(Renew { leases: vec![Renewal { resource, proof, ttl: None }] })
    }

    fn proof(&self, world: &World, request: usize) -> (ResourceName, Proof) {
        let call = world.memory.granted[request].unwrap_or(0);
        (resource(self.resource_of[request]), Proof::LeaseId(lease_id(request, call)))
    }
}

pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

pub(crate) fn resource(at: usize) -> ResourceName {
    ResourceName::from_log(["r", "s"][at])
}

pub(crate) fn owner(request: usize) -> Owner {
    Owner::from_log(["0", "1", "2"][request])
}

pub(crate) fn caller(request: usize) -> Caller {
    Caller::Unproven(owner(request))
}

pub(crate) fn request_id() -> RequestId {
    RequestId::from_log("q")
}

pub(crate) fn key(request: usize) -> RequestKey {
    RequestKey::new(&caller(request), &request_id())
}

pub(crate) fn attempt(request: usize, call: u64) -> Attempt {
    Attempt::new(request as u64 * 10 + call)
}

pub(crate) fn lease_id(request: usize, call: u64) -> LeaseId {
    let mut bytes = [0; 16];
    bytes[0] = u8::try_from(request).unwrap();
    bytes[1] = u8::try_from(call).unwrap();
    LeaseId::from_bytes(bytes)
}
