//! kunci: three nodes, `kunci-client`.

use crate::driver::{CONNECTIONS, Caller, System, TTL};
use crate::servers::{Servers, free_ports, until};
use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use kunci_client::native::{Outcome, Request};
use kunci_client::{Client, HeldLock, ResourceName};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// More than any load has.
const WAITERS_MAX: u32 = 20_000;

/// Three nodes.
pub(crate) struct Kunci {
    servers: Servers,
    program: PathBuf,
    http: [u16; 3],
    native: [u16; 3],
}

impl Kunci {
    pub(crate) async fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        let ports: [u16; 9] = free_ports()?;
        let [a, b, c, d, e, f, g, h, i] = ports;
        let (http, native, peer) = ([a, b, c], [d, e, f], [g, h, i]);
        let mut servers = Servers::default();
        for node in 0..3 {
            let mut command = Command::new(program);
            command.args(["server", "--wait-for-cluster", "--log-level", "warn"]);
            command.arg("--data").arg(folder.join(format!("node-{node}")));
            for (door, port) in [("--http", http[node]), ("--native", native[node]), ("--peer", peer[node])] {
                command.arg(door).arg(format!("127.0.0.1:{port}"));
            }
            servers.start(&mut command, &folder.join(format!("node-{node}.log")))?;
        }
        let kunci = Self { servers, program: program.to_owned(), http, native };
        kunci.retried("form a cluster", &["cluster", "init"]).await?;
        for port in &peer[1..] {
            let address = format!("127.0.0.1:{port}");
            kunci.retried("add a member", &["cluster", "add", &address]).await?;
        }
        kunci.let_many_wait()?;
        Ok(kunci)
    }

    async fn retried(&self, what: &str, arguments: &[&str]) -> anyhow::Result<String> {
        until(what, || async { self.told(arguments, self.http[0]) }).await
    }

    /// What the command line says to the node at `port`.
    fn told(&self, arguments: &[&str], port: u16) -> anyhow::Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .args(["--url", &format!("http://127.0.0.1:{port}")])
            .output()
            .context("run kunci")?;
        ensure!(
            output.status.success(),
            "kunci {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// By default at most 1,024 wait for one resource; in one load more do.
    fn let_many_wait(&self) -> anyhow::Result<()> {
        let url = format!("http://127.0.0.1:{}/policy", self.http[0]);
        let mut answer: Value = ureq::get(&url).call()?.body_mut().read_json().context("read the policy")?;
        let mut policy = answer["policy"].take();
        policy["waitersPerResourceMax"] = WAITERS_MAX.into();
        let change = json!({ "policy": policy, "replaces": answer["policyRevision"] });
        ureq::put(&url).send_json(change).context("change the policy")?;
        Ok(())
    }
}

#[async_trait]
impl System for Kunci {
    fn servers(&mut self) -> &mut Servers {
        &mut self.servers
    }

    async fn callers(&self, count: usize) -> anyhow::Result<Vec<Box<dyn Caller>>> {
        let addresses = self.native.map(|port| format!("127.0.0.1:{port}"));
        let mut clients = Vec::new();
        // Each client keeps a connection to each node and asks the leader.
        for _ in 0..count.min(CONNECTIONS) {
            clients.push(Client::connect(addresses.clone()).await.context("connect")?);
        }
        Ok((0..count)
            .map(|caller| {
                let client = clients[caller % clients.len()].clone();
                Box::new(OneCaller { client, held: HashMap::new() }) as Box<dyn Caller>
            })
            .collect())
    }

    async fn leader(&self) -> anyhow::Result<usize> {
        for port in self.http {
            let Ok(told) = self.told(&["cluster", "status", "--json"], port) else { continue };
            let status: Value = serde_json::from_str(&told).context("read the cluster's status")?;
            let leads = |node: &&Value| node["id"].is_u64() && node["id"] == status["leader"];
            let leader = status["nodes"].as_array().into_iter().flatten().find(leads);
            let address = leader.and_then(|node| node["http"].as_str()).unwrap_or_default();
            if let Some(place) = self.http.iter().position(|port| address.ends_with(&format!(":{port}"))) {
                return Ok(place);
            }
        }
        bail!("no node says who leads")
    }
}

struct OneCaller {
    client: Client,
    held: HashMap<String, HeldLock>,
}

#[async_trait]
impl Caller for OneCaller {
    async fn acquire(&mut self, resource: &str) -> anyhow::Result<()> {
        let lock = self.client.lock(resource).ttl(TTL).acquire().await?;
        self.held.insert(resource.to_owned(), lock);
        Ok(())
    }

    async fn renew(&mut self, resource: &str) -> anyhow::Result<()> {
        let lock = self.held.get(resource).context("it isn't held")?;
        let request =
            Request::Renew { key: ResourceName::parse(resource)?, lease_id: lock.lease_id(), ttl: None };
        match self.client.ask(&request).await? {
            Outcome::Renewed { .. } => Ok(()),
            other => bail!("not renewed: {other:?}"),
        }
    }

    async fn release(&mut self, resource: &str) -> anyhow::Result<()> {
        let lock = self.held.remove(resource).context("it isn't held")?;
        Ok(lock.release().await?)
    }
}
