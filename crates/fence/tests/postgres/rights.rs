//! Least privilege: who may what, and that nobody gets past the fence by a right that writers have.

use super::{empty, fenced};

/// A writer needs nothing but its right on the table.
#[test]
fn a_writer_without_any_right_on_the_fence_is_fenced() {
    let database = fenced("plain_writer");
    let mut owner = database.session();
    owner.run(
        "CREATE ROLE plain_writer LOGIN; CREATE TABLE t (id int); GRANT ALL ON t TO plain_writer;
        SELECT kunci.protect('t', 'r')",
    );

    database.session_with("plain_writer", "-c kunci.token=5").run("INSERT INTO t VALUES (1)");

    let mut late = database.session_with("plain_writer", "-c kunci.token=4");
    assert_eq!(late.refused("INSERT INTO t VALUES (1)").code, "KF001");
    let denied = [
        "SELECT kunci.admit('r', 9)",
        "SELECT kunci.compare_and_keep('r', 9)",
        "SELECT * FROM kunci.fence",
        "ALTER TABLE t DISABLE TRIGGER kunci_fence",
        "DROP TRIGGER kunci_fence ON t",
        "SELECT kunci.unprotect('t')",
        "SET session_replication_role = replica",
    ];
    for sql in denied {
        assert_eq!(late.refused(sql).code, "42501", "{sql}");
    }
}

#[test]
fn who_may_admit_may_do_nothing_else() {
    let database = fenced("admitter");
    let mut owner = database.session();
    owner.run(
        "CREATE ROLE admitter LOGIN; CREATE TABLE t (id int); GRANT INSERT ON t TO admitter;
        SELECT kunci.protect('t', 'r'); GRANT USAGE ON SCHEMA kunci TO admitter",
    );
    let mut writer = database.session_with("admitter", "");
    assert_eq!(
        writer.refused("SELECT kunci.admit('r', 5)").code,
        "42501",
        "to see the schema isn't to use it"
    );
    owner.run("GRANT EXECUTE ON FUNCTION kunci.admit(text, bigint) TO admitter");

    writer.run("BEGIN; SELECT kunci.admit('r', 5); INSERT INTO t VALUES (1); COMMIT");

    let denied = [
        "UPDATE kunci.fence SET token = 1",
        "DELETE FROM kunci.fence",
        "TRUNCATE kunci.fence",
        "INSERT INTO kunci.fence VALUES ('x', 1, now())",
        "SELECT * FROM kunci.fence FOR SHARE",
        "UPDATE kunci.fence_floor SET token = 0",
        "SELECT kunci.compare_and_keep('r', 9)",
        "SELECT kunci.forget()",
        "CREATE TABLE kunci.mine (id int)",
        "CREATE OR REPLACE FUNCTION kunci.admit(resource text, token bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1'",
    ];
    for sql in denied {
        assert_eq!(writer.refused(sql).code, "42501", "{sql}");
    }
    // Even with every function: none of the others runs with its owner's rights.
    owner.run("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA kunci TO admitter");
    for sql in
        ["SELECT kunci.forget()", "SELECT kunci.compare_and_keep('r', 9)", "SELECT kunci.unprotect('t')"]
    {
        assert_eq!(writer.refused(sql).code, "42501", "{sql}");
    }
}

/// Whoever owns a table can protect it, and its writers then need nothing.
#[test]
fn the_owner_of_a_table_can_protect_it_without_owning_the_fence() {
    let database = fenced("table_owner");
    database.session().run(
        "CREATE ROLE table_owner LOGIN; CREATE SCHEMA mine AUTHORIZATION table_owner;
        GRANT USAGE ON SCHEMA kunci TO table_owner; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA kunci TO table_owner",
    );
    let mut owner = database.session_with("table_owner", "");

    owner.run("CREATE TABLE mine.t (id int); SELECT kunci.protect('mine.t', 'r')");

    assert_eq!(owner.refused("INSERT INTO mine.t VALUES (1)").code, "KF002");
    database.session_with("table_owner", "-c kunci.token=5").run("INSERT INTO mine.t VALUES (1)");
}

/// A function that runs with its owner's rights must not find the caller's tables, functions or operators.
#[test]
fn a_search_path_leads_nobody_astray() {
    let database = fenced("search_path");
    database.session().run(
        "CREATE ROLE pathfinder LOGIN; CREATE SCHEMA evil AUTHORIZATION pathfinder;
        CREATE TABLE t (id int); GRANT ALL ON t TO pathfinder; SELECT kunci.protect('t', 'r');
        SELECT kunci.admit('r', 5)",
    );
    let mut writer = database.session_with("pathfinder", "-c kunci.token=4");
    writer.run(
        "CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '9' $$;
        CREATE FUNCTION evil.less(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
        CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.less);
        CREATE TEMPORARY TABLE fence (resource text, token bigint);
        CREATE TEMPORARY TABLE pg_trigger (id int)",
    );
    writer.run("SET search_path = evil, pg_temp, pg_catalog, kunci");

    assert_eq!(writer.refused("INSERT INTO public.t VALUES (1)").code, "KF001");
}

#[test]
fn rights_that_let_somebody_past_the_fence_are_told_of() {
    let database = fenced("told");
    let mut owner = database.session();
    assert_eq!(owner.run("SELECT * FROM kunci.faults()"), Vec::<Vec<String>>::new());

    owner.run(
        "CREATE ROLE told LOGIN; GRANT UPDATE, DELETE ON kunci.fence TO told; GRANT CREATE ON SCHEMA kunci TO PUBLIC;
        GRANT SELECT ON kunci.fence TO PUBLIC; ALTER FUNCTION kunci.guard() OWNER TO told; TRUNCATE kunci.fence_floor",
    );

    assert_eq!(
        owner.run("SELECT * FROM kunci.faults() ORDER BY 1"),
        [
            ["kunci.guard belongs to role told, and the schema to postgres"],
            ["role PUBLIC may create objects in schema kunci: REVOKE it"],
            ["role told may change table kunci.fence past the fence: REVOKE it"],
            ["table kunci.fence_floor is empty: install again"],
        ]
    );
}

#[test]
fn the_schema_of_another_role_is_not_taken_over() {
    let database = empty("foreign_schema");
    let mut session = database.session();
    session.run("CREATE ROLE squatter LOGIN; CREATE SCHEMA kunci AUTHORIZATION squatter");

    let refused = session.refused(kunci_fence::postgres::SQL);

    assert_eq!(refused.code, "KF006");
    assert_eq!(refused.message, "schema kunci belongs to role squatter, and this is role postgres");
}

/// The owner needs no superuser: only CREATE on the database.
#[test]
fn a_role_of_its_own_can_own_the_fence() {
    let database = empty("own_role");
    database.session().run("CREATE ROLE fence_owner LOGIN; GRANT CREATE ON DATABASE own_role TO fence_owner");
    let mut owner = database.session_with("fence_owner", "");
    owner.run(kunci_fence::postgres::SQL);
    let mut session = database.session();
    session.run("CREATE TABLE t (id int); SELECT kunci.protect('t', 'r')");

    database.session_with("postgres", "-c kunci.token=5").run("INSERT INTO t VALUES (1)");

    assert_eq!(owner.run("SELECT resource, token FROM kunci.fence"), [["r", "5"]]);
    assert_eq!(session.refused("INSERT INTO t VALUES (1)").code, "KF002");
}
