//! The bytes of a snapshot's records: its head, one holding, one request.

use super::{DecodeError, FORMAT_1, Reader, Writer, policy};
use crate::lease::{Grace, Holding, Lease, Sight};
use crate::reply::LeaseEnd;
use crate::request::{
    Arguments, Attachment, Closed, Request, RequestKey, RequestState, Returnable, Terms, Waiting,
    fingerprint_from_log,
};
use crate::table::Head;
use alloc::boxed::Box;
use kunci_types::ResourceName;

pub(crate) fn write_head(writer: &mut Writer, head: &Head) {
    writer.u64(head.feature_level.into());
    writer.time(head.now);
    writer.u64(head.revision.get());
    writer.u64(head.term);
    writer.option(head.presence_until, Writer::time);
    policy::write(writer, &head.policy);
    writer.u64(head.policy_revision.get());
}

pub(crate) fn read_head(reader: &mut Reader<'_>) -> Result<Head, DecodeError> {
    let found = reader.u64("feature level")?;
    Ok(Head {
        feature_level: u32::try_from(found)
            .map_err(|_| DecodeError::Meaningless { what: "feature level", found })?,
        now: reader.time()?,
        revision: reader.revision()?,
        term: reader.u64("takeovers")?,
        presence_until: reader.option("presence", Reader::time)?,
        policy: policy::read(reader)?,
        policy_revision: reader.revision()?,
    })
}

pub(crate) fn write_holding(writer: &mut Writer, resource: &ResourceName, holding: &Holding) {
    writer.resource(resource);
    match holding {
        Holding::Closed { until } => {
            writer.u8(0);
            writer.time(*until);
        }
        Holding::Held(lease) => {
            writer.u8(1);
            writer.text(lease.request.as_str());
            write_terms(writer, &lease.terms);
            writer.u64(lease.token.get());
            writer.time(lease.granted_at);
            writer.time(lease.until);
            writer.time(lease.hold_until);
            write_sight(writer, lease.sight);
            writer.u8(match lease.grace {
                Grace::Unused => 0,
                Grace::Used => 1,
            });
        }
    }
}

pub(crate) fn read_holding(reader: &mut Reader<'_>) -> Result<(ResourceName, Holding), DecodeError> {
    let resource = reader.resource()?;
    let holding = match reader.u8("holding")? {
        0 => Holding::Closed { until: reader.time()? },
        1 => Holding::Held(Lease {
            request: RequestKey::from_log(reader.text("request")?),
            terms: read_terms(reader)?,
            token: reader.token()?,
            granted_at: reader.time()?,
            until: reader.time()?,
            hold_until: reader.time()?,
            sight: read_sight(reader)?,
            grace: match reader.u8("grace")? {
                0 => Grace::Unused,
                1 => Grace::Used,
                found => return Err(DecodeError::Meaningless { what: "grace", found: found.into() }),
            },
        }),
        found => return Err(DecodeError::Meaningless { what: "holding", found: found.into() }),
    };
    Ok((resource, holding))
}

pub(crate) fn write_request(writer: &mut Writer, key: &RequestKey, request: &Request) {
    writer.text(key.as_str());
    writer.resource(&request.resource);
    match request.arguments {
        Arguments::Unseen => writer.u8(0),
        Arguments::Seen(fingerprint) => {
            writer.u8(1);
            writer.u64(fingerprint.get());
        }
    }
    match &request.state {
        RequestState::Waiting(waiting) => {
            writer.u8(0);
            write_waiting(writer, waiting);
        }
        RequestState::Granted { token } => {
            writer.u8(1);
            writer.u64(token.get());
        }
        RequestState::Ended { at, how, token, lease_id } => {
            writer.u8(2);
            writer.time(*at);
            writer.u8(match how {
                LeaseEnd::Released => 0,
                LeaseEnd::Expired => 1,
                LeaseEnd::Forced => 2,
                LeaseEnd::Abandoned => 3,
            });
            writer.u64(token.get());
            writer.lease_id(lease_id);
        }
        RequestState::Closed { at, how } => {
            writer.u8(3);
            writer.time(*at);
            writer.u8(match how {
                Closed::TimedOut => 0,
                Closed::Cancelled => 1,
            });
        }
    }
}

pub(crate) fn read_request(reader: &mut Reader<'_>) -> Result<(RequestKey, Request), DecodeError> {
    let key = RequestKey::from_log(reader.text("request")?);
    let resource = reader.resource()?;
    let arguments = match reader.u8("arguments")? {
        0 => Arguments::Unseen,
        1 => Arguments::Seen(fingerprint_from_log(reader.u64("arguments")?)),
        found => return Err(DecodeError::Meaningless { what: "arguments", found: found.into() }),
    };
    let state = match reader.u8("request state")? {
        0 => RequestState::Waiting(Box::new(read_waiting(reader)?)),
        1 => RequestState::Granted { token: reader.token()? },
        2 => RequestState::Ended {
            at: reader.time()?,
            how: match reader.u8("lease end")? {
                0 => LeaseEnd::Released,
                1 => LeaseEnd::Expired,
                2 => LeaseEnd::Forced,
                3 => LeaseEnd::Abandoned,
                found => return Err(DecodeError::Meaningless { what: "lease end", found: found.into() }),
            },
            token: reader.token()?,
            lease_id: reader.lease_id()?,
        },
        3 => RequestState::Closed {
            at: reader.time()?,
            how: match reader.u8("request end")? {
                0 => Closed::TimedOut,
                1 => Closed::Cancelled,
                found => return Err(DecodeError::Meaningless { what: "request end", found: found.into() }),
            },
        },
        found => return Err(DecodeError::Meaningless { what: "request state", found: found.into() }),
    };
    Ok((key, Request { resource, arguments, state }))
}

fn write_waiting(writer: &mut Writer, waiting: &Waiting) {
    write_terms(writer, &waiting.terms);
    writer.u64(waiting.place.get());
    writer.time(waiting.since);
    writer.time(waiting.until);
    match waiting.attachment {
        Attachment::Attached { attempt, term } => {
            writer.u8(0);
            writer.attempt(attempt);
            writer.u64(term);
        }
        Attachment::Detached { until } => {
            writer.u8(1);
            writer.time(until);
        }
    }
}

fn read_waiting(reader: &mut Reader<'_>) -> Result<Waiting, DecodeError> {
    Ok(Waiting {
        terms: read_terms(reader)?,
        place: reader.revision()?,
        since: reader.time()?,
        until: reader.time()?,
        attachment: match reader.u8("attachment")? {
            0 => Attachment::Attached { attempt: reader.attempt()?, term: reader.u64("takeovers")? },
            1 => Attachment::Detached { until: reader.time()? },
            found => return Err(DecodeError::Meaningless { what: "attachment", found: found.into() }),
        },
    })
}

fn write_terms(writer: &mut Writer, terms: &Terms) {
    writer.owner(&terms.owner);
    writer.u64(terms.ttl.as_ms());
    writer.u64(terms.lock_delay.as_ms());
    writer.metadata(terms.metadata.as_ref());
    writer.lease_id(&terms.lease_id);
    writer.u8(match terms.returnable {
        Returnable::Yes => 0,
        Returnable::No => 1,
    });
    writer.address(terms.address);
}

fn read_terms(reader: &mut Reader<'_>) -> Result<Terms, DecodeError> {
    Ok(Terms {
        owner: reader.owner()?,
        ttl: reader.ttl()?,
        lock_delay: reader.lock_delay()?,
        metadata: reader.metadata()?,
        lease_id: reader.lease_id()?,
        returnable: match reader.u8("origin of the request id")? {
            0 => Returnable::Yes,
            1 => Returnable::No,
            found => {
                return Err(DecodeError::Meaningless {
                    what: "origin of the request id",
                    found: found.into(),
                });
            }
        },
        address: if reader.format == FORMAT_1 { None } else { reader.address()? },
    })
}

fn write_sight(writer: &mut Writer, sight: Sight) {
    match sight {
        Sight::Seen => writer.u8(0),
        Sight::Meant { attempt, term } => {
            writer.u8(1);
            writer.attempt(attempt);
            writer.u64(term);
        }
    }
}

fn read_sight(reader: &mut Reader<'_>) -> Result<Sight, DecodeError> {
    match reader.u8("sight")? {
        0 => Ok(Sight::Seen),
        1 => Ok(Sight::Meant { attempt: reader.attempt()?, term: reader.u64("takeovers")? }),
        found => Err(DecodeError::Meaningless { what: "sight", found: found.into() }),
    }
}
