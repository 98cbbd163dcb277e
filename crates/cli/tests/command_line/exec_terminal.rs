//! `kunci exec` on a terminal: keys, job control, hanging up.

use crate::fake::Fake;
use crate::support::{finish, is_alive, pids, signal, until};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The wrapper in a session of its own, on a terminal whose keys a test presses.
struct Session {
    keys: File,
    wrapper: Child,
}

impl Session {
    fn start(fake: &Fake, ttl: &str, script: &str) -> Self {
        let keys: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "env", "--default-signal", env!("CARGO_BIN_EXE_kunci")])
            .args(["exec", "--ttl", ttl, "r", "--"]);
        command
            .args(["sh", "-c", script])
            .env("KUNCI_URL", fake.url())
            .env_remove("KUNCI_ENDPOINTS")
            .stderr(Stdio::piped());
        let wrapper = command.stdin(terminal.try_clone().unwrap()).stdout(terminal).spawn().unwrap();
        Self { keys: keys.into(), wrapper }
    }

    fn press(&mut self, keys: &str) {
        // A shell that is just starting a command (vfork) neither stops nor traps before that has begun.
        std::thread::sleep(Duration::from_millis(200));
        self.keys.write_all(keys.as_bytes()).unwrap();
    }
}

fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').and_then(|(_, rest)| rest.trim().chars().next())
}

fn sleeper(file: &Path, seconds: &str) -> String {
    format!("echo $$ >> {}; sleep {seconds}; exit 5", file.display())
}

/// C88
#[test]
fn the_command_reads_the_terminal_and_gets_ctrl_c_once() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let script = format!(
        "trap 'n=$((n+1))' INT; read word; test \"$word\" = yes || exit 1; echo $$ >> {}; sleep 1; sleep 0.2; exit $((40+n))",
        file.display()
    );
    let mut session = Session::start(&fake, "5s", &script);
    until("it holds", || !fake.is_free());
    session.press("yes\n");
    pids(&file, 1);
    session.press("\x03");
    assert_eq!(finish(session.wrapper).code, Some(41));
    assert!(fake.is_free());
}

/// C88
#[test]
fn ctrl_z_stops_command_and_wrapper_and_going_on_in_time_harms_nothing() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let mut session = Session::start(&fake, "10s", &sleeper(&file, "1"));
    let command = pids(&file, 1)[0];
    session.press("\x1a");
    until("both are stopped", || state(command) == Some('T') && state(session.wrapper.id()) == Some('T'));
    signal(session.wrapper.id(), "CONT");
    assert_eq!(finish(session.wrapper).code, Some(5));
}

/// C88, C92
#[test]
fn going_on_from_ctrl_z_after_the_lease_has_ended_kills_the_command_before_it_does_anything() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let mut session = Session::start(&fake, "1s", &sleeper(&file, "1000"));
    let command = pids(&file, 1)[0];
    session.press("\x1a");
    until("the wrapper is stopped", || state(session.wrapper.id()) == Some('T'));
    until("the lease has ended", || fake.is_free());
    signal(session.wrapper.id(), "CONT");
    assert_eq!(finish(session.wrapper).code, Some(76));
    assert!(!is_alive(command));
}

/// C88
#[test]
fn closing_the_terminal_ends_the_command_and_releases_the_lock() {
    let fake = Fake::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let session = Session::start(&fake, "10s", &sleeper(&file, "1000"));
    let command = pids(&file, 1)[0];
    drop(session.keys);
    assert_eq!(finish(session.wrapper).code, Some(129));
    assert!(!is_alive(command));
    assert!(fake.is_free());
}
