//! `kunci fence postgres`.
//!
//! Owns: what is asked of a database, and how its answer is shown. Never: the fence, which is `kunci_fence::postgres`; or
//! a connection, which is psql's.

mod psql;

use crate::answer::text;
use crate::exit::{Exit, Failure};
use crate::output::{Form, Output, card, table};
use clap::{Args, Subcommand};
use kunci_fence::postgres::{SQL, VERSION};
use psql::Psql;
use serde_json::Value;

/// What `--help` says after the options.
const AFTER_HELP: &str = "\
Exit codes:
   0  done; of check: nothing is missing
   1  the database refuses; of check: something is missing
   2  usage: an argument can't be used as given
   3  install only, outcome unknown: the connection was lost; run it again
  69  no server reachable: nothing was changed";

/// What `--help` says of the way to the database.
const DATABASE: &str = "\
The database is reached by psql, which has to be installed (Debian: postgresql-client). It takes what libpq takes: the PG* \
variables, ~/.pgpass, a service file. Keep a password out of --database, which other users of the machine can see.

TLS is libpq's, too: unless sslmode says otherwise, it is used where the server has it, and the server's certificate isn't \
checked; sslmode=verify-full checks it.";

/// `kunci fence postgres`.
#[derive(Debug, Args)]
pub(crate) struct PostgresArgs {
    /// What to do.
    #[command(subcommand)]
    verb: PostgresVerb,
}

/// What can be done with the fence in PostgreSQL.
#[derive(Debug, Subcommand)]
enum PostgresVerb {
    /// Write the SQL of the fence to standard output.
    Print,
    /// Install the fence in a database, or bring it up to date; what is guarded stays guarded.
    #[command(after_help = AFTER_HELP, after_long_help = with_database())]
    Install(DatabaseArgs),
    /// Show the version of the fence in a database, which tables it guards, and what is missing.
    #[command(after_help = AFTER_HELP, after_long_help = with_database())]
    Check(DatabaseArgs),
}

/// Which database.
#[derive(Debug, Args)]
struct DatabaseArgs {
    /// A postgresql:// URL, a libpq connection string, or a name; without it the PG* variables say.
    #[arg(long, value_name = "DATABASE")]
    database: Option<String>,
    /// Write the answer as JSON.
    #[arg(long)]
    json: bool,
}

fn with_database() -> String {
    format!("{AFTER_HELP}\n\n{DATABASE}")
}

impl PostgresArgs {
    /// Whether `--json` was given.
    pub(crate) fn form(&self) -> Form {
        match &self.verb {
            PostgresVerb::Install(args) | PostgresVerb::Check(args) if args.json => Form::Json,
            PostgresVerb::Print | PostgresVerb::Install(_) | PostgresVerb::Check(_) => Form::Human,
        }
    }
}

/// Does what is asked.
pub(crate) fn run(args: &PostgresArgs, output: &Output) -> Result<Exit, Failure> {
    match &args.verb {
        PostgresVerb::Print => output.line(SQL).map(|()| Exit::Done),
        PostgresVerb::Install(args) => install(args, output),
        PostgresVerb::Check(args) => check(args, output),
    }
}

/// What the database is called, and which fence it has.
const PLACE: &str = "SELECT json_build_object('database', current_database(), 'server', current_setting('server_version'), \
     'version', kunci.fence_version());";

fn install(args: &DatabaseArgs, output: &Output) -> Result<Exit, Failure> {
    let answer = Psql { database: args.database.as_deref() }.changed(&format!("{SQL}\n{PLACE}"))?;
    output.answer(&answer, |answer| {
        let place = text(answer, "database").unwrap_or_default();
        format!("version {} of the fence is installed in database {place}", answer["version"])
    })?;
    Ok(Exit::Done)
}

/// Everything that is wanted to know, as one line of JSON; psql leaves out what isn't there yet.
const CHECK: &str = "
SELECT to_regprocedure('kunci.fence_version()') IS NOT NULL AS is_installed \\gset
\\if :is_installed
SELECT json_build_object('database', current_database(), 'server', current_setting('server_version'),
  'version', kunci.fence_version(),
  'tables', (SELECT coalesce(json_agg(json_build_object('table', table_name, kind, name, 'fault', fault)
    ORDER BY table_name), '[]') FROM kunci.protected),
  'faults', (SELECT coalesce(json_agg(fault), '[]') FROM kunci.faults() AS fault));
\\else
SELECT json_build_object('database', current_database(), 'server', current_setting('server_version'),
  'version', NULL, 'tables', json_build_array(), 'faults', json_build_array());
\\endif
";

fn check(args: &DatabaseArgs, output: &Output) -> Result<Exit, Failure> {
    let mut answer = Psql { database: args.database.as_deref() }.asked(CHECK)?;
    let found = answer["version"].as_u64();
    if let (Some(fault), Some(faults)) = (version_fault(found), answer["faults"].as_array_mut()) {
        faults.insert(0, Value::String(fault));
    }
    output.answer(&answer, shown)?;
    let is_fine = faults(&answer).is_empty() && guarded(&answer).iter().all(|row| row["fault"].is_null());
    Ok(if is_fine { Exit::Done } else { Exit::Refused })
}

/// What is to be done about the version that was found.
fn version_fault(found: Option<u64>) -> Option<String> {
    let ours = u64::from(VERSION);
    match found {
        None => Some("the fence isn't installed: kunci fence postgres install".to_owned()),
        Some(found) if found < ours => Some(format!(
            "version {found} is installed, and this kunci brings version {ours}: kunci fence postgres install"
        )),
        Some(found) if found > ours => {
            Some(format!("version {found} is installed, and this kunci knows up to {ours}: use a newer one"))
        }
        Some(_) => None,
    }
}

fn faults(answer: &Value) -> &[Value] {
    answer["faults"].as_array().map_or(&[], Vec::as_slice)
}

fn guarded(answer: &Value) -> &[Value] {
    answer["tables"].as_array().map_or(&[], Vec::as_slice)
}

/// The answer, for people.
fn shown(answer: &Value) -> String {
    let version =
        answer["version"].as_u64().map_or_else(|| "not installed".to_owned(), |found| found.to_string());
    let field = |name| text(answer, name).map(str::to_owned);
    let fields = [("server", field("server")), ("fence", Some(version))];
    let mut shown = card(&format!("database {}", field("database").unwrap_or_default()), &fields);
    if !guarded(answer).is_empty() {
        let rows: Vec<_> = guarded(answer).iter().map(row).collect();
        shown.push_str(&format!("\n{}", table(&["TABLE", "RESOURCE", "GUARD"], &rows)));
    }
    for fault in faults(answer) {
        shown.push_str(&format!("\nfault: {}", fault.as_str().unwrap_or_default()));
    }
    shown
}

fn row(guarded: &Value) -> Vec<String> {
    let resource = text(guarded, "resource").map(str::to_owned);
    // A name may end in any character, so a prefix says that it is one.
    let prefix = text(guarded, "prefix").map(|prefix| format!("{prefix}… (prefix)"));
    vec![
        text(guarded, "table").unwrap_or_default().to_owned(),
        resource.or(prefix).unwrap_or_default(),
        text(guarded, "fault").unwrap_or("whole").to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_person_sees_each_table_and_every_fault() {
        let answer = json!({
            "database": "shop", "server": "15.7", "version": 1,
            "tables": [
                { "table": "public.accounts", "resource": "accounts", "fault": null },
                { "table": "public.orders", "prefix": "orders/", "fault": "its guard is disabled" },
            ],
            "faults": ["role app may change table kunci.fence past the fence: REVOKE it"],
        });
        assert_eq!(
            shown(&answer),
            "database shop\n  server  15.7\n  fence   1\n\
             TABLE            RESOURCE           GUARD\n\
             public.accounts  accounts           whole\n\
             public.orders    orders/… (prefix)  its guard is disabled\n\
             fault: role app may change table kunci.fence past the fence: REVOKE it"
        );
    }

    #[test]
    fn only_the_version_that_this_program_brings_is_without_fault() {
        assert_eq!(version_fault(Some(u64::from(VERSION))), None);
        for found in [None, Some(0), Some(u64::from(VERSION) + 1)] {
            assert!(version_fault(found).is_some(), "{found:?}");
        }
    }
}
