//! The fence in a real PostgreSQL: each test has a database of its own in one server.
//!
//! Owns: the server, and what tests of waiting need. Never: another server than the one it starts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]

mod admit;
mod load;
mod order;
mod rights;
mod tables;
mod upkeep;

#[path = "../support/postgres/mod.rs"]
mod postgres;

use postgres::{Database, Refused, Rows, Server, Session};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

/// Ends with the process: it goes when nobody holds its standard input any more.
static SERVER: OnceLock<Server> = OnceLock::new();

/// The three isolation levels that PostgreSQL has.
const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// A new database without the fence.
fn empty(name: &str) -> Database {
    let server =
        SERVER.get_or_init(|| Server::start(&["max_prepared_transactions=4", "deadlock_timeout=200ms"]));
    server.database(name)
}

/// A new database with the fence.
fn fenced(name: &str) -> Database {
    let database = empty(name);
    database.session().run(kunci_fence::postgres::SQL);
    database
}

/// A statement that somebody waits for.
struct Pending(JoinHandle<(Session, Result<Rows, Refused>)>);

impl Pending {
    /// Sends it, and comes back once the server has it wait for a lock.
    fn blocked(observer: &mut Session, mut session: Session, sql: &str) -> Self {
        let process = session.process;
        let sql = sql.to_owned();
        let pending = Self(std::thread::spawn(move || {
            let result = session.query(&sql);
            (session, result)
        }));
        let waits = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE pid = {process} AND wait_event_type = 'Lock'"
        );
        for _ in 0..1_000 {
            assert!(!pending.0.is_finished(), "expected to wait, ended with {:?}", pending.end().1);
            if observer.value(&waits) == "1" {
                return pending;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("expected to wait for a lock");
    }

    fn end(self) -> (Session, Result<Rows, Refused>) {
        self.0.join().unwrap()
    }
}
