//! `kunci fence postgres` and `kunci exec --fence-postgres`.

use crate::node::Node;
use crate::postgres::Database;
use crate::{empty, in_shell, started};
use serde_json::{Value, json};
use std::process::Command;

/// The built `kunci`, with a database in its environment.
fn kunci(database: &Database, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kunci"));
    command.args(["fence", "postgres"]).args(arguments).envs(database.environment());
    command
}

/// Its exit code, and what it wrote to both ends.
fn ended(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn checked(database: &Database) -> (Option<i32>, Value) {
    let (code, answer, _) = ended(&mut kunci(database, &["check", "--json"]));
    (code, serde_json::from_str(&answer).unwrap())
}

#[test]
fn what_is_printed_is_what_is_installed() {
    let database = empty("printed");
    let (code, printed, _) = ended(&mut kunci(&database, &["print"]));
    assert_eq!((code, printed.as_str()), (Some(0), kunci_fence::postgres::SQL.trim_end()));
    database.session().run(&printed);
    let (code, answer) = checked(&database);
    assert_eq!((code, &answer["version"], &answer["faults"]), (Some(0), &json!(1), &json!([])));
}

#[test]
fn check_says_what_is_guarded_and_what_is_missing_and_its_exit_code_does_too() {
    let database = empty("checked");
    let (code, answer) = checked(&database);
    assert_eq!((code, &answer["version"]), (Some(1), &Value::Null));
    assert_eq!(answer["faults"], json!(["the fence isn't installed: kunci fence postgres install"]));

    let (code, said, _) = ended(&mut kunci(&database, &["install"]));
    assert_eq!((code, said.as_str()), (Some(0), "version 1 of the fence is installed in database checked"));
    let mut session = database.session();
    session.run("CREATE TABLE t (id int); SELECT kunci.protect('t', 'it''s')");
    let (code, answer) = checked(&database);
    assert_eq!(
        (code, &answer["tables"]),
        (Some(0), &json!([{"table": "public.t", "resource": "it's", "fault": null}]))
    );

    session.run("ALTER TABLE t DISABLE TRIGGER kunci_fence");
    let (code, answer) = checked(&database);
    assert_eq!(
        (code, &answer["tables"][0]["fault"]),
        (Some(1), &json!("its guard is disabled: protect it again"))
    );

    session.run("SELECT kunci.protect('t', 'it''s'); GRANT UPDATE ON kunci.fence TO PUBLIC");
    let (code, answer) = checked(&database);
    assert_eq!(code, Some(1));
    assert_eq!(
        answer["faults"],
        json!(["role PUBLIC may change table kunci.fence past the fence: REVOKE it"])
    );
}

#[test]
fn a_database_that_is_not_there_or_refuses_is_told_of_in_words() {
    let database = empty("refusing");
    let nowhere = ["install", "--database", "postgresql:///nowhere?host=/nonexistent"];
    let (code, said, why) = ended(&mut kunci(&database, &nowhere));
    assert_eq!((code, said.as_str()), (Some(69), ""));
    assert!(why.contains("No such file or directory") && why.contains("--database"), "{why}");

    database.session().run("CREATE ROLE nobody_much LOGIN");
    let (code, _, why) = ended(kunci(&database, &["install"]).env("PGUSER", "nobody_much"));
    assert_eq!(code, Some(1));
    assert!(why.contains("permission denied for database refusing"), "{why}");

    let (code, _, why) = ended(kunci(&database, &["check"]).env("PATH", "/nonexistent"));
    assert_eq!(code, Some(1));
    assert!(why.contains("install it (Debian: postgresql-client)"), "{why}");
}

/// What exec's command is told, read back by the server itself.
fn told(node: &Node, database: &Database, resource: &str, options: &str) -> String {
    let ask = "SELECT current_setting('kunci.resource'), current_setting('kunci.token'), current_setting('work_mem')";
    let script = format!("exec kunci exec \"$RESOURCE\" --fence-postgres -- psql -XAtqc \"{ask}\"");
    let mut shell = in_shell(&script, node, database);
    let (code, said, why) = ended(shell.env("RESOURCE", resource).env("PGOPTIONS", options));
    assert_eq!(code, Some(0), "{resource}: {why}");
    said
}

#[test]
fn exec_tells_postgres_the_resource_as_it_is_called_and_the_token_and_keeps_other_options() {
    let folder = tempfile::tempdir().unwrap();
    let node = started(&folder.path().join("data"));
    let database = empty("told");
    let mut last = 0;
    for resource in ["orders/42", "a  b c", r"back\slash \", "it's \"so\" = -c x", "é 日本 🔑"] {
        let said = told(&node, &database, resource, r"-c work_mem=7MB -c kunci.token=1 \");
        let fields: Vec<_> = said.split('|').collect();
        assert_eq!((fields[0], fields[2]), (resource, "7MB"), "{said}");
        let token = fields[1].parse::<u64>().unwrap();
        assert!(token > last, "{token} is the new grant's");
        last = token;
    }
}
