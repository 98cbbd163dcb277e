//! `kunci fence` and `kunci exec` with real databases, and docs/fencing.md.
//!
//! Owns: a node and a shell beside a database. Never: a database; those are `postgres`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

#[path = "../console/mod.rs"]
mod console;
#[path = "../node/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod node;
mod page;
#[path = "../../../fence/tests/support/postgres/mod.rs"]
mod postgres;
mod postgres_verbs;

use node::{Node, free_port};
use postgres::{Database, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Ends with the process: it goes when nobody holds its standard input any more.
static SERVER: OnceLock<Server> = OnceLock::new();

/// A new database.
fn empty(name: &str) -> Database {
    SERVER.get_or_init(|| Server::start(&[])).database(name)
}

/// A node that serves.
fn started(data: &Path) -> Node {
    let node = Node::spawn(data, free_port(), &["--peer", "127.0.0.1:0"]);
    for _ in 0..600 {
        if matches!(node.call("GET", "/readyz", None), Ok((200, _))) {
            return node;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the node doesn't serve: {}", node.words());
}

/// A script as a reader would run it, with the built `kunci` first on the path, and its node and database in the
/// environment.
fn in_shell(script: &str, node: &Node, database: &Database) -> Command {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let built = PathBuf::from(env!("CARGO_BIN_EXE_kunci"));
    let path = std::iter::once(built.parent().unwrap().to_owned()).chain(std::env::split_paths(&own));
    let mut shell = Command::new("timeout");
    shell.args(["60", "bash", "-c", script]).stdin(Stdio::null());
    shell.env("PATH", std::env::join_paths(path).unwrap());
    shell.env("KUNCI_URL", format!("http://{}", node.http())).envs(database.environment());
    shell
}
