//! The systems that are compared.
//!
//! Owns: which there are, what each can do, and what each promises in the mode that is measured. Never: how one is loaded.

mod etcd;
mod kunci;
mod redis;
mod zookeeper;

use crate::Args;
use crate::driver::System;
use crate::load::Workload;
use anyhow::{Context, ensure};
use clap::ValueEnum;
use std::path::Path;
use std::process::Command;

/// A system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    Kunci,
    Etcd,
    #[value(name = "zookeeper")]
    ZooKeeper,
    Redis,
}

impl Peer {
    pub(crate) const ALL: [Self; 4] = [Self::Kunci, Self::Etcd, Self::ZooKeeper, Self::Redis];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kunci => "kunci",
            Self::Etcd => "etcd",
            Self::ZooKeeper => "ZooKeeper",
            Self::Redis => "Redis",
        }
    }

    /// What an answer means in the mode that is measured.
    pub(crate) fn promise(self) -> &'static str {
        match self {
            Self::Kunci => {
                "three nodes; a grant is on the disks of two before it is answered; a lease per lock, a fencing token, \
                 waiters in order"
            }
            Self::Etcd => {
                "three nodes, `Lock` and `Unlock` of its own lock service; a grant is on the disks of two; one lease per caller, \
                 but in the mix one per lock; waiters in order; the key's revision can serve as a token"
            }
            Self::ZooKeeper => {
                "three nodes, the lock recipe (an ephemeral sequential node, each waiter watches the one before); a grant is on \
                 the disks of two; a lock lives as long as its session, so there is nothing to renew per lock"
            }
            Self::Redis => {
                "one server, AOF with `appendfsync always`, `SET NX PX` and a script that compares and deletes; **no quorum**: \
                 with that server's machine all locks are gone; no queue and no token"
            }
        }
    }

    /// Whether a workload makes sense for it.
    pub(crate) fn can(self, workload: &Workload) -> bool {
        match workload {
            Workload::Cycles { .. } => true,
            // Redis has nobody wait in order; a poll in a loop would measure the loop. The largest queue is measured against
            // kunci's own small one.
            Workload::HandOff { callers } => self == Self::Kunci || (self != Self::Redis && *callers <= 100),
            // A session is renewed as a whole in ZooKeeper, whatever it holds.
            Workload::Mix { .. } => self != Self::ZooKeeper,
            Workload::LeaderKilled { .. } => self != Self::Redis,
        }
    }

    /// What is installed.
    pub(crate) fn version(self, args: &Args) -> anyhow::Result<String> {
        match self {
            Self::Kunci => first_line(Command::new(&args.kunci).arg("--version")),
            Self::Etcd => first_line(Command::new(&args.etcd).arg("--version")),
            Self::ZooKeeper => zookeeper::version(),
            Self::Redis => first_line(Command::new("redis-server").arg("--version")),
        }
    }

    /// Starts it with its data in `folder`, and returns when it serves.
    pub(crate) async fn start(self, args: &Args, folder: &Path) -> anyhow::Result<Box<dyn System>> {
        Ok(match self {
            Self::Kunci => Box::new(kunci::Kunci::start(&args.kunci, folder).await?),
            Self::Etcd => Box::new(etcd::Etcd::start(&args.etcd, folder).await?),
            Self::ZooKeeper => Box::new(zookeeper::ZooKeeper::start(folder).await?),
            Self::Redis => Box::new(redis::Redis::start(folder).await?),
        })
    }
}

fn first_line(command: &mut Command) -> anyhow::Result<String> {
    let output =
        command.output().with_context(|| format!("{} can't be started", command.get_program().display()))?;
    ensure!(output.status.success(), "{} ends with {}", command.get_program().display(), output.status);
    let told = String::from_utf8_lossy(&output.stdout);
    Ok(told.lines().next().unwrap_or_default().trim().to_owned())
}
