//! Every command in README.md runs, and says what README.md shows.
//!
//! Owns: the node and the cluster that README.md starts. Never: a command of its own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod console;

use console::{Step, blocks, is_as_shown, steps};
use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What README.md starts, and leaves running; it ends with the test.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs this program in this folder, with the built `kunci` first on the path and a node on another port.
fn in_folder(program: &str, folder: &Path, ports: &Ports) -> Command {
    let mut command = Command::new(program);
    let own = std::env::var_os("PATH").unwrap_or_default();
    let built = PathBuf::from(env!("CARGO_BIN_EXE_kunci"));
    let path = std::iter::once(built.parent().unwrap().to_owned()).chain(std::env::split_paths(&own));
    command.current_dir(folder).stdin(Stdio::null());
    command.env("PATH", std::env::join_paths(path).unwrap());
    command.env("KUNCI_URL", format!("http://127.0.0.1:{}", ports.node));
    command.env("KUNCI_ENDPOINTS", format!("127.0.0.1:{}", ports.native));
    command
}

/// The ports in README.md, and those that the test has instead: other tests, and other nodes, run meanwhile.
struct Ports {
    node: u16,
    native: u16,
    cluster: u16,
}

impl Ports {
    const NODE: u16 = 7400;
    const CLUSTER: u16 = 7500;
    /// As many as three nodes have, and those between.
    const BLOCK: u16 = 30;

    fn free() -> Self {
        let start = 12_000 + u16::try_from(std::process::id() % 600).unwrap() * Self::BLOCK;
        let is_free = |base: &u16| {
            (*base..base + Self::BLOCK).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        };
        let cluster = (start..).step_by(Self::BLOCK.into()).find(is_free).unwrap();
        Self { node: free_port(), native: free_port(), cluster }
    }

    /// The text with the test's ports.
    fn instead(&self, text: &str) -> String {
        let text = text.replace(&format!("localhost:{}", Self::NODE), &format!("127.0.0.1:{}", self.node));
        let text = text.replace("localhost:", "127.0.0.1:");
        let block = (0..Self::BLOCK).map(|nth| (Self::CLUSTER + nth, self.cluster + nth));
        block.fold(text, |text, (shown, ours)| text.replace(&shown.to_string(), &ours.to_string()))
    }
}

/// Starts the cluster that README.md starts, and waits until it says all that it is shown to say.
fn start_cluster(folder: &Path, ports: &Ports, step: &Step<'_>) -> Node {
    let path = folder.join("cluster.out");
    let mut shell = in_folder("bash", folder, ports);
    shell.args(["-c", &format!("exec {}", ports.instead(step.command))]);
    let node = Node(shell.stdout(std::fs::File::create(&path).unwrap()).spawn().unwrap());
    let shown = ports.instead(&step.shown.join("\n"));
    let said = || std::fs::read_to_string(&path).unwrap();
    for _ in 0..400 {
        if is_as_shown(&shown, said().trim_end()) {
            return node;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("README.md:{}: `{}` shows\n{shown}\nbut says\n{}", step.line, step.command, said());
}

/// Starts the node that README.md starts. The shell is replaced, so that the node itself ends with the test.
fn start_node(folder: &Path, ports: &Ports, command: &str) -> Node {
    let Ports { node: port, native, .. } = ports;
    let log = std::fs::File::create(folder.join("node.log")).unwrap();
    let mut shell = in_folder("bash", folder, ports);
    shell.args(["-c", &format!("exec {command}")]).env("KUNCI_HTTP", format!("127.0.0.1:{port}"));
    shell.env("KUNCI_PEER", "127.0.0.1:0").env("KUNCI_NATIVE", format!("127.0.0.1:{native}"));
    let node = Node(shell.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    for _ in 0..200 {
        let ready = Command::new("curl")
            .args(["-sf", "-o", "/dev/null", &format!("http://127.0.0.1:{port}/readyz")])
            .status()
            .unwrap();
        if ready.success() {
            return node;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("`{command}` doesn't serve:\n{}", std::fs::read_to_string(folder.join("node.log")).unwrap());
}

/// Runs all commands in one shell, as a reader would, and gives the output of each.
fn outputs(folder: &Path, ports: &Ports, steps: &[Step<'_>]) -> Vec<String> {
    let mut script = String::new();
    for step in steps {
        writeln!(script, "{}\nprintf '\\036'", ports.instead(step.command)).unwrap();
    }
    let mut shell = in_folder("timeout", folder, ports);
    let output = shell.args(["60", "bash", "-c", &format!("exec 2>&1\n{script}")]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split('\u{1e}').map(|output| output.trim_end().to_owned()).take(steps.len()).collect()
}

#[test]
fn every_command_in_the_readme_does_what_it_shows() {
    let page = include_str!("../../../README.md");
    let folder = tempfile::tempdir().unwrap();
    let ports = Ports::free();
    let (started, others): (Vec<_>, Vec<_>) = steps(page).into_iter().partition(|step| {
        ["kunci server", "kunci dev-cluster"].iter().any(|word| step.command.starts_with(word))
    });
    let [server, cluster] = &started[..] else { panic!("expected a node and a cluster, found {started:?}") };

    let node = start_node(folder.path(), &ports, server.command);
    let nodes = start_cluster(folder.path(), &ports, cluster);
    let outputs = outputs(folder.path(), &ports, &others);

    assert!(others.len() >= 15, "only {} commands were found", others.len());
    for (step, found) in others.iter().zip(&outputs) {
        let shown = ports.instead(&step.shown.join("\n"));
        assert!(
            shown.is_empty() || is_as_shown(&shown, found),
            "README.md:{}: `{}` shows\n{shown}\nbut says\n{found}",
            step.line,
            step.command
        );
        assert!(!found.contains("command not found"), "README.md:{}: {found}", step.line);
    }
    assert_eq!(outputs.len(), others.len());
    drop((node, nodes));
    assert!(TcpStream::connect(("127.0.0.1", ports.node)).is_err(), "the node is still there");
}

/// The two commands that set everything up build the project, so this test can't run them. The first is what
/// `main_job` runs, with `kunci` built already; the second is what runs this.
#[test]
fn the_commands_that_set_everything_up_are_the_two_that_are_tested_elsewhere() {
    let page = include_str!("../../../README.md");

    let [(_, set_up)] = &blocks(page, "sh")[..] else { panic!("expected one `sh` block") };

    assert_eq!(set_up.lines().collect::<Vec<_>>(), ["bash examples/twenty-writers.sh", "cargo xtask test"]);
}
