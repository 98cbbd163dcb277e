//! One node with both doors, and running the binary.

use crate::node::{Node, free_port};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Whatever a test waits for has happened by then, or the test fails.
const STEPS_MAX: usize = 4_000;
const STEP: Duration = Duration::from_millis(5);

/// Waits until something is so, for at most 20 s of waiting.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..STEPS_MAX {
        if is_so() {
            return;
        }
        std::thread::sleep(STEP);
    }
    panic!("not so after {:?}: {what}", STEP * 4_000);
}

/// A node that serves.
pub(crate) struct Server {
    pub(crate) node: Node,
    pub(crate) native: String,
    pub(crate) url: String,
    data: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let native = format!("127.0.0.1:{}", free_port());
        Self::serving(data, &native, free_port())
    }

    fn serving(data: TempDir, native: &str, port: u16) -> Self {
        let flags = ["--peer", "127.0.0.1:0", "--native", native];
        let mut node = Node::spawn(&data.path().join("data"), port, &flags);
        until("the node serves", || {
            let ended = node.ended();
            assert!(ended.is_none(), "the node ended: {ended:?}\n{}", node.words());
            matches!(node.call("GET", "/readyz", None), Ok((200, _)))
        });
        let url = format!("http://{}", node.http());
        Self { node, native: native.to_owned(), url, data }
    }

    /// Kills it, and starts it again with the same data and doors once `meanwhile` is over.
    pub(crate) fn restarted(self, meanwhile: Duration) -> Self {
        let Self { node, native, data, .. } = self;
        let port = node.http().port();
        node.kill();
        std::thread::sleep(meanwhile);
        Self::serving(data, &native, port)
    }

    /// Its process: the only one that was told of its data folder.
    pub(crate) fn pid(&self) -> u32 {
        let folder = self.data.path().to_str().unwrap();
        let ids = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut nodes = ids.filter(|id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|words| words.contains(folder))
        });
        nodes.next().unwrap()
    }

    /// The option that names one of its doors.
    pub(crate) fn option(&self, door: &str) -> [String; 2] {
        let value = if door == "--endpoints" { &self.native } else { &self.url };
        [door.to_owned(), value.clone()]
    }

    /// How a resource stands, by plain HTTP.
    pub(crate) fn status(&self, resource: &str) -> Value {
        self.node.call("GET", &format!("/locks/{resource}"), None).unwrap().1
    }

    pub(crate) fn is_free(&self, resource: &str) -> bool {
        let status = self.status(resource);
        status["held"] == false && status["queueLength"] == 0
    }

    /// Ends somebody's lease, as an operator.
    pub(crate) fn force(&self, resource: &str) {
        let body =
            serde_json::json!({ "fencingToken": self.status(resource)["fencingToken"], "reason": "test" });
        let path = format!("/locks/{resource}/force-release");
        let (status, answer) = self.node.call("POST", &path, Some(&body)).unwrap();
        assert_eq!(status, 200, "{answer}");
    }
}

/// The binary with these words, split at spaces, and no word about doors in its environment.
pub(crate) fn kunci(words: &str) -> Command {
    // Under nohup, or in a script's background, signals are ignored from birth; a test's aren't.
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_kunci")]);
    command.env_remove("KUNCI_URL").env_remove("KUNCI_ENDPOINTS").args(words.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `kunci exec` through the server's native door, with these options, running a shell script under a resource.
pub(crate) fn exec(server: &Server, resource: &str, options: &str, script: &str) -> Command {
    let mut command = kunci("exec");
    command.args(server.option("--endpoints")).args(options.split_whitespace());
    command.args([resource, "--", "sh", "-c", script]);
    command
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs to the end.
pub(crate) fn run(command: &mut Command) -> Ran {
    finish(command.spawn().unwrap())
}

/// Waits for the end. A run that has none is killed, and fails the test.
pub(crate) fn finish(child: Child) -> Ran {
    let id = child.id();
    let ending = std::thread::spawn(move || child.wait_with_output().unwrap());
    for _ in 0..STEPS_MAX {
        if ending.is_finished() {
            break;
        }
        std::thread::sleep(STEP);
    }
    if !ending.is_finished() {
        signal(id, "KILL");
        panic!("no end after {:?}: {:?}", STEP * 4_000, ending.join());
    }
    let Output { status, stdout, stderr } = ending.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Sends a signal to one process.
pub(crate) fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

/// The process ids in a file, once there are `count` of them.
pub(crate) fn pids(file: &Path, count: usize) -> Vec<u32> {
    let read = || -> Vec<u32> {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // The last line may not be whole yet.
        let whole = text.rsplit_once('\n').map(|(whole, _)| whole.to_owned()).unwrap_or_default();
        whole.lines().filter_map(|line| line.parse().ok()).collect()
    };
    until("the process ids are written", || read().len() >= count);
    read()
}

/// Whether a process runs; one that only waits to be collected doesn't.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
