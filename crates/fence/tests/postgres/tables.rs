//! Guarded tables: every way to write one, by programs that know nothing of kunci.

use super::postgres::{Database, Session};
use super::{LEVELS, Pending, fenced};

/// A guarded table `t` with two rows, under token 5 of resource `r`.
fn guarded(name: &str) -> (Database, Session) {
    let database = fenced(name);
    let mut session = database.session();
    session.run(
        "CREATE TABLE t (id int PRIMARY KEY, word text); INSERT INTO t VALUES (1, 'one'), (2, 'two');
        SELECT kunci.protect('t', 'r'); SELECT kunci.admit('r', 5)",
    );
    (database, session)
}

const WRITES: [&str; 11] = [
    "INSERT INTO t VALUES (3, 'three')",
    "UPDATE t SET word = 'changed'",
    "UPDATE t SET word = 'none' WHERE false",
    "DELETE FROM t",
    "TRUNCATE t",
    "INSERT INTO t VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET word = excluded.word",
    "MERGE INTO t USING (VALUES (1)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET word = 'merged'",
    "MERGE INTO t USING (VALUES (9)) AS s (id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'merged')",
    "WITH gone AS (DELETE FROM t RETURNING *) SELECT count(*) FROM gone",
    "UPDATE shown SET word = 'through a view'",
    "SELECT writes()",
];

/// S9.
#[test]
fn every_kind_of_write_needs_a_token_and_an_older_one_changes_nothing() {
    let (database, mut session) = guarded("kinds");
    session.run(
        "CREATE VIEW shown AS SELECT * FROM t;
        CREATE FUNCTION writes() RETURNS void LANGUAGE sql AS 'DELETE FROM t'",
    );
    for sql in WRITES {
        let mut without = database.session();
        assert_eq!(without.refused(sql).code, "KF002", "{sql}");
        let mut late = database.session_with("postgres", "-c kunci.token=4");
        let refused = late.refused(sql);
        assert_eq!(refused.code, "KF001", "{sql}");
        assert!(refused.message.contains('4') && refused.message.contains('5'), "{refused}");
    }
    assert_eq!(session.run("SELECT word FROM t ORDER BY id"), [["one"], ["two"]]);
    for sql in WRITES {
        let mut holder = database.session_with("postgres", "-c kunci.token=5");
        holder.run(&format!("BEGIN; {sql}; ROLLBACK"));
    }
}

#[test]
fn copy_needs_a_token() {
    let (database, _) = guarded("copy");
    let copy = |options: &str| {
        let mut command = database.command("psql");
        command.args([
            "-X",
            "-q",
            "-c",
            "\\set VERBOSITY verbose",
            "-c",
            "COPY t FROM PROGRAM 'echo 7,seven' CSV",
        ]);
        let output = command.env("PGOPTIONS", options).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    assert!(copy("").1.contains("KF002"));
    assert!(copy("-c kunci.token=4").1.contains("KF001"));
    assert_eq!(copy("-c kunci.token=5"), (true, String::new()));
}

#[test]
fn a_cascade_into_a_guarded_table_needs_a_token_and_takes_back_the_whole_statement() {
    let (database, mut session) = guarded("cascades");
    session.run(
        "CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2);
        ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE",
    );
    for sql in ["DELETE FROM parent", "UPDATE parent SET id = id + 10", "TRUNCATE parent CASCADE"] {
        assert_eq!(session.refused(sql).code, "KF002", "{sql}");
        let mut late = database.session_with("postgres", "-c kunci.token=4");
        assert_eq!(late.refused(sql).code, "KF001", "{sql}");
    }
    assert_eq!(session.value("SELECT count(*) FROM parent JOIN t USING (id)"), "2");
    database.session_with("postgres", "-c kunci.token=5").run("DELETE FROM parent WHERE id = 1");
    assert_eq!(session.run("SELECT id FROM t"), [["2"]]);
}

#[test]
fn a_partitioned_table_is_guarded_with_its_partitions_and_new_ones_are_told_of() {
    let database = fenced("partitions");
    let mut session = database.session();
    session.run(
        "CREATE TABLE p (id int, word text) PARTITION BY RANGE (id);
        CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);
        CREATE TABLE p11 PARTITION OF p1 FOR VALUES FROM (0) TO (5);
        SELECT kunci.protect('p', 'r'); SELECT kunci.admit('r', 5)",
    );
    for sql in
        ["INSERT INTO p VALUES (1, 'x')", "INSERT INTO p1 VALUES (1, 'x')", "INSERT INTO p11 VALUES (1, 'x')"]
    {
        assert_eq!(session.refused(sql).code, "KF002", "{sql}");
    }

    session.run("CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)");

    assert_eq!(
        session.refused("INSERT INTO p VALUES (11, 'x')").code,
        "KF002",
        "through the table it is guarded"
    );
    assert_eq!(
        session.run("SELECT table_name, fault FROM kunci.protected WHERE fault IS NOT NULL"),
        [["public.p2", "it inherits from a guarded table and has no guard: protect that again"]]
    );
    session.run("SELECT kunci.protect('p', 'r')");
    assert_eq!(session.refused("INSERT INTO p2 VALUES (11, 'x')").code, "KF002");
    assert_eq!(session.value("SELECT count(*) FROM kunci.protected WHERE fault IS NULL"), "4");
    session.run("SELECT kunci.unprotect('p'); INSERT INTO p11 VALUES (1, 'x')");
    assert_eq!(session.value("SELECT count(*) FROM kunci.protected"), "0");
}

#[test]
fn a_table_takes_only_the_resource_that_it_is_bound_to() {
    let (database, mut session) = guarded("bound");
    let mut other = database.session_with("postgres", "-c kunci.token=99 -c kunci.resource=other");
    let refused = other.refused("DELETE FROM t");
    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        ("KF005", "table public.t is bound to resource 'r', and the resource is 'other'")
    );
    let sql = "BEGIN; SELECT kunci.admit('other', 99); DELETE FROM t";
    assert_eq!(session.refused(sql).code, "KF005");
    session.run("ROLLBACK");
    // One after the other, a transaction may write tables of several.
    session.run(
        "CREATE TABLE u (id int); SELECT kunci.protect('u', 'other');
        BEGIN; SELECT kunci.admit('r', 6); DELETE FROM t; SELECT kunci.admit('other', 99); DELETE FROM u;
        SELECT kunci.admit('r', 6); INSERT INTO t VALUES (7, 'seven'); COMMIT",
    );
}

#[test]
fn a_table_that_many_resources_share_is_bound_to_the_beginning_of_their_names() {
    let database = fenced("prefix");
    let mut session = database.session();
    session.run("CREATE TABLE t (id int); SELECT kunci.protect_prefix('t', 'orders/')");
    for (options, code) in [
        ("-c kunci.token=5", "KF005"),
        ("-c kunci.token=5 -c kunci.resource=orders", "KF005"),
        ("-c kunci.token=5 -c kunci.resource=Orders/42", "KF005"),
    ] {
        let mut wrong = database.session_with("postgres", options);
        assert_eq!(wrong.refused("INSERT INTO t VALUES (1)").code, code, "{options}");
    }
    for (resource, token) in [("orders/42", 5), ("orders/43", 4)] {
        let options = format!("-c kunci.token={token} -c kunci.resource={resource}");
        database.session_with("postgres", &options).run("INSERT INTO t VALUES (1)");
    }
    session.run("BEGIN; SELECT kunci.admit('orders/43', 6); INSERT INTO t VALUES (1); COMMIT");
    let mut late = database.session_with("postgres", "-c kunci.token=4 -c kunci.resource=orders/43");
    assert_eq!(late.refused("INSERT INTO t VALUES (1)").code, "KF001");
}

#[test]
fn odd_names_of_tables_and_resources_are_bound_as_they_are() {
    let database = fenced("odd");
    let mut session = database.session();
    let name = r"it's 100% \000 a\b é 日本";
    session.run(r#"CREATE SCHEMA "S p"; CREATE TABLE "S p"."T""q" (id int);"#);
    let quoted = name.replace('\'', "''");
    session.run(&format!(r#"SELECT kunci.protect('"S p"."T""q"', '{quoted}')"#));
    session.run(&format!(r#"SELECT kunci.protect('"S p"."T""q"', '{quoted}')"#));
    assert_eq!(
        session.run("SELECT table_name, kind, name FROM kunci.protected"),
        [[r#""S p"."T""q""#, "resource", name]]
    );
    session.run(&format!(
        r#"BEGIN; SELECT kunci.admit('{quoted}', 5); INSERT INTO "S p"."T""q" VALUES (1); COMMIT"#
    ));
}

/// S9: without a call to kunci.admit, the statement itself waits.
#[test]
fn a_late_statement_that_waits_behind_a_newer_token_is_rejected() {
    let (database, mut session) = guarded("late_statement");
    for (number, level) in LEVELS.iter().enumerate() {
        let token = 10 + 2 * number;
        let isolation = level.replace(' ', "\\ ");
        let options = |token| format!("-c kunci.token={token} -c default_transaction_isolation={isolation}");
        let mut newer = database.session_with("postgres", &options(token + 1));
        newer.run("BEGIN; UPDATE t SET word = 'newer' WHERE id = 1");
        let late = database.session_with("postgres", &options(token));

        let pending = Pending::blocked(&mut session, late, "UPDATE t SET word = 'late' WHERE id = 2");
        newer.run("COMMIT");

        let (mut late, result) = pending.end();
        let code = result.unwrap_err().code;
        assert_eq!(code, if *level == "READ COMMITTED" { "KF001" } else { "40001" }, "{level}");
        assert_eq!(late.refused("UPDATE t SET word = 'late' WHERE id = 2").code, "KF001", "{level}");
        assert_eq!(session.run("SELECT word FROM t ORDER BY id"), [["newer"], ["two"]], "{level}");
    }
}

/// Why `kunci.admit` comes first: a statement that waits in its guard has looked before.
#[test]
fn who_admits_first_sees_all_that_older_tokens_wrote_and_a_lone_statement_does_not() {
    let (database, mut session) = guarded("admit_first");
    let copied = |session: &mut Session| session.value("SELECT count(*) FROM t WHERE id > 100");
    for (token, admit, expected) in [(10, "", "2"), (20, "SELECT kunci.admit();", "3")] {
        let mut older = database.session();
        older.run(&format!("BEGIN; SELECT kunci.admit('r', {token}); DELETE FROM t WHERE id > 2; COMMIT"));
        older.run(&format!("BEGIN; SELECT kunci.admit('r', {token}); INSERT INTO t VALUES (3, 'three')"));
        let options = format!("-c kunci.token={} -c kunci.resource=r", token + 1);
        let newer = database.session_with("postgres", &options);

        let sql = format!("BEGIN; {admit} INSERT INTO t SELECT id + 100, word FROM t; COMMIT");
        let pending = Pending::blocked(&mut session, newer, &sql);
        older.run("COMMIT");
        pending.end().1.unwrap();

        assert_eq!(copied(&mut session), expected, "{admit}");
    }
}

/// What the guard can't do, as docs/fencing.md says.
#[test]
fn replication_and_the_owner_of_a_table_pass_the_guard() {
    let (_, mut session) = guarded("passes");
    session
        .run("BEGIN; SET LOCAL session_replication_role = replica; UPDATE t SET word = 'replayed'; COMMIT");
    session.run("ALTER TABLE t DISABLE TRIGGER kunci_fence; UPDATE t SET word = 'disabled'");
    assert_eq!(session.value("SELECT fault FROM kunci.protected"), "its guard is disabled: protect it again");
    session.run("SELECT kunci.protect('t', 'r')");
    assert_eq!(session.value("SELECT count(*) FROM kunci.protected WHERE fault IS NULL"), "1");
    assert_eq!(session.refused("UPDATE t SET word = 'again'").code, "KF002");
}
