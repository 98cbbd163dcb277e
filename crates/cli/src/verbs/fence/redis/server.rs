//! One Redis server, or each primary of a cluster.
//!
//! Owns: connections, their times, and what is asked. Never: judges an answer.

use super::findings::{Facts, Library};
use crate::exit::{Exit, Failure};
use redis::{
    Client, Cmd, Connection, ConnectionAddr, ConnectionInfo, FromRedisValue, IntoConnectionInfo as _, Value,
    cmd,
};
use std::collections::BTreeMap;
use std::time::Duration;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A connection to one server.
pub(super) struct Server {
    address: String,
    connection: Connection,
}

impl Server {
    /// The server that the URL names; when it is a node of a cluster, every primary of that cluster instead.
    pub(super) fn find_primaries(url: &str) -> Result<Vec<Self>, Failure> {
        if url.starts_with("rediss:") {
            return Err(Failure::usage(
                "rediss:// (TLS) isn't spoken by this command: load the library with `kunci fence redis print | \
                 redis-cli --tls -u URL -x FUNCTION LOAD REPLACE`",
            ));
        }
        let at = url.into_connection_info().map_err(|error| {
            // The URL may have a password in it, so it isn't repeated.
            Failure::usage(format!("--redis: {error}; expected redis://[user[:password]@]host[:port]"))
        })?;
        let mut first = Self::connect(&at)?;
        if first.info()?.get("redis_mode").is_none_or(|mode| mode != "cluster") {
            return Ok(vec![first]);
        }
        let nodes: String = first.ask(cmd("CLUSTER").arg("NODES"))?;
        let ConnectionAddr::Tcp(host, _) = at.addr() else { return Ok(vec![first]) };
        primaries(&nodes, host)
            .into_iter()
            .map(|(host, port)| Self::connect(&at.clone().set_addr(ConnectionAddr::Tcp(host, port))))
            .collect()
    }

    fn connect(at: &ConnectionInfo) -> Result<Self, Failure> {
        let address = at.addr().to_string();
        let connect = || {
            let connection = Client::open(at.clone())?.get_connection_with_timeout(CONNECT_WITHIN)?;
            connection.set_read_timeout(Some(ANSWER_WITHIN))?;
            connection.set_write_timeout(Some(ANSWER_WITHIN))?;
            Ok(connection)
        };
        match connect() {
            Ok(connection) => Ok(Self { address, connection }),
            Err(error) => Err(failure(&address, "connect", &error)),
        }
    }

    /// `host:port`, or the path of its socket.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Loads a library, in place of what has its name.
    pub(super) fn load(&mut self, library: &str) -> Result<(), Failure> {
        self.ask(cmd("FUNCTION").arg(&["LOAD", "REPLACE", library]))
    }

    /// All that a check looks at.
    pub(super) fn facts(&mut self) -> Result<Facts, Failure> {
        let info = self.info()?;
        // What an operator has forbidden or a service doesn't have isn't known: that is a fact too.
        let mut setting = |name: &str| {
            let found: Option<BTreeMap<String, String>> =
                cmd("CONFIG").arg(&["GET", name]).query(&mut self.connection).ok();
            found.and_then(|mut found| found.remove(name))
        };
        let (sync, replicas_min) = (setting("appendfsync"), setting("min-replicas-to-write"));
        let library = self.library();
        let call =
            cmd("FCALL_RO").arg(&["kunci_kept", "1", "kunci:fence:{kunci}"]).query(&mut self.connection);
        let call_error = match call {
            Ok(Value::Nil | Value::BulkString(_)) => None,
            Ok(other) => Some(format!("an answer that it never gives: {other:?}")),
            // Another node of the cluster has the slot; the function isn't the reason.
            Err(error) if error.code() == Some("MOVED") => None,
            Err(error) => Some(error.to_string()),
        };
        Ok(Facts { info, sync, replicas_min, library, call_error })
    }

    fn library(&mut self) -> Library {
        let list =
            cmd("FUNCTION").arg(&["LIST", "LIBRARYNAME", "kunci", "WITHCODE"]).query(&mut self.connection);
        match list {
            Ok(list) => match code_in(&list) {
                Some(code) if code == kunci_fence::redis::LIBRARY => Library::Current,
                Some(_) => Library::Other,
                None => Library::Missing,
            },
            Err(error) => Library::Unknown(error.to_string()),
        }
    }

    fn info(&mut self) -> Result<BTreeMap<String, String>, Failure> {
        let text: String = self.ask(&cmd("INFO"))?;
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect())
    }

    fn ask<T: FromRedisValue>(&mut self, asked: &Cmd) -> Result<T, Failure> {
        asked.query(&mut self.connection).map_err(|error| failure(&self.address, "ask", &error))
    }
}

fn failure(address: &str, what: &str, error: &redis::RedisError) -> Failure {
    // A server that answers by an error has refused; anything else is a matter of getting there.
    let exit = if error.code().is_some() { Exit::Refused } else { Exit::Unavailable };
    Failure::new(exit, format!("{what} Redis at {address}: {error}"))
}

/// Host and port of each primary in the answer to `CLUSTER NODES`. A node that doesn't know its own address is the one
/// that was asked.
fn primaries(nodes: &str, asked: &str) -> Vec<(String, u16)> {
    let primary = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (address, flags) = (words.next()?, words.next()?);
        let has = |flag: &str| flags.split(',').any(|other| other == flag);
        if !has("master") || has("fail") || has("noaddr") || has("handshake") {
            return None;
        }
        let (host, port) = address.split(['@', ',']).next()?.rsplit_once(':')?;
        let host = if host.is_empty() { asked } else { host };
        Some((host.to_owned(), port.parse().ok()?))
    };
    nodes.lines().filter_map(primary).collect()
}

/// The value after `library_code` in the answer to `FUNCTION LIST`, however deep it is.
fn code_in(answer: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    };
    match answer {
        Value::Array(items) => {
            let code = items.windows(2).find(|pair| text(&pair[0]).as_deref() == Some("library_code"));
            code.and_then(|pair| text(&pair[1])).or_else(|| items.iter().find_map(code_in))
        }
        Value::Map(pairs) => {
            let code = pairs.iter().find(|(name, _)| text(name).as_deref() == Some("library_code"));
            code.and_then(|(_, code)| text(code))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primaries_are_found_in_what_a_cluster_says_of_itself() {
        let nodes = "\
            07c3 10.0.0.1:6379@16379,a.local myself,master - 0 0 1 connected 0-5460\n\
            e7d1 10.0.0.2:6379@16379 slave 07c3 0 1 2 connected\n\
            292f 10.0.0.3:6379@16379 master,fail - 0 1 3 disconnected 5461-10922\n\
            824f ::1:6380@16380 master - 0 1 4 connected 10923-16383\n\
            61f0 :7911@17911 master - 0 1 5 connected\n\
            half\n";
        let found = primaries(nodes, "redis.local");
        let expected = [("10.0.0.1", 6379), ("::1", 6380), ("redis.local", 7911)];
        assert_eq!(found, expected.map(|(host, port)| (host.to_owned(), port)));
    }
}
