//! A node of the simulated world: the product's own, on a simulated disk and network.
//!
//! Owns: one machine and its lives, one process after the other. Never: a second way to put a node together.

use crate::disk::Disk;
use crate::network::{Door, HTTP, NATIVE, Network, PEER};
use crate::plan::Plan;
use kunci_process::Process;
use kunci_replica::{Member, PeerDoor, PeerSecurity, Replica, ReplicaConfig};
use kunci_server::http::HttpLimits;
use kunci_server::native::NativeLimits;
use kunci_server::node::{Ended, Founding, Ground, Listeners, StopSignals, live};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// The number of SIGTERM.
const TERM: i32 = 15;

/// A machine that a node lives on.
pub struct Machine {
    /// Its name on the network.
    pub name: String,
    /// Its disk.
    pub disk: Disk,
    /// How far its clock is off, in millionths.
    pub rate_ppm: i32,
    /// How many processes there were.
    pub lives: u64,
    /// The process that runs, or stands still.
    pub life: Option<Life>,
    /// A fault has it in hand; no other touches it.
    pub is_gripped: bool,
    /// Its disk was made to fail, so it may end by itself.
    pub is_excused: bool,
}

/// One process of a node.
#[derive(Clone)]
pub struct Life {
    /// The process.
    pub process: Process,
    /// Which one of its machine.
    pub number: u64,
    replica: Arc<Mutex<Option<Replica>>>,
    signals: mpsc::Sender<i32>,
}

impl Life {
    /// Its replica, once it belongs to a cluster.
    pub fn replica(&self) -> Option<Replica> {
        self.replica.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks it to stop in good order.
    pub fn ask_to_stop(&self) {
        // One that is asked already stops at once.
        let _ = self.signals.try_send(TERM);
    }

    /// Forgets the replica: it is dead, and what holds on to it would keep it in memory.
    pub fn forget(&self) {
        *self.replica.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// How a node is reached.
pub fn member(name: &str) -> Member {
    let address = |port: u16| format!("{name}:{port}");
    Member {
        peer: address(PEER),
        http: address(HTTP),
        native: address(NATIVE),
        zone: None,
        priority: 100,
        replaces: None,
    }
}

struct Signals(mpsc::Receiver<i32>);

impl StopSignals for Signals {
    async fn next(&mut self) -> i32 {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

impl Machine {
    /// A machine that is off.
    pub fn new(name: &str, disk: Disk) -> Self {
        Self {
            name: name.to_owned(),
            disk,
            rate_ppm: 0,
            lives: 0,
            life: None,
            is_gripped: false,
            is_excused: false,
        }
    }

    /// Starts a process of the node. `entered` is called with its replica, `ended` at its end, both in its name.
    pub fn start(
        &mut self,
        plan: &Plan,
        network: &Network,
        founding: Founding,
        entered: impl FnOnce(&Replica) + Send + 'static,
        ended: impl FnOnce(Ended) + Send + 'static,
    ) -> Life {
        self.lives += 1;
        let process = Process::new(format!("{}.{}", self.name, self.lives));
        process.set_rate(self.rate_ppm + crate::plants::node_rate_ppm());
        let (signals, received) = mpsc::channel(2);
        let life = Life { process, number: self.lives, replica: Arc::default(), signals };
        let ground = self.ground(plan, network, founding);
        let replica = Arc::clone(&life.replica);
        life.process.spawn(async move {
            let keep = move |new: &Replica| {
                *replica.lock().unwrap_or_else(PoisonError::into_inner) = Some(new.clone());
                entered(new);
            };
            ended(live(ground, Signals(received), keep).await);
        });
        self.life = Some(life.clone());
        life
    }

    fn ground(&self, plan: &Plan, network: &Network, founding: Founding) -> Ground<Door> {
        let plug = network.plug(&self.name);
        Ground {
            listeners: Listeners { http: plug.listen(HTTP), native: plug.listen(NATIVE) },
            http: SocketAddr::from(([127, 0, 0, 1], HTTP)),
            peers: PeerDoor::new(Box::new(plug.listen(PEER)), Arc::new(plug), PeerSecurity::Plain),
            storage: self.disk.storage(),
            replica: ReplicaConfig {
                heartbeat: plan.heartbeat,
                election: plan.election,
                snapshot_every_bytes: plan.snapshot_every_bytes,
                entries_kept: plan.entries_kept,
                ..ReplicaConfig::new("/data", member(&self.name))
            },
            // A thread and files of the system would be outside of the world.
            audit: None,
            http_limits: HttpLimits::default(),
            native_limits: NativeLimits::default(),
            founding,
        }
    }
}
