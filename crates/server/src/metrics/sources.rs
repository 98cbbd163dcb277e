//! What a scrape reads from.

use super::door::DoorMeasures;
use super::process::Process;
use crate::service::{Service, wall_clock};
use kunci_replica::{NodeStatus, Readings};

/// What a scrape reads from.
pub(crate) struct Sources<'a> {
    pub(super) http: &'a DoorMeasures,
    /// Numbers that only the HTTP door has.
    pub(super) more: HttpNumbers,
    pub(super) native: Option<&'a DoorMeasures>,
    /// None while the node belongs to no cluster.
    pub(super) member: Option<MemberSources<'a>>,
    /// None where the system doesn't say.
    pub(super) process: Option<Process>,
    pub(super) wall_ms: u64,
}

/// Numbers that only the HTTP door has.
pub(crate) struct HttpNumbers {
    /// Answers by class of status, from 1xx.
    pub(crate) answers: Vec<(usize, u64)>,
    /// Calls that were passed on.
    pub(crate) passed_on: u64,
    /// Open streams of events.
    pub(crate) streams: usize,
    /// Streams of events that were too many.
    pub(crate) streams_too_many: u64,
}

/// What a member of a cluster reads from.
pub(super) struct MemberSources<'a> {
    pub(super) service: &'a Service,
    pub(super) status: NodeStatus,
    pub(super) readings: Readings,
}

impl<'a> Sources<'a> {
    /// Everything as it is now.
    pub(crate) fn new(
        http: &'a DoorMeasures,
        more: HttpNumbers,
        native: Option<&'a DoorMeasures>,
        service: Option<&'a Service>,
    ) -> Self {
        let member = service.map(|service| MemberSources {
            service,
            status: service.status_of_node(),
            readings: service.readings(),
        });
        Self { http, more, native, member, process: Process::read(), wall_ms: wall_clock::ms_since_1970() }
    }

    /// Each door with its name.
    pub(super) fn doors(&self) -> impl Iterator<Item = (&'static str, &'a DoorMeasures)> {
        [("http", Some(self.http)), ("native", self.native)]
            .into_iter()
            .filter_map(|(name, door)| door.map(|door| (name, door)))
    }
}
