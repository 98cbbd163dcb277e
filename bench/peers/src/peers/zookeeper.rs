//! ZooKeeper: three nodes, the lock recipe of `zookeeper-client`.

use crate::driver::{CONNECTIONS, Caller, System};
use crate::servers::{Servers, free_ports, until};
use anyhow::{Context, bail};
use async_trait::async_trait;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zookeeper_client::{Acls, Client, CreateMode, LockOptions, LockPrefix};

/// Where Debian's package has it; the file's name ends with the version.
const JARS: &str = "/usr/share/java";
const JAR: &str = "zookeeper-3.";
const CLASSES: &str = "/etc/zookeeper/conf:/usr/share/java/*";
/// Every lock has a folder of its own in here.
const ROOT: &str = "/locks";

/// Three nodes.
pub(crate) struct ZooKeeper {
    servers: Servers,
    clients: [u16; 3],
}

/// What is installed.
pub(crate) fn version() -> anyhow::Result<String> {
    super::first_line(Command::new("java").arg("--version"))?;
    let jars = std::fs::read_dir(JARS).with_context(|| format!("read {JARS}"))?;
    let names = jars.filter_map(Result::ok).map(|jar| jar.file_name().to_string_lossy().into_owned());
    let name = names.into_iter().find(|name| name.starts_with(JAR));
    let name = name.with_context(|| format!("found no {JAR}*.jar in {JARS}"))?;
    Ok(name.trim_end_matches(".jar").replace('-', " "))
}

impl ZooKeeper {
    pub(crate) async fn start(folder: &Path) -> anyhow::Result<Self> {
        let [a, b, c, d, e, f, g, h, i] = free_ports()?;
        let (clients, quorum, election) = ([a, b, c], [d, e, f], [g, h, i]);
        let mut servers = Servers::default();
        for node in 0..3 {
            let data = folder.join(format!("node-{node}"));
            std::fs::create_dir(&data).context("make a data folder")?;
            std::fs::write(data.join("myid"), format!("{}\n", node + 1)).context("write myid")?;
            let mut config = format!(
                "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\n\
                 admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n",
                data.display(),
                clients[node]
            );
            for other in 0..3 {
                config += &format!("server.{}=127.0.0.1:{}:{}\n", other + 1, quorum[other], election[other]);
            }
            let file = folder.join(format!("node-{node}.cfg"));
            std::fs::write(&file, config).context("write the configuration")?;
            let mut command = Command::new("java");
            command.args(["-Xmx512m", "-cp", CLASSES, "org.apache.zookeeper.server.quorum.QuorumPeerMain"]);
            command.arg(&file);
            servers.start(&mut command, &folder.join(format!("node-{node}.log")))?;
        }
        let zookeeper = Self { servers, clients };
        until("wait for ZooKeeper", || async {
            let client = zookeeper.connect().await?;
            let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
            match client.create(ROOT, b"", &persistent).await {
                Ok(_) | Err(zookeeper_client::Error::NodeExists) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
        .await?;
        Ok(zookeeper)
    }

    async fn connect(&self) -> anyhow::Result<Client> {
        let cluster: Vec<String> = self.clients.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        Ok(Client::connect(&cluster.join(",")).await?)
    }
}

#[async_trait]
impl System for ZooKeeper {
    fn servers(&mut self) -> &mut Servers {
        &mut self.servers
    }

    async fn callers(&self, count: usize) -> anyhow::Result<Vec<Box<dyn Caller>>> {
        let mut sessions = Vec::new();
        for _ in 0..count.min(CONNECTIONS) {
            sessions.push(self.connect().await?);
        }
        Ok((0..count)
            .map(|caller| {
                let session = sessions[caller % sessions.len()].clone();
                Box::new(OneCaller { session, held: HashMap::new() }) as Box<dyn Caller>
            })
            .collect())
    }

    async fn leader(&self) -> anyhow::Result<usize> {
        for (place, port) in self.clients.iter().enumerate() {
            let mut stream = TcpStream::connect(("127.0.0.1", *port)).await.context("connect")?;
            stream.write_all(b"srvr").await.context("ask")?;
            let mut told = String::new();
            stream.read_to_string(&mut told).await.context("listen")?;
            if told.contains("Mode: leader") {
                return Ok(place);
            }
        }
        bail!("no node says that it leads")
    }
}

struct OneCaller {
    session: Client,
    /// The node that each lock is.
    held: HashMap<String, String>,
}

#[async_trait]
impl Caller for OneCaller {
    async fn acquire(&mut self, resource: &str) -> anyhow::Result<()> {
        let folder = format!("{ROOT}/{}", resource.replace('/', "-"));
        let prefix = LockPrefix::new_curator(&folder, "lock-")?;
        let parents = CreateMode::Container.with_acls(Acls::anyone_all());
        let options = LockOptions::new(Acls::anyone_all()).with_ancestor_options(parents)?;
        let lock = self.session.lock(prefix, b"", options).await?;
        let path = lock.lock_path().to_owned();
        // Its destructor would delete in the background; a release waits for the answer.
        std::mem::forget(lock);
        self.held.insert(resource.to_owned(), path);
        Ok(())
    }

    async fn renew(&mut self, _resource: &str) -> anyhow::Result<()> {
        bail!("a session is renewed as a whole")
    }

    async fn release(&mut self, resource: &str) -> anyhow::Result<()> {
        let path = self.held.remove(resource).context("it isn't held")?;
        Ok(self.session.delete(&path, None).await?)
    }
}
