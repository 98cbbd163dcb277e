//! A real PostgreSQL server for tests: a folder of its own, a socket in it, and nothing that is left behind.
//!
//! Owns: starting and ending the server, and the files below its folder. Never: a TCP port, or a server that it
//! didn't start.
//!
//! Others take it by `#[path = "…/crates/fence/tests/support/postgres/mod.rs"] mod postgres;`, and need `tempfile`.

#![allow(dead_code, reason = "each test that takes this module uses another part of it")]

mod session;

#[allow(unused_imports, reason = "see above")]
pub(crate) use session::{Refused, Rows, Session};

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(20);
/// A server that doesn't answer after this many steps never will.
const STEPS_MAX: usize = 3_000;

/// Runs the server until nobody holds the other end of standard input any more, however the test ended; then nothing
/// of it is left.
const KEEPER: &str = r#"
exec 3<&0
folder=$1
shift
"$0" -D "$folder/data" -k "$folder" -c listen_addresses= "$@" >>"$folder/log" 2>&1 3<&- &
server=$!
(read -r line <&3; kill -QUIT $server 2>/dev/null) &
wait $server
touch "$folder/ended"
read -r line <&3
rm -rf "$folder"
"#;

/// A running server; its superuser is `postgres`, and everybody who reaches its socket is trusted.
#[derive(Debug)]
pub(crate) struct Server {
    keeper: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts one with these settings besides, as in `max_prepared_transactions=4`, and waits until it answers.
    pub(crate) fn start(settings: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("kunci-pg").tempdir().unwrap();
        let identity = Identity::find();
        identity.give(folder.path());
        let data = folder.path().join("data");
        let output = identity
            .command("initdb")
            .arg("-D")
            .arg(&data)
            .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"])
            .output()
            .unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let mut keeper = identity.command("sh");
        keeper.arg("-c").arg(KEEPER).arg(program("postgres")).arg(folder.path());
        // A test needs no disk that survives a power cut.
        for setting in ["fsync=off", "max_connections=60"].iter().chain(settings) {
            keeper.args(["-c", setting]);
        }
        let keeper =
            keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { keeper, folder };
        server.wait_until_it_answers();
        server
    }

    fn wait_until_it_answers(&self) {
        for _ in 0..STEPS_MAX {
            if Session::open(self.socket(), "postgres", "postgres", "").is_ok() {
                return;
            }
            assert!(!self.folder.path().join("ended").exists(), "PostgreSQL has ended: {}", self.log());
            std::thread::sleep(STEP);
        }
        panic!("PostgreSQL doesn't serve: {}", self.log());
    }

    /// The folder of its socket: what libpq takes as `PGHOST`.
    pub(crate) fn socket(&self) -> &Path {
        self.folder.path()
    }

    /// Everything that it has said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A new, empty database.
    pub(crate) fn database(&self, name: &str) -> Database {
        self.session("postgres").run(&format!("CREATE DATABASE {name}"));
        Database { socket: self.socket().to_owned(), name: name.to_owned() }
    }

    fn session(&self, database: &str) -> Session {
        Session::open(self.socket(), database, "postgres", "").unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The keeper reads the end of this, and ends the server.
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}

/// One database of a server.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    socket: PathBuf,
    name: String,
}

impl Database {
    /// A session of the superuser.
    pub(crate) fn session(&self) -> Session {
        self.session_with("postgres", "")
    }

    /// A session of this role, with these options as they stand in `PGOPTIONS`.
    pub(crate) fn session_with(&self, role: &str, options: &str) -> Session {
        Session::open(&self.socket, &self.name, role, options).unwrap()
    }

    /// A program of PostgreSQL's that connects to this database as the superuser, by libpq's environment.
    pub(crate) fn command(&self, program_name: &str) -> Command {
        let mut command = Command::new(program(program_name));
        command.envs(self.environment()).stdin(Stdio::null());
        command
    }

    /// What libpq reads in order to come here.
    pub(crate) fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("PGHOST", self.socket.to_str().unwrap().to_owned()),
            ("PGDATABASE", self.name.clone()),
            ("PGUSER", "postgres".to_owned()),
            ("PGOPTIONS", String::new()),
        ]
    }

    /// Runs a script with psql, and gives what it printed; `Err` with what it said when it failed.
    pub(crate) fn psql(&self, script: &str) -> Result<String, String> {
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", script]);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

/// A program of PostgreSQL's: Debian keeps those of the server off the path.
pub(crate) fn program(name: &str) -> PathBuf {
    let debian = Path::new("/usr/lib/postgresql/15/bin").join(name);
    if debian.is_file() { debian } else { PathBuf::from(name) }
}

/// Who the server runs as: it refuses to run as root.
enum Identity {
    Own,
    Other { user: u32, group: u32 },
}

impl Identity {
    fn find() -> Self {
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        if !is_root {
            return Self::Own;
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap();
        let ids = |name: &str| {
            let mut fields = accounts
                .lines()
                .map(|line| line.split(':'))
                .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
            Some((fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
        };
        let (user, group) = ids("postgres").or_else(|| ids("nobody")).unwrap();
        Self::Other { user, group }
    }

    fn give(&self, folder: &Path) {
        if let Self::Other { user, group } = *self {
            std::os::unix::fs::chown(folder, Some(user), Some(group)).unwrap();
        }
        // The clients are other users than the server.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program(name));
        if let Self::Other { user, group } = *self {
            std::os::unix::process::CommandExt::uid(&mut command, user);
            std::os::unix::process::CommandExt::gid(&mut command, group);
        }
        // Not the caller's folder, which that user may not enter, nor its locale, which changes the messages.
        command.current_dir("/").env("LC_ALL", "C");
        command
    }
}
