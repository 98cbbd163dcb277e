//! Addresses: where a door listens, and how others reach it.
//!
//! Owns: which texts are addresses. Never: looks a name up, but for this machine's own.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The longest name that DNS has.
const HOST_BYTES_MAX: usize = 253;

/// Where to listen: an IP address and a port.
pub(super) fn listened(text: &str) -> Option<SocketAddr> {
    // Only this name, because it means the same on every machine; any other would be looked up once and go stale.
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port| SocketAddr::from(([127, 0, 0, 1], port))),
        None => text.parse().ok(),
    }
}

/// How others reach a door: a host that isn't "everywhere", and a port that isn't "any".
pub(super) fn advertised(text: &str) -> Option<String> {
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    let in_brackets = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip = match in_brackets {
        Some(inner) => Some(IpAddr::from(inner.parse::<Ipv6Addr>().ok()?)),
        None => host.parse().ok().filter(IpAddr::is_ipv4),
    };
    let is_usable = ip.map_or_else(|| is_name(host), |ip| !ip.is_unspecified());
    is_usable.then(|| format!("{host}:{port}"))
}

fn is_name(host: &str) -> bool {
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    // A last label of digits would make it a mistyped IP address.
    let is_ip_like =
        host.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    (1..=HOST_BYTES_MAX).contains(&host.len()) && host.bytes().all(is_of_a_name) && !is_ip_like
}

/// How others reach a door that listens here, when nobody said: for "everywhere" by this machine's name.
pub(super) fn by_default(listening: SocketAddr) -> String {
    if !listening.ip().is_unspecified() {
        return listening.to_string();
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let named = advertised(&format!("{name}:{}", listening.port()));
    // A machine without a usable name can be told one by --advertise-…; alone, it reaches itself.
    named.unwrap_or_else(|| format!("localhost:{}", listening.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C140: an address that only means something on the node itself is never named to others.
    #[test]
    fn an_address_for_others_is_one_host_and_one_port() {
        for text in ["db1:7400", "db1.example.org:7400", "10.0.0.1:1", "[2001:db8::1]:7400", "127.0.0.1:7400"]
        {
            assert_eq!(advertised(text).as_deref(), Some(text));
        }
        for text in [
            "",
            ":7400",
            "db1",
            "db1:",
            "db1:0",
            "db1:65536",
            "0.0.0.0:7400",
            "[::]:7400",
            "::1:7400",
            "[db1]:7400",
            "10.0.0:7400",
            "10.0.0.256:7400",
            "a b:7400",
            "http://db1:7400",
            "7400",
            "1:2",
        ] {
            assert_eq!(advertised(text), None, "{text}");
        }
    }

    #[test]
    fn a_door_that_listens_everywhere_is_reached_by_the_name_of_the_machine() {
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 7400));

        let named = by_default(everywhere);

        assert!(named.ends_with(":7400") && advertised(&named).is_some(), "{named}");
        assert_eq!(by_default(SocketAddr::from(([10, 0, 0, 1], 7400))), "10.0.0.1:7400");
    }

    #[test]
    fn localhost_is_the_only_name_that_is_an_address() {
        assert_eq!(listened("localhost:80").unwrap().to_string(), "127.0.0.1:80");
        assert!(listened("example.org:80").is_none());
    }
}
