//! Forming a cluster, and changing who is in it.
//!
//! Owns: what an operator sends and is told. Never: whether a change is safe; the leader knows that.

use crate::invalid::Invalid;
use crate::number::{if_there, whole, whole_if_there};
use kunci_types::Revision;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A host name of 253 bytes, a colon and a port of 5 digits.
const ADDRESS_BYTES_MAX: usize = 259;

fn invalid(field: &str, text: impl Into<String>) -> Invalid {
    Invalid::Value { field: field.to_owned(), text: text.into() }
}

/// Checks a `host:port`. The host may be a name, an IPv4 address, or an IPv6 address in brackets.
fn address(field: &str, text: &str) -> Result<String, Invalid> {
    let bad = || {
        invalid(field, "expected host:port, such as 10.0.0.7:7402, [fd00::7]:7402 or node-2.example.org:7402")
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let port = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse::<u16>());
    let is_port = matches!(port, Some(Ok(1..)));
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(ipv6) => ipv6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !host.is_empty() && host.bytes().all(fits)
        }
    };
    if is_port && is_host && text.len() <= ADDRESS_BYTES_MAX { Ok(text.to_owned()) } else { Err(bad()) }
}

/// Checks a node's id: ids begin with 1.
fn node(field: &str, id: u64) -> Result<u64, Invalid> {
    if id == 0 {
        return Err(invalid(field, "found 0: the ids of nodes begin with 1"));
    }
    Ok(id)
}

/// Form a cluster with this node as its first member.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InitRequest {
    /// Every fencing token of the new cluster is larger than this: 0 to 2^53 − 1. For a cluster that takes the place
    /// of another one. Default 0.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false, maximum = 9_007_199_254_740_991_u64)]
    token_floor: Option<u64>,
}

impl InitRequest {
    /// The floor, when there is one.
    ///
    /// # Errors
    /// When JSON couldn't carry the tokens above it.
    pub fn read(&self) -> Result<Option<Revision>, Invalid> {
        let Some(floor) = self.token_floor.filter(|floor| *floor > 0) else { return Ok(None) };
        let max = Revision::MAX.get();
        let floor = Revision::new(floor).filter(|floor| floor.get() < max);
        let bad =
            || invalid("tokenFloor", format!("expected 0 to {}, so that there are tokens above it", max - 1));
        floor.map(Some).ok_or_else(bad)
    }
}

/// The cluster is formed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitBody {
    /// Its id: 32 hexadecimal digits.
    pub cluster_id: String,
    /// This node's id in it.
    pub node_id: u64,
    /// The cluster's revision.
    pub revision: u64,
}

/// Take a new node into the cluster.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddRequest {
    /// `host:port` at which the members reach it.
    #[schema(example = "10.0.0.7:7402")]
    peer: String,
}

impl AddRequest {
    /// The address.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(&self) -> Result<String, Invalid> {
        address("peer", &self.peer)
    }
}

/// The node is a member: a learner first, and a voter by itself once it has caught up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddBody {
    /// Its id.
    pub node_id: u64,
    /// `true` when it was one before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// The cluster's revision, as far as the leader has applied it.
    pub revision: u64,
}

/// Let a new node take the place of a member.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReplaceRequest {
    /// The member that goes.
    #[serde(deserialize_with = "whole")]
    node_id: u64,
    /// `host:port` at which the members reach the new node.
    #[schema(example = "10.0.0.7:7402")]
    peer: String,
}

impl ReplaceRequest {
    /// Who goes, and where the new node is.
    ///
    /// # Errors
    /// Names the field at fault.
    pub fn read(&self) -> Result<(u64, String), Invalid> {
        Ok((node("nodeId", self.node_id)?, address("peer", &self.peer)?))
    }
}

/// The new node is a learner; once it has caught up it takes the other one's place in one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplaceBody {
    /// The new node's id.
    pub node_id: u64,
    /// The member that goes.
    pub replaces: u64,
    /// The cluster's revision, as far as the leader has applied it.
    pub revision: u64,
}

/// Take a member out of the cluster.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RemoveRequest {
    /// The member.
    #[serde(deserialize_with = "whole")]
    node_id: u64,
    /// `true`: also when the rest would be close to losing its quorum. Default `false`.
    #[serde(default, deserialize_with = "if_there")]
    #[schema(nullable = false)]
    force: Option<bool>,
}

impl RemoveRequest {
    /// Who goes, and whether by force.
    ///
    /// # Errors
    /// When no node can have that id.
    pub fn read(&self) -> Result<(u64, bool), Invalid> {
        Ok((node("nodeId", self.node_id)?, self.force.unwrap_or(false)))
    }
}

/// It isn't a member, and its id is never used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoveBody {
    /// `true`.
    pub removed: bool,
    /// `true` when it was none before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// The cluster's revision, as far as the leader has applied it.
    pub revision: u64,
}

/// Let another member lead.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// The id of the member that shall lead. Default: the one that is best suited.
    #[serde(default, deserialize_with = "whole_if_there")]
    #[schema(nullable = false)]
    to: Option<u64>,
}

impl TransferRequest {
    /// Who shall lead, when one was named.
    ///
    /// # Errors
    /// When no node can have that id.
    pub fn read(&self) -> Result<Option<u64>, Invalid> {
        self.to.map(|id| node("to", id)).transpose()
    }
}

/// Another member leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TransferBody {
    /// Its id.
    pub leader: u64,
    /// The cluster's revision, as far as the node that answers has applied it.
    pub revision: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for good in ["10.0.0.7:7402", "[fd00::7]:7402", "node-2.example.org:1", "a_b:65535"] {
            assert_eq!(address("peer", good).unwrap(), good);
        }
        let long = format!("{}:7402", "a".repeat(255));
        for bad in [
            "",
            "host",
            "host:",
            ":7402",
            "host:0",
            "host:65536",
            "host:+1",
            "fd00::7:7402",
            "[x]:1",
            "a b:1",
        ] {
            assert!(address("peer", bad).is_err(), "{bad}");
        }
        assert!(address("peer", &long).is_err());
    }

    /// Case C96: tokens stay what JSON carries exactly.
    #[test]
    fn a_token_floor_leaves_room_for_tokens() {
        let floor = |json: &str| parse::<InitRequest>(json.as_bytes()).and_then(|request| request.read());
        assert_eq!(floor("{}").unwrap(), None);
        assert_eq!(floor(r#"{"tokenFloor":0}"#).unwrap(), None);
        assert_eq!(floor(r#"{"tokenFloor":41}"#).unwrap(), Revision::new(41));
        assert!(floor(r#"{"tokenFloor":9007199254740990}"#).is_ok());
        for bad in ["9007199254740991", "9007199254740992", "-1", "1.5", "null"] {
            assert_eq!(
                floor(&format!(r#"{{"tokenFloor":{bad}}}"#)).unwrap_err().field(),
                Some("tokenFloor"),
                "{bad}"
            );
        }
    }

    #[test]
    fn ids_of_nodes_begin_with_one() {
        let removed = |json: &str| parse::<RemoveRequest>(json.as_bytes()).and_then(|request| request.read());
        assert_eq!(removed(r#"{"nodeId":3}"#).unwrap(), (3, false));
        assert_eq!(removed(r#"{"nodeId":3,"force":true}"#).unwrap(), (3, true));
        assert_eq!(removed(r#"{"nodeId":0}"#).unwrap_err().field(), Some("nodeId"));
        let moved = parse::<TransferRequest>(br#"{"to":0}"#).unwrap().read();
        assert_eq!(moved.unwrap_err().field(), Some("to"));
    }
}
