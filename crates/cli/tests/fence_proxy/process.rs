//! A real `kunci fence proxy`.
//!
//! Owns: starting and ending it, and what it says. Never: a request.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(10);
/// A proxy that isn't up after this many steps never will be.
const STEPS_MAX: usize = 2_000;

/// A running proxy; killed when dropped.
pub(crate) struct Proxy {
    process: Child,
    words: PathBuf,
}

impl Proxy {
    /// Starts one in `folder`, in front of this upstream, with more settings, and waits until it serves.
    pub(crate) fn start(folder: &Path, upstream: SocketAddr, more: &str) -> Self {
        let settings = format!(
            "listen = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nupstream = 'http://{upstream}'\ngate = '{}'\n{more}\n",
            folder.join("gate").display()
        );
        let proxy = Self::spawn(folder, &settings);
        assert!(proxy.wait_said("serving at").is_some(), "the proxy doesn't serve:\n{}", proxy.words());
        proxy
    }

    /// Starts one with these settings.
    pub(crate) fn spawn(folder: &Path, settings: &str) -> Self {
        let (config, words) = (folder.join("fence.toml"), folder.join("words"));
        std::fs::write(&config, settings).unwrap();
        // The kernel ends it should this test be killed.
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_kunci"), "fence", "proxy", "--config"])
            .arg(&config)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&words).unwrap())
            .spawn()
            .expect("setpriv is there: it is in the package util-linux");
        Self { process, words }
    }

    /// Everything that it has said.
    pub(crate) fn words(&self) -> String {
        std::fs::read_to_string(&self.words).unwrap()
    }

    /// Waits for a line with these words.
    pub(crate) fn wait_said(&self, words: &str) -> Option<String> {
        (0..STEPS_MAX).find_map(|_| {
            std::thread::sleep(STEP);
            let said = self.words();
            // Whole lines only: the last one may be half written.
            let mut lines = said.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            lines.find(|line| line.contains(words)).map(str::to_owned)
        })
    }

    /// Where it takes requests.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address_after("serving at http://")
    }

    /// Where its metrics are.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.address_after("metrics at http://")
    }

    fn address_after(&self, words: &str) -> SocketAddr {
        let said = self.words();
        let (_, rest) = said.split_once(words).unwrap();
        rest.split([',', '/', '\n']).next().unwrap().parse().unwrap()
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Asks it to stop.
    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
