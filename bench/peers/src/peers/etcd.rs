//! etcd: three nodes, the lock service of its own API, `etcd-client`.

use crate::driver::{CONNECTIONS, Caller, System, TTL};
use crate::servers::{Servers, free_ports, until};
use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use etcd_client::{Client, LeaseKeepAliveStream, LeaseKeeper, LockOptions};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A caller's session outlives any run, as one that is kept alive does.
const SESSION: Duration = Duration::from_secs(3_600);

/// Three nodes.
pub(crate) struct Etcd {
    servers: Servers,
    clients: [u16; 3],
}

impl Etcd {
    pub(crate) async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let [a, b, c, d, e, f] = free_ports()?;
        let (clients, peers) = ([a, b, c], [d, e, f]);
        let members: Vec<String> =
            (0..3).map(|node| format!("n{node}=http://127.0.0.1:{}", peers[node])).collect();
        let mut servers = Servers::default();
        for node in 0..3 {
            let client = format!("http://127.0.0.1:{}", clients[node]);
            let peer = format!("http://127.0.0.1:{}", peers[node]);
            let mut command = Command::new(program);
            command.args(["--name", &format!("n{node}"), "--log-level", "error"]);
            command.arg("--data-dir").arg(folder.join(format!("node-{node}")));
            command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
            command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
            command.args(["--initial-cluster", &members.join(","), "--initial-cluster-state", "new"]);
            servers.start(&mut command, &folder.join(format!("node-{node}.log")))?;
        }
        let etcd = Self { servers, clients };
        until("wait for etcd", || async {
            let mut client = etcd.connect().await?;
            client.put("ready", "yes", None).await?;
            Ok(())
        })
        .await?;
        Ok(etcd)
    }

    async fn connect(&self) -> anyhow::Result<Client> {
        let endpoints = self.clients.map(|port| format!("http://127.0.0.1:{port}"));
        Ok(Client::connect(endpoints, None).await?)
    }
}

#[async_trait]
impl System for Etcd {
    fn servers(&mut self) -> &mut Servers {
        &mut self.servers
    }

    async fn callers(&self, count: usize) -> anyhow::Result<Vec<Box<dyn Caller>>> {
        let mut clients = Vec::new();
        for _ in 0..count.min(CONNECTIONS) {
            clients.push(self.connect().await?);
        }
        let mut callers: Vec<Box<dyn Caller>> = Vec::new();
        for caller in 0..count {
            let mut client = clients[caller % clients.len()].clone();
            let session = Lease::grant(&mut client, SESSION).await?;
            callers.push(Box::new(OneCaller { client, session, held: HashMap::new(), own: HashMap::new() }));
        }
        Ok(callers)
    }

    async fn leader(&self) -> anyhow::Result<usize> {
        for (place, port) in self.clients.iter().enumerate() {
            let Ok(mut client) = Client::connect([format!("http://127.0.0.1:{port}")], None).await else {
                continue;
            };
            let status = client.status().await?;
            let me = status.header().map_or(0, etcd_client::ResponseHeader::member_id);
            if me != 0 && me == status.leader() {
                return Ok(place);
            }
        }
        bail!("no node says that it leads")
    }
}

/// A lease, and the stream that renews it once it was renewed.
struct Lease {
    id: i64,
    stream: Option<(LeaseKeeper, LeaseKeepAliveStream)>,
}

impl Lease {
    async fn grant(client: &mut Client, ttl: Duration) -> anyhow::Result<Self> {
        let id = client.lease_grant(ttl.as_secs().cast_signed(), None).await?.id();
        Ok(Self { id, stream: None })
    }

    async fn renew(&mut self, client: &mut Client) -> anyhow::Result<()> {
        let (keeper, answers) = match &mut self.stream {
            Some(stream) => stream,
            // To open it renews too.
            None => {
                self.stream = Some(client.lease_keep_alive(self.id).await?);
                return Ok(());
            }
        };
        keeper.keep_alive().await?;
        let answer = answers.message().await?.context("the stream ended")?;
        ensure!(answer.ttl() > 0, "the lease has ended");
        Ok(())
    }
}

struct OneCaller {
    client: Client,
    /// What its locks hang on, as in a session of etcd's own lock library.
    session: Lease,
    /// The key that each lock has in etcd.
    held: HashMap<String, Vec<u8>>,
    /// Leases of locks that were renewed by themselves.
    own: HashMap<String, Lease>,
}

#[async_trait]
impl Caller for OneCaller {
    async fn acquire(&mut self, resource: &str) -> anyhow::Result<()> {
        // A name of the mix has a lease of its own, so that it can be renewed by itself.
        let lease = if resource.starts_with("mix/") {
            let own = Lease::grant(&mut self.client, TTL).await?;
            let id = own.id;
            self.own.insert(resource.to_owned(), own);
            id
        } else {
            self.session.id
        };
        let lock = self.client.lock(resource, Some(LockOptions::new().with_lease(lease))).await?;
        self.held.insert(resource.to_owned(), lock.key().to_vec());
        Ok(())
    }

    async fn renew(&mut self, resource: &str) -> anyhow::Result<()> {
        self.own.get_mut(resource).context("it has no lease of its own")?.renew(&mut self.client).await
    }

    async fn release(&mut self, resource: &str) -> anyhow::Result<()> {
        let key = self.held.remove(resource).context("it isn't held")?;
        match self.own.remove(resource) {
            // The key goes with its lease.
            Some(own) => drop(self.client.lease_revoke(own.id).await?),
            None => drop(self.client.unlock(key).await?),
        }
        Ok(())
    }
}
