//! The bytes of where an entry came from: the wall time, then one mark for each command.
//!
//! Commands of one connection come one behind the other, so each says no more than that it came from where the one before
//! it did; the first costs 8 bytes for IPv4. Every value has one spelling.

use super::{DecodeError, Reader, Writer};
use crate::command::Provenance;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use kunci_types::{ClientAddress, Origin, WallTime};

const UNKNOWN: u8 = 0;
const AS_BEFORE: u8 = 1;
const KNOWN: u8 = 2;

const NO_ADDRESS: u8 = 0;
const IPV4: u8 = 4;
const IPV6: u8 = 6;

pub(super) fn write(writer: &mut Writer, provenance: &Provenance) {
    writer.option(provenance.wall(), |writer, wall| writer.u64(wall.as_ms()));
    let origins = provenance.origins();
    writer.u8(u8::from(!origins.is_empty()));
    let mut before = &Origin::UNKNOWN;
    for origin in origins {
        if origin.is_unknown() {
            writer.u8(UNKNOWN);
        } else if origin == before {
            writer.u8(AS_BEFORE);
        } else {
            writer.u8(KNOWN);
            writer.option(origin.caller.as_ref(), Writer::owner);
            writer.address(origin.address);
        }
        before = origin;
    }
}

pub(super) fn read(reader: &mut Reader<'_>, commands: usize) -> Result<Provenance, DecodeError> {
    let meaningless = |what, found: u8| DecodeError::Meaningless { what, found: found.into() };
    let wall = reader.option("wall time", |reader| Ok(WallTime::from_ms(reader.u64("wall time")?)))?;
    let mut origins: Vec<Origin> = Vec::new();
    match reader.u8("origins")? {
        0 if wall.is_some() => return Ok(Provenance::new(wall, origins)),
        1 => {}
        found => return Err(meaningless("whether origins are known", found)),
    }
    // Each command takes a byte of them at least.
    origins.reserve(commands.min(reader.bytes.len()));
    for _ in 0..commands {
        let before = origins.last().unwrap_or(&Origin::UNKNOWN);
        let origin = match reader.u8("origin")? {
            UNKNOWN => Origin::UNKNOWN,
            AS_BEFORE if !before.is_unknown() => before.clone(),
            KNOWN => {
                let caller = reader.option("caller", Reader::owner)?;
                let origin = Origin { caller, address: reader.address()? };
                if origin.is_unknown() || origin == *before {
                    return Err(meaningless("an origin in a longer form than it needs", KNOWN));
                }
                origin
            }
            found => return Err(meaningless("origin", found)),
        };
        origins.push(origin);
    }
    if origins.iter().all(Origin::is_unknown) {
        return Err(meaningless("origins of which none is known", 1));
    }
    Ok(Provenance::new(wall, origins))
}

impl Writer {
    pub(crate) fn address(&mut self, address: Option<ClientAddress>) {
        let Some(address) = address else { return self.u8(NO_ADDRESS) };
        match address.ip() {
            IpAddr::V4(ip) => {
                self.u8(IPV4);
                self.bytes.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                self.u8(IPV6);
                self.bytes.extend_from_slice(&ip.octets());
            }
        }
        self.bytes.extend_from_slice(&address.port().to_be_bytes());
    }
}

impl Reader<'_> {
    pub(crate) fn address(&mut self) -> Result<Option<ClientAddress>, DecodeError> {
        let ip = match self.u8("address")? {
            NO_ADDRESS => return Ok(None),
            IPV4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>("address")?)),
            IPV6 => IpAddr::V6(Ipv6Addr::from(self.array::<16>("address")?)),
            found => return Err(DecodeError::Meaningless { what: "address", found: found.into() }),
        };
        let address = ClientAddress::new(ip, u16::from_be_bytes(self.array("port")?));
        if address.ip() != ip {
            return Err(DecodeError::Meaningless {
                what: "an IPv4 address as an IPv6 one",
                found: IPV6.into(),
            });
        }
        Ok(Some(address))
    }
}
