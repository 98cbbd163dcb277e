//! A holder as a process of its own: this test binary, executed again.
//!
//! Owns: what such a process does, and how the test starts it, stops it and hears from it. It is told values to write, one
//! a line, on its standard input, and tells on its standard error what became of each.

use crate::file;
use crate::postgres;
use crate::proxy;
use crate::redis;
use crate::target::{Fence, Rejected, Target, Writer};
use kunci_client::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a lease lasts. Each round waits for one to end; a shorter one could be lost on a machine that is busy.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// Everything has been said by then, or the round fails.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(2);
/// A process that isn't stopped after this many steps isn't there.
const STEPS_MAX: usize = 5_000;
/// Where a worker process finds what it is for.
const ORDER: &str = "KUNCI_ZOMBIE_ORDER";

/// What a worker process is for.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    /// Where the cluster is.
    pub(crate) doors: Vec<String>,
    /// The target's name and address.
    pub(crate) target: String,
    pub(crate) address: String,
    /// The resource to hold, and the item of the same name to write.
    pub(crate) resource: String,
    pub(crate) owner: String,
    pub(crate) fence: Fence,
}

/// One worker process; killed when dropped, also when it is stopped.
pub(crate) struct Worker {
    process: Child,
    orders: Option<ChildStdin>,
    words: mpsc::Receiver<String>,
    /// What it has said, for when it says something else than it should.
    said: Vec<String>,
    name: String,
}

impl Worker {
    /// Starts it. It begins by acquiring, and waits for as long as it takes.
    pub(crate) fn start(order: &Order) -> Self {
        // The kernel ends it should this test be killed while it is stopped.
        let mut process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "worker::the_worker_process", "--nocapture"])
            .env(ORDER, serde_json::to_string(order).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("setpriv is there: it is in the package util-linux");
        let (tell, words) = mpsc::channel();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let orders = process.stdin.take();
        Self { process, orders, words, said: Vec::new(), name: order.owner.clone() }
    }

    /// Waits for the line that it says next, which begins with one of these words; the rest of it, after which word.
    fn hear<'w>(&mut self, expected: &[&'w str]) -> (&'w str, String) {
        let Ok(line) = self.words.recv_timeout(PATIENCE) else {
            panic!("{} says nothing, expected {expected:?}; it has said {:#?}", self.name, self.said);
        };
        self.said.push(line.clone());
        let found =
            expected.iter().find_map(|word| Some((*word, line.strip_prefix(word)?.trim().to_owned())));
        found.unwrap_or_else(|| {
            // A panic has more lines.
            self.said.extend(std::iter::from_fn(|| self.words.recv_timeout(Duration::from_secs(1)).ok()));
            panic!("{} says {line:?}, expected {expected:?}; it has said {:#?}", self.name, self.said)
        })
    }

    /// The token that it was granted, as soon as it was.
    pub(crate) fn granted(&mut self) -> u64 {
        self.hear(&["granted"]).1.parse().unwrap()
    }

    /// Waits until it has looked at its lock and is about to write.
    pub(crate) fn looked(&mut self) -> String {
        self.hear(&["looked"]).1
    }

    /// Gives it a value to write.
    pub(crate) fn tell(&mut self, value: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{value}").unwrap();
    }

    /// What became of the value.
    pub(crate) fn wrote(&mut self) -> Result<(), Rejected> {
        match self.hear(&["wrote", "rejected"]) {
            ("wrote", _) => Ok(()),
            (_, numbers) => {
                let (found, kept) = numbers.split_once(' ').unwrap();
                Err(Rejected { found: found.parse().unwrap(), kept: kept.parse().unwrap() })
            }
        }
    }

    /// Stops the process as it stands, and waits until all of it does.
    pub(crate) fn stop(&self) {
        kill_process(Pid::from_child(&self.process), Signal::STOP).unwrap();
        let pid = self.process.id();
        let stopped = (0..STEPS_MAX).any(|_| {
            std::thread::sleep(STEP);
            is_stopped(pid)
        });
        assert!(stopped, "{} goes on after SIGSTOP; it has said {:#?}", self.name, self.said);
    }

    /// Lets it go on from where it was stopped.
    pub(crate) fn go_on(&self) {
        kill_process(Pid::from_child(&self.process), Signal::CONT).unwrap();
    }

    /// Tells it that there is no more to write, upon which it gives its lock back, and waits for its end.
    pub(crate) fn end(&mut self) {
        drop(self.orders.take());
        // It hangs when its words aren't heard to their end.
        while let Ok(line) = self.words.recv_timeout(PATIENCE) {
            self.said.push(line);
        }
        let ended = self.process.wait().unwrap();
        assert!(ended.success(), "{} ended with {ended}; it has said {:#?}", self.name, self.said);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Whether every thread of a process is stopped by a signal.
fn is_stopped(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
        state == Some('T')
    })
}

/// Not a test of its own: it is a worker, when a round starts it as a process, and passes at once otherwise.
#[test]
fn the_worker_process() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let order: Order = serde_json::from_str(&order).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match order.target.as_str() {
            file::Files::NAME => work::<file::Files>(&order).await,
            postgres::Postgres::NAME => work::<postgres::Postgres>(&order).await,
            proxy::Service::NAME => work::<proxy::Service>(&order).await,
            redis::Redis::NAME => work::<redis::Redis>(&order).await,
            other => panic!("there is no target {other}"),
        }
    });
}

/// Acquires, then looks at its lock, and writes what comes next without looking again: every program has such a gap
/// between its last look and its write. It is careful otherwise.
async fn work<T: Target>(order: &Order) {
    let client = Client::connect(order.doors.clone()).await.unwrap();
    let mut writer = T::Writer::open(&order.address, &order.resource).await;
    let asked = client.lock(&order.resource).owner(&order.owner).ttl(TTL);
    let lock = asked.acquire().await.unwrap();
    let token = lock.token().get();
    eprintln!("granted {token}");
    let mut values = values();
    loop {
        eprintln!("looked {:?}", lock.state());
        let Some(value) = values.recv().await else { break };
        match writer.write(order.fence, token, &value).await {
            Ok(()) => eprintln!("wrote {value}"),
            Err(Rejected { found, kept }) => eprintln!("rejected {found} {kept}"),
        }
    }
    // Of a lock that was lost there is nothing to give back.
    drop(lock.release().await);
    client.close().await;
}

/// The lines of the standard input, without holding up the renewals.
fn values() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (tell, values) = tokio::sync::mpsc::unbounded_channel();
    let read = move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| tell.send(line));
    std::thread::spawn(read);
    values
}
