//! Every command in docs/operations.md runs, in order, and says what the page shows.
//!
//! Owns: one machine that plays all of them: 10.N.0.1 of the page is 127.0.N.1 of loopback here, each machine has a
//! folder of its own, and `kunci server` runs until the page stops it. Never: a command of its own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod console;

use console::{Step, is_as_shown, steps};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The longest command: one that waits until a new node votes.
const COMMAND_SECONDS_MAX: &str = "60";

/// A running `kunci server`.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// All machines of the page.
struct Machines {
    folder: tempfile::TempDir,
    servers: BTreeMap<String, Server>,
    /// What the operator's shell has exported or set.
    variables: BTreeMap<String, String>,
}

impl Machines {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), servers: BTreeMap::new(), variables: BTreeMap::new() }
    }

    fn folder_of(&self, machine: &str) -> PathBuf {
        let folder = self.folder.path().join(if machine.is_empty() { "operator" } else { machine });
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A program in a machine's folder, with the built `kunci` first on the path.
    fn program(&self, machine: &str, program: &str) -> Command {
        let own = std::env::var_os("PATH").unwrap_or_default();
        let built = PathBuf::from(env!("CARGO_BIN_EXE_kunci"));
        let path = std::iter::once(built.parent().unwrap().to_owned()).chain(std::env::split_paths(&own));
        let mut command = Command::new(program);
        command.current_dir(self.folder_of(machine)).stdin(Stdio::null());
        command.env("PATH", std::env::join_paths(path).unwrap());
        // Loopback plays the network of the page, so a node mustn't take itself for alone.
        command.env("KUNCI_WAIT_FOR_CLUSTER", "true");
        if machine.is_empty() {
            command.envs(&self.variables);
        }
        command
    }

    /// Does what the page says, and gives the output.
    fn run(&mut self, step: &Step<'_>) -> String {
        let command = here(step.command);
        if command.starts_with("kunci server ") {
            self.start(step.machine, &command);
            return String::new();
        }
        if let Some(signal) =
            command.strip_suffix(" $(pidof kunci)").and_then(|kill| kill.strip_prefix("kill -"))
        {
            self.stop(step.machine, signal);
            return String::new();
        }
        let assigned = command.strip_prefix("export ").unwrap_or(&command).split_once('=');
        if let Some((name, value)) =
            assigned.filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        {
            let value = self.output(step.machine, &format!("printf %s {value}"));
            assert!(!value.contains("//10."), "{value} isn't on this machine");
            self.variables.insert(name.to_owned(), value);
            return String::new();
        }
        there(&self.output(step.machine, &command))
    }

    fn output(&self, machine: &str, command: &str) -> String {
        let mut bash = self.program(machine, "timeout");
        let output = bash
            .args([COMMAND_SECONDS_MAX, "bash", "-c", &format!("exec 2>&1; {command}")])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "`{command}` fails with {}:\n{text}\n{}",
            output.status,
            self.logs()
        );
        text.trim_end().to_owned()
    }

    fn start(&mut self, machine: &str, command: &str) {
        let log = std::fs::File::options().create(true).append(true).open(self.log_of(machine)).unwrap();
        // The shell is replaced by the node itself, so that it ends with the test.
        let mut server = self.program(machine, "bash");
        server.args(["-c", &format!("exec {command}")]);
        let server = server.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        assert!(
            self.servers.insert(machine.to_owned(), Server(server)).is_none(),
            "{machine} runs a node already"
        );
        let http: SocketAddr = word_after(command, "--http").parse().unwrap();
        for _ in 0..200 {
            if TcpStream::connect(http).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("`{command}` on {machine} opens no door:\n{}", self.logs());
    }

    fn stop(&mut self, machine: &str, signal: &str) {
        let mut server = self.servers.remove(machine).unwrap();
        let signal = format!("-{signal}");
        let killed = Command::new("kill").args([&signal, &server.0.id().to_string()]).status().unwrap();
        assert!(killed.success());
        for _ in 0..200 {
            if server.0.try_wait().unwrap().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{machine} doesn't end after kill {signal}:\n{}", self.logs());
    }

    fn log_of(&self, machine: &str) -> PathBuf {
        self.folder.path().join(format!("{machine}.log"))
    }

    fn logs(&self) -> String {
        let log = |machine: &String| {
            (machine.clone(), std::fs::read_to_string(self.log_of(machine)).unwrap_or_default())
        };
        self.servers.keys().map(log).map(|(machine, log)| format!("--- {machine}\n{log}")).collect()
    }
}

/// The page's addresses as this test uses them.
fn here(text: &str) -> String {
    (1..=4).fold(text.to_owned(), |text, machine| {
        text.replace(&format!("10.{machine}.0.1"), &format!("127.0.{machine}.1"))
    })
}

/// And back.
fn there(text: &str) -> String {
    (1..=4).fold(text.to_owned(), |text, machine| {
        text.replace(&format!("127.0.{machine}.1"), &format!("10.{machine}.0.1"))
    })
}

fn word_after<'a>(command: &'a str, flag: &str) -> &'a str {
    command.split_once(flag).and_then(|(_, rest)| rest.split_whitespace().next()).unwrap()
}

#[test]
fn every_command_in_operations_does_what_it_shows() {
    let page = include_str!("../../../docs/operations.md");
    let steps = steps(page);
    assert!(steps.len() >= 30, "only {} commands were found", steps.len());
    assert!(
        Path::new("/proc/net").exists() && TcpListener::bind("127.0.1.1:0").is_ok(),
        "all of 127/8 is loopback on Linux"
    );

    let mut machines = Machines::new();
    for step in &steps {
        let shown = step.shown.join("\n");
        let is_right = |found: &str| shown.is_empty() || is_as_shown(&shown, found);
        let mut found = machines.run(step);
        // What a node knows of the others is up to two seconds old.
        for _ in 0..20 {
            if is_right(&found) || !step.command.starts_with("kunci cluster status") {
                break;
            }
            std::thread::sleep(Duration::from_millis(250));
            found = machines.run(step);
        }
        assert!(
            is_right(&found),
            "docs/operations.md:{}: `{}` shows\n{shown}\nbut says\n{found}\n{}",
            step.line,
            step.command,
            machines.logs()
        );
    }
}
