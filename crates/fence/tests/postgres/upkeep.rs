//! Installing again, dumping and restoring, forgetting.

use super::{empty, fenced};
use kunci_fence::postgres::SQL;

#[test]
fn installing_again_changes_nothing() {
    let database = fenced("again");
    let mut session = database.session();
    session.run("CREATE TABLE t (id int); SELECT kunci.protect('t', 'r'); SELECT kunci.admit('r', 5)");
    session.run("CREATE ROLE again LOGIN; GRANT EXECUTE ON FUNCTION kunci.admit(text, bigint) TO again");

    session.run(SQL);
    session.run(SQL);

    assert_eq!(session.refused("SELECT kunci.admit('r', 4)").code, "KF001");
    assert_eq!(session.refused("DELETE FROM t").code, "KF002");
    assert_eq!(
        session.value("SELECT has_function_privilege('again', 'kunci.admit(text, bigint)', 'EXECUTE')"),
        "t",
        "rights that were given stay"
    );
}

#[test]
fn many_may_install_at_the_same_time() {
    let database = empty("together");
    let install = || database.session().query(SQL).map(drop);

    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(install)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    assert_eq!(results, [Ok(()), Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_newer_version_is_not_replaced() {
    let mut session = fenced("newer_version").session();
    session
        .run("CREATE OR REPLACE FUNCTION kunci.fence_version() RETURNS integer LANGUAGE sql AS 'SELECT 2'");

    let refused = session.refused(SQL);

    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        ("KF006", "version 2 of the fence is installed, and this is version 1")
    );
}

/// Data, tokens and guards come back together.
#[test]
fn a_restored_dump_still_turns_late_writers_away() {
    let database = fenced("dumped");
    database.session().run(
        "CREATE TABLE t (id int); SELECT kunci.protect('t', 'r'); SELECT kunci.admit('r', 5);
        BEGIN; SELECT kunci.admit('r', 5); INSERT INTO t VALUES (1); COMMIT;
        CREATE ROLE dump_reader LOGIN; GRANT USAGE ON SCHEMA kunci TO dump_reader",
    );
    let dump = database.command("pg_dump").output().unwrap();
    assert!(dump.status.success());
    let dump = String::from_utf8(dump.stdout).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &dump).unwrap();
    let restored = empty("restored");

    let output =
        restored.command("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(file.path()).output();
    let output = output.unwrap();

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut session = restored.session();
    assert_eq!(session.value("SELECT count(*) FROM t"), "1");
    assert_eq!(session.refused("DELETE FROM t").code, "KF002");
    assert_eq!(session.refused("SELECT kunci.admit('r', 4)").code, "KF001");
    assert_eq!(session.run("SELECT * FROM kunci.faults()"), Vec::<Vec<String>>::new());
    session.run(SQL);
}

/// Nothing grows for ever, and no late writer gets through for that.
#[test]
fn what_was_forgotten_leaves_a_floor_below_which_no_token_passes() {
    let database = fenced("forgotten");
    let mut session = database.session();
    session.run(
        "SELECT kunci.admit('old', 20), kunci.admit('older', 10), kunci.admit('fresh', 5), kunci.admit('busy', 30);
        UPDATE kunci.fence SET raised_at = now() - interval '31 days' WHERE resource <> 'fresh'",
    );
    let mut busy = database.session();
    busy.run("BEGIN; SELECT kunci.admit('busy', 30)");

    assert_eq!(session.value("SELECT kunci.forget()"), "2", "a resource that is in use stays");

    let refused = session.refused("SELECT kunci.admit('old', 19)");
    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        ("KF001", "fencing token 19 for resource 'old' is rejected: 20 was admitted before")
    );
    assert_eq!(session.refused("SELECT kunci.admit('never seen', 19)").code, "KF001");
    session.run("SELECT kunci.admit('old', 20), kunci.admit('older', 21), kunci.admit('fresh', 5)");
    assert_eq!(session.refused("SELECT kunci.forget('23 hours')").code, "KF006");
    assert_eq!(session.refused("SELECT kunci.forget(NULL)").code, "KF006");
    busy.run("COMMIT");
    assert_eq!(session.value("SELECT kunci.forget()"), "1");
    assert_eq!(session.value("SELECT token FROM kunci.fence_floor"), "30");
}
