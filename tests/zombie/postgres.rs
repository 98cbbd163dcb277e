//! PostgreSQL, guarded by the SQL file.
//!
//! Owns: a row in PostgreSQL and how it is written. Never: the fence; that is `kunci_fence::postgres`.

use crate::postgres_server::{Refused, Server, Session};
use crate::target::{Fence, Rejected, Target, Writer};
use std::path::Path;

/// S9, C03: see `run`.
#[test]
fn a_late_write_to_postgres_is_refused_in_every_round() {
    crate::run::run::<Postgres>();
}

/// Two tables of items: `guarded`, and `bare` for the control, whose writers know of no fence.
const TABLES: &str = "
    CREATE TABLE bare (name text PRIMARY KEY, value text NOT NULL);
    CREATE TABLE guarded (name text PRIMARY KEY, value text NOT NULL);
    SELECT kunci.protect_prefix('guarded', 'postgres/')";
const DATABASE: &str = "zombie";

pub(crate) struct Postgres(Server);

impl Postgres {
    fn session(&self) -> Session {
        Session::open(self.0.socket(), DATABASE, "postgres", "").unwrap()
    }
}

impl Target for Postgres {
    const NAME: &'static str = "postgres";
    type Writer = PostgresWriter;

    // The server has a folder that another user may enter: it doesn't run as root.
    fn start(_folder: &Path) -> Self {
        let target = Self(Server::start(&[]));
        target.0.database(DATABASE);
        target.session().run(kunci_fence::postgres::SQL);
        target.session().run(TABLES);
        target
    }

    fn address(&self) -> String {
        self.0.socket().to_str().unwrap().to_owned()
    }

    async fn value(&self, item: &str) -> Option<String> {
        let sql = format!(
            "SELECT value FROM bare WHERE name = '{item}' UNION ALL SELECT value FROM guarded WHERE name = '{item}'"
        );
        self.session().run(&sql).concat().pop()
    }
}

pub(crate) struct PostgresWriter {
    session: Session,
    item: String,
}

impl PostgresWriter {
    /// Half of the rounds call the function; the others are programs that know nothing of kunci, and have the settings.
    fn is_aware(&self) -> bool {
        self.item.bytes().last().is_some_and(|byte| byte % 2 == 0)
    }

    fn transaction(&self, fence: Fence, token: u64, value: &str) -> String {
        let (item, value) = (&self.item, value.replace('\'', "''"));
        let (table, begin) = match fence {
            Fence::Off => ("bare", String::new()),
            Fence::On if self.is_aware() => ("guarded", format!("SELECT kunci.admit('{item}', {token});")),
            Fence::On => {
                ("guarded", format!("SET LOCAL kunci.resource = '{item}'; SET LOCAL kunci.token = {token};"))
            }
        };
        format!(
            "BEGIN; {begin} INSERT INTO {table} VALUES ('{item}', '{value}')
            ON CONFLICT (name) DO UPDATE SET value = excluded.value; COMMIT"
        )
    }
}

impl Writer for PostgresWriter {
    async fn open(address: &str, item: &str) -> Self {
        let session = Session::open(Path::new(address), DATABASE, "postgres", "").unwrap();
        Self { session, item: item.to_owned() }
    }

    async fn write(&mut self, fence: Fence, token: u64, value: &str) -> Result<(), Rejected> {
        let Err(refused) = self.session.query(&self.transaction(fence, token, value)) else { return Ok(()) };
        self.session.run("ROLLBACK");
        let Refused { code, detail, .. } = &refused;
        let rejected = kunci_fence::postgres::rejected(code, detail).unwrap_or_else(|| panic!("{refused}"));
        Err(Rejected { found: rejected.found.get(), kept: rejected.kept.get() })
    }
}
