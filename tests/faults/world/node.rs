//! One node: a real `kunci server` process in a namespace.
//!
//! Owns: its life, its folder and its words. Never: signals a process that it didn't start.

use super::{DiskFault, FalseTime, SlowDisk, inside};
use crate::clock::wait_for;
use rustix::process::Signal;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

const HTTP: u16 = 7400;
const NATIVE: u16 = 7401;
const PEER: u16 = 7402;

/// A node that can be started, stopped and started again.
pub(crate) struct Node {
    number: usize,
    namespace: String,
    address: Ipv4Addr,
    data: PathBuf,
    log: PathBuf,
    settings: Vec<String>,
    clock: Option<FalseTime>,
    process: Option<Child>,
    is_paused: bool,
}

impl Node {
    pub(super) fn new(number: usize, namespace: &str, address: Ipv4Addr, folder: &Path) -> Self {
        Self {
            number,
            namespace: namespace.to_owned(),
            address,
            data: folder.join(format!("data-{number}")),
            log: folder.join(format!("node-{number}.log")),
            settings: Vec::new(),
            clock: None,
            process: None,
            is_paused: false,
        }
    }

    /// Its number in the test, from 1.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Its HTTP door.
    pub(crate) fn http(&self) -> SocketAddr {
        (self.address, HTTP).into()
    }

    /// Its native door, as a client names it.
    pub(crate) fn native(&self) -> String {
        format!("{}:{NATIVE}", self.address)
    }

    /// The process that it is, while it runs.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Its door for other members, as an operator names it.
    pub(crate) fn peer(&self) -> String {
        format!("{}:{PEER}", self.address)
    }

    /// Its data folder.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Everything that it has said.
    pub(crate) fn words(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// More settings, from the next start on.
    pub(crate) fn set(&mut self, settings: &[&str]) {
        self.settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
    }

    /// A wall clock of its own, from the next start on.
    pub(crate) fn set_clock(&mut self, clock: FalseTime) {
        self.clock = Some(clock);
    }

    /// Starts it, and doesn't wait for it.
    pub(crate) fn start(&mut self) {
        assert!(self.process.is_none(), "node {} runs already", self.number);
        let words = File::options().create(true).append(true).open(&self.log).unwrap();
        let mut command = inside::command(&self.namespace, Path::new("env"));
        for (name, value) in self.clock.iter().flat_map(FalseTime::variables) {
            let mut variable = std::ffi::OsString::from(name);
            variable.push("=");
            variable.push(value);
            command.arg(variable);
        }
        command.arg(env!("CARGO_BIN_EXE_kunci")).args(["server", "--insecure", "--data"]).arg(&self.data);
        for (door, port) in [("--http", HTTP), ("--native", NATIVE), ("--peer", PEER)] {
            command.arg(door).arg(format!("{}:{port}", self.address));
        }
        // Whatever the person who runs the tests has set isn't this node's business.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("KUNCI_"))
        {
            command.env_remove(name);
        }
        command.args(&self.settings).stdout(words.try_clone().unwrap()).stderr(words);
        self.process = Some(command.spawn().unwrap());
        self.is_paused = false;
    }

    /// Whether it runs and isn't paused.
    pub(crate) fn is_answering(&self) -> bool {
        self.process.is_some() && !self.is_paused
    }

    /// Sends it a signal.
    fn signal(&mut self, signal: Signal) {
        let process = self.process.as_ref().expect("a node is signalled while it runs");
        rustix::process::kill_process(rustix::process::Pid::from_child(process), signal).unwrap();
    }

    /// Freezes it, as a stalled machine would be.
    pub(crate) fn pause(&mut self) {
        self.signal(Signal::STOP);
        self.is_paused = true;
    }

    /// Lets it go on.
    pub(crate) fn go_on(&mut self) {
        self.signal(Signal::CONT);
        self.is_paused = false;
    }

    /// Fails when it ended by itself.
    pub(crate) fn must_not_have_ended(&mut self) {
        let ended = self.process.as_mut().and_then(|process| process.try_wait().unwrap());
        assert!(ended.is_none(), "node {} ended by itself: {ended:?}\n{}", self.number, self.words());
    }

    /// Mends whatever was done to it.
    pub(crate) fn go_on_or_start(&mut self) {
        self.must_not_have_ended();
        match (&self.process, self.is_paused) {
            (None, _) => self.start(),
            (Some(_), true) => self.go_on(),
            (Some(_), false) => {}
        }
    }

    /// Kills it, as a power cut would, and waits for its end.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Asks it to stop, and waits for its end.
    pub(crate) fn stop(&mut self, within: Duration) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait(within).unwrap_or_else(|| panic!("node {} doesn't stop:\n{}", self.number, self.words()))
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        let process = self.process.as_mut()?;
        let ended = wait_for(within, || process.try_wait().unwrap())?;
        self.process = None;
        Some(ended)
    }

    /// Loses all that it had.
    pub(crate) fn wipe(&mut self) {
        assert!(self.process.is_none(), "node {} runs: its data is in use", self.number);
        for entry in std::fs::read_dir(&self.data).into_iter().flatten().flatten() {
            let path = entry.path();
            drop(if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) });
        }
    }

    /// Makes its log's disk bad, for as long as the answer lives.
    pub(crate) fn spoil_disk(&self, fault: DiskFault) -> SlowDisk {
        let process = self.process.as_ref().expect("a node's disk is spoilt while it runs");
        SlowDisk::of(process.id(), fault, &self.log.with_extension("strace.log"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.kill());
            drop(process.wait());
        }
    }
}
