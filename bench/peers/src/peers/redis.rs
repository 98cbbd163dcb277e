//! Redis: one server that syncs every write, `SET NX PX` and a script, the crate `redis`.

use crate::driver::{CONNECTIONS, Caller, System, TTL};
use crate::servers::{Servers, free_ports, until};
use anyhow::{Context, ensure};
use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::{ExistenceCheck, Script, SetExpiry, SetOptions};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Deletes, or renews, only what still has the caller's own value.
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
const RENEW: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

/// How long a caller waits before it asks again for what is held.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// One server.
pub(crate) struct Redis {
    servers: Servers,
    port: u16,
    scripts: Arc<Scripts>,
}

struct Scripts {
    release: Script,
    renew: Script,
}

impl Redis {
    pub(crate) async fn start(folder: &Path) -> anyhow::Result<Self> {
        let [port] = free_ports()?;
        let mut servers = Servers::default();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]).arg("--dir").arg(folder);
        servers.start(&mut command, &folder.join("redis.log"))?;
        let scripts = Arc::new(Scripts { release: Script::new(RELEASE), renew: Script::new(RENEW) });
        let redis = Self { servers, port, scripts };
        until("wait for Redis", || async {
            redis::cmd("PING").query_async::<String>(&mut redis.connect().await?).await.context("ping")
        })
        .await?;
        Ok(redis)
    }

    async fn connect(&self) -> anyhow::Result<MultiplexedConnection> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port))?;
        Ok(client.get_multiplexed_async_connection().await?)
    }
}

#[async_trait]
impl System for Redis {
    fn servers(&mut self) -> &mut Servers {
        &mut self.servers
    }

    async fn callers(&self, count: usize) -> anyhow::Result<Vec<Box<dyn Caller>>> {
        let mut connections = Vec::new();
        for _ in 0..count.min(CONNECTIONS) {
            connections.push(self.connect().await?);
        }
        Ok((0..count)
            .map(|caller| {
                Box::new(OneCaller {
                    connection: connections[caller % connections.len()].clone(),
                    scripts: Arc::clone(&self.scripts),
                    id: caller,
                    acquired: 0,
                    held: HashMap::new(),
                }) as Box<dyn Caller>
            })
            .collect())
    }
}

struct OneCaller {
    connection: MultiplexedConnection,
    scripts: Arc<Scripts>,
    id: usize,
    acquired: u64,
    /// The value that proves each lock.
    held: HashMap<String, String>,
}

#[async_trait]
impl Caller for OneCaller {
    async fn acquire(&mut self, resource: &str) -> anyhow::Result<()> {
        self.acquired += 1;
        // As long as a random value would be; here it only has to differ.
        let value = format!("{:011}{:011}", self.id, self.acquired);
        let options = SetOptions::default()
            .conditional_set(ExistenceCheck::NX)
            .with_expiration(SetExpiry::PX(u64::try_from(TTL.as_millis())?));
        loop {
            let set: Option<String> = redis::cmd("SET")
                .arg(resource)
                .arg(&value)
                .arg(&options)
                .query_async(&mut self.connection)
                .await?;
            if set.is_some() {
                self.held.insert(resource.to_owned(), value);
                return Ok(());
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    async fn renew(&mut self, resource: &str) -> anyhow::Result<()> {
        let value = self.held.get(resource).context("it isn't held")?;
        let mut call = self.scripts.renew.key(resource);
        call.arg(value).arg(u64::try_from(TTL.as_millis())?);
        ensure!(call.invoke_async::<i64>(&mut self.connection).await? == 1, "the lease has ended");
        Ok(())
    }

    async fn release(&mut self, resource: &str) -> anyhow::Result<()> {
        let value = self.held.remove(resource).context("it isn't held")?;
        let mut call = self.scripts.release.key(resource);
        call.arg(value);
        ensure!(call.invoke_async::<i64>(&mut self.connection).await? == 1, "the lease has ended");
        Ok(())
    }
}
