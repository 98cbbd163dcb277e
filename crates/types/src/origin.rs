//! Where a command came from, for the audit log and for nothing else.
//!
//! Never: decides anything; an address is no proof of who somebody is.

use crate::ids::Owner;
use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// The address that a client's connection came from, as the node saw it that took the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientAddress {
    ip: IpAddr,
    port: u16,
}

impl ClientAddress {
    /// An address and a port. An IPv4 address that is written as an IPv6 one becomes what it is.
    pub const fn new(ip: IpAddr, port: u16) -> Self {
        Self { ip: ip.to_canonical(), port }
    }

    /// The address.
    pub const fn ip(self) -> IpAddr {
        self.ip
    }

    /// The port.
    pub const fn port(self) -> u16 {
        self.port
    }
}

impl From<SocketAddr> for ClientAddress {
    fn from(address: SocketAddr) -> Self {
        Self::new(address.ip(), address.port())
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.ip, self.port).fmt(f)
    }
}

/// Where a command came from, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The name that authentication gave.
    pub caller: Option<Owner>,
    /// Where the client's connection came from.
    pub address: Option<ClientAddress>,
}

impl Origin {
    /// Nobody, from nowhere: what this program asks for by itself.
    pub const UNKNOWN: Self = Self { caller: None, address: None };

    /// A client that hasn't proved who it is.
    pub fn at(address: Option<ClientAddress>) -> Self {
        Self { caller: None, address }
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        self.caller.is_none() && self.address.is_none()
    }
}

/// What the wall clock of a leader showed, in ms since 1970: for people. It may jump and may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// So many ms since 1970.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970.
    pub const fn as_ms(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn an_address_is_written_as_people_write_it_and_the_same_host_has_one_form() {
        let shown = |text: &str| ClientAddress::from(text.parse::<SocketAddr>().unwrap()).to_string();
        assert_eq!(shown("10.0.0.5:4000"), "10.0.0.5:4000");
        assert_eq!(shown("[::ffff:10.0.0.5]:4000"), "10.0.0.5:4000");
        assert_eq!(shown("[2001:db8::1]:4000"), "[2001:db8::1]:4000");
    }
}
