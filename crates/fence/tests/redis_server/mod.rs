//! A real Redis for tests: `redis-server` from the Debian package, on a free port of this machine, with its files in a
//! folder that the test gives.
//!
//! Owns: starting and ending one. Never: ends a process that it didn't start.

use redis::{Client, Connection};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TRIES: usize = 5;
const STEP: Duration = Duration::from_millis(10);
/// A server that doesn't answer after this many steps never will.
const STEPS_MAX: usize = 1_000;

/// A running `redis-server`; killed when dropped.
pub(crate) struct RedisServer {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl RedisServer {
    /// Starts one with these arguments besides, and waits until it answers.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        for _ in 0..TRIES {
            let mut server = Self::spawn(folder, arguments);
            if server.is_up() {
                return server;
            }
            // Somebody else took its port in between.
            eprintln!("a Redis didn't start:\n{}", server.words());
        }
        panic!("no Redis after {TRIES} tries");
    }

    fn spawn(folder: &Path, arguments: &[&str]) -> Self {
        let (port, log) = (free_port(), folder.join("redis.log"));
        // The kernel ends it should this test be killed.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "redis-server", "--bind", "127.0.0.1"])
            .args(["--port", &port.to_string(), "--cluster-port", &free_port().to_string()])
            .arg("--dir")
            .arg(folder)
            .arg("--logfile")
            .arg(&log)
            .args(["--save", "", "--maxmemory-policy", "noeviction"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("setpriv and redis-server are there: `apt-get install util-linux redis-server`");
        Self { process, port, log }
    }

    fn is_up(&mut self) -> bool {
        for _ in 0..STEPS_MAX {
            if self.answers() {
                return true;
            }
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::sleep(STEP);
        }
        false
    }

    /// Whether it takes commands. One that wants a password does, too.
    fn answers(&self) -> bool {
        let ping = |mut to: Connection| redis::cmd("PING").query::<String>(&mut to);
        match self.client().get_connection().and_then(ping) {
            Ok(_) => true,
            Err(error) => error.code() == Some("NOAUTH"),
        }
    }

    fn words(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn client(&self) -> Client {
        Client::open(self.url()).unwrap()
    }

    /// A connection of its own.
    pub(crate) fn connect(&self) -> Connection {
        self.client().get_connection().unwrap()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
