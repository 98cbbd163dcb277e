//! Redis, guarded by the function library.
//!
//! Owns: a value in Redis and how it is written. Never: the fence; that is `kunci_fence::redis`.

use crate::redis_server::RedisServer;
use crate::target::{Fence, Rejected, Target, Writer};
use redis::Connection;
use std::path::Path;

/// S9, C03: see `run`.
#[test]
fn a_late_write_to_redis_is_refused_in_every_round() {
    crate::run::run::<Redis>();
}

pub(crate) struct Redis(RedisServer);

impl Target for Redis {
    const NAME: &'static str = "redis";
    type Writer = RedisWriter;

    fn start(folder: &Path) -> Self {
        let server = RedisServer::start(folder, &["--appendonly", "yes"]);
        let load = ["LOAD", "REPLACE", kunci_fence::redis::LIBRARY];
        redis::cmd("FUNCTION").arg(&load).exec(&mut server.connect()).unwrap();
        Self(server)
    }

    fn address(&self) -> String {
        self.0.url()
    }

    async fn value(&self, item: &str) -> Option<String> {
        redis::cmd("GET").arg(item).query(&mut self.0.connect()).unwrap()
    }
}

pub(crate) struct RedisWriter {
    connection: Connection,
    item: String,
}

impl Writer for RedisWriter {
    async fn open(address: &str, item: &str) -> Self {
        let connection = redis::Client::open(address).unwrap().get_connection().unwrap();
        Self { connection, item: item.to_owned() }
    }

    async fn write(&mut self, fence: Fence, token: u64, value: &str) -> Result<(), Rejected> {
        let item = self.item.as_str();
        let written = match fence {
            Fence::Off => redis::cmd("SET").arg(&[item, value]).exec(&mut self.connection),
            Fence::On => {
                let fence_key = kunci_fence::redis::fence_key(item).unwrap();
                redis::cmd("FCALL")
                    .arg(&["kunci_set", "2", &fence_key, item, &token.to_string(), value])
                    .exec(&mut self.connection)
            }
        };
        match written {
            Ok(()) => Ok(()),
            Err(error) => {
                let text =
                    format!("{} {}", error.code().unwrap_or_default(), error.detail().unwrap_or_default());
                let rejected = kunci_fence::redis::rejected(&text).expect(&text);
                Err(Rejected { found: rejected.found.get(), kept: rejected.kept.get() })
            }
        }
    }
}
