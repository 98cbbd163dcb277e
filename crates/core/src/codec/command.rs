//! The bytes of commands. A number that was given to a command is never given to another.

use super::{DecodeError, Reader, Writer, policy};
use crate::command::{
    Abandon, Acquire, Cancel, Command, Departure, Detach, ForceRelease, Proof, RaiseFeatureLevel,
    RaiseRevision, Release, Renew, Renewal, RequestIdFrom, SetPolicy,
};
use crate::request::RequestKey;
use kunci_types::{Reason, RequestId, Wait};

const ACQUIRE: u8 = 1;
const RENEW: u8 = 2;
const RELEASE: u8 = 3;
const CANCEL: u8 = 4;
const DETACH: u8 = 5;
const ABANDON: u8 = 6;
const FORCE_RELEASE: u8 = 7;
const TAKE_OVER: u8 = 8;
const SET_POLICY: u8 = 9;
const RAISE_REVISION: u8 = 10;
const RAISE_FEATURE_LEVEL: u8 = 11;

pub(super) fn write(writer: &mut Writer, command: &Command) {
    match command {
        Command::Acquire(acquire) => {
            writer.u8(ACQUIRE);
            write_acquire(writer, acquire);
        }
        Command::Renew(renew) => {
            writer.u8(RENEW);
            writer.count(renew.leases.len());
            for renewal in &renew.leases {
                writer.resource(&renewal.resource);
                write_proof(writer, &renewal.proof);
                writer.option(renewal.ttl, |writer, ttl| writer.u64(ttl.as_ms()));
            }
        }
        Command::Release(release) => {
            writer.u8(RELEASE);
            writer.resource(&release.resource);
            write_proof(writer, &release.proof);
        }
        Command::Cancel(cancel) => {
            writer.u8(CANCEL);
            writer.resource(&cancel.resource);
            writer.caller(&cancel.caller);
            writer.text(cancel.request_id.as_str());
        }
        Command::Detach(detach) => {
            writer.u8(DETACH);
            writer.text(detach.request.as_str());
            writer.attempt(detach.attempt);
            writer.u8(match detach.departure {
                Departure::Lost => 0,
                Departure::Told => 1,
            });
        }
        Command::Abandon(abandon) => {
            writer.u8(ABANDON);
            writer.text(abandon.request.as_str());
            writer.attempt(abandon.attempt);
        }
        Command::ForceRelease(force) => {
            writer.u8(FORCE_RELEASE);
            writer.resource(&force.resource);
            writer.u64(force.token.get());
            writer.text(force.reason.as_str());
        }
        Command::TakeOver => writer.u8(TAKE_OVER),
        Command::SetPolicy(set) => {
            writer.u8(SET_POLICY);
            writer.u64(set.replaces.get());
            policy::write(writer, &set.policy);
        }
        Command::RaiseRevision(raise) => {
            writer.u8(RAISE_REVISION);
            writer.u64(raise.floor.get());
        }
        Command::RaiseFeatureLevel(raise) => {
            writer.u8(RAISE_FEATURE_LEVEL);
            writer.u64(raise.level.into());
        }
    }
}

fn write_acquire(writer: &mut Writer, acquire: &Acquire) {
    writer.resource(&acquire.resource);
    writer.caller(&acquire.caller);
    writer.owner(&acquire.owner);
    writer.text(acquire.request_id.as_str());
    writer.u8(match acquire.request_id_from {
        RequestIdFrom::Client => 0,
        RequestIdFrom::Server => 1,
    });
    writer.option(acquire.ttl, |writer, ttl| writer.u64(ttl.as_ms()));
    writer.u64(match acquire.wait {
        Wait::Try => 0,
        Wait::UpToMs(ms) => ms,
    });
    writer.u64(acquire.lock_delay.as_ms());
    writer.metadata(acquire.metadata.as_ref());
    writer.lease_id(&acquire.lease_id);
    writer.attempt(acquire.attempt);
}

fn write_proof(writer: &mut Writer, proof: &Proof) {
    match proof {
        Proof::LeaseId(lease_id) => {
            writer.u8(0);
            writer.lease_id(lease_id);
        }
        Proof::OwnerToken { caller, owner, token } => {
            writer.u8(1);
            writer.caller(caller);
            writer.owner(owner);
            writer.u64(token.get());
        }
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Command, DecodeError> {
    Ok(match reader.u8("command")? {
        ACQUIRE => Command::Acquire(read_acquire(reader)?),
        RENEW => Command::Renew(Renew { leases: reader.list("leases", read_renewal)? }),
        RELEASE => Command::Release(Release { resource: reader.resource()?, proof: read_proof(reader)? }),
        CANCEL => Command::Cancel(Cancel {
            resource: reader.resource()?,
            caller: reader.caller()?,
            request_id: read_request_id(reader)?,
        }),
        DETACH => Command::Detach(Detach {
            request: read_key(reader)?,
            attempt: reader.attempt()?,
            departure: match reader.u8("departure")? {
                0 => Departure::Lost,
                1 => Departure::Told,
                found => return Err(DecodeError::Meaningless { what: "departure", found: found.into() }),
            },
        }),
        ABANDON => Command::Abandon(Abandon { request: read_key(reader)?, attempt: reader.attempt()? }),
        FORCE_RELEASE => Command::ForceRelease(ForceRelease {
            resource: reader.resource()?,
            token: reader.token()?,
            reason: Reason::from_log(reader.text("reason")?),
        }),
        TAKE_OVER => Command::TakeOver,
        SET_POLICY => {
            Command::SetPolicy(SetPolicy { replaces: reader.revision()?, policy: policy::read(reader)? })
        }
        RAISE_REVISION => Command::RaiseRevision(RaiseRevision { floor: reader.revision()? }),
        RAISE_FEATURE_LEVEL => {
            let found = reader.u64("feature level")?;
            let level = u32::try_from(found)
                .map_err(|_| DecodeError::Meaningless { what: "feature level", found })?;
            Command::RaiseFeatureLevel(RaiseFeatureLevel { level })
        }
        found => return Err(DecodeError::UnknownCommand { found }),
    })
}

fn read_acquire(reader: &mut Reader<'_>) -> Result<Acquire, DecodeError> {
    let (resource, caller) = (reader.resource()?, reader.caller()?);
    Ok(Acquire {
        resource,
        owner: reader.owner_beside(&caller)?,
        caller,
        request_id: read_request_id(reader)?,
        request_id_from: match reader.u8("origin of the request id")? {
            0 => RequestIdFrom::Client,
            1 => RequestIdFrom::Server,
            found => {
                return Err(DecodeError::Meaningless {
                    what: "origin of the request id",
                    found: found.into(),
                });
            }
        },
        ttl: reader.option("lease duration", Reader::ttl)?,
        wait: Wait::from_ms(reader.u64("wait")?),
        lock_delay: reader.lock_delay()?,
        metadata: reader.metadata()?,
        lease_id: reader.lease_id()?,
        attempt: reader.attempt()?,
    })
}

fn read_renewal(reader: &mut Reader<'_>) -> Result<Renewal, DecodeError> {
    Ok(Renewal {
        resource: reader.resource()?,
        proof: read_proof(reader)?,
        ttl: reader.option("lease duration", Reader::ttl)?,
    })
}

fn read_proof(reader: &mut Reader<'_>) -> Result<Proof, DecodeError> {
    match reader.u8("proof")? {
        0 => Ok(Proof::LeaseId(reader.lease_id()?)),
        1 => {
            Ok(Proof::OwnerToken { caller: reader.caller()?, owner: reader.owner()?, token: reader.token()? })
        }
        found => Err(DecodeError::Meaningless { what: "proof", found: found.into() }),
    }
}

fn read_request_id(reader: &mut Reader<'_>) -> Result<RequestId, DecodeError> {
    Ok(RequestId::from_log(reader.text("request id")?))
}

fn read_key(reader: &mut Reader<'_>) -> Result<RequestKey, DecodeError> {
    Ok(RequestKey::from_log(reader.text("request")?))
}
