//! `kunci.admit`: what it takes, what it refuses, and how long it holds.

use super::fenced;

/// S9.
#[test]
fn a_smaller_token_is_rejected_with_both_numbers_and_an_equal_one_passes() {
    let mut session = fenced("smaller").session();
    for token in ["33", "33", "34", "34"] {
        assert_eq!(session.value(&format!("SELECT kunci.admit('jobs/nightly', {token})")), token);
    }

    let refused = session.refused("SELECT kunci.admit('jobs/nightly', 33)");

    assert_eq!(refused.code, "KF001");
    assert_eq!(
        refused.message,
        "fencing token 33 for resource 'jobs/nightly' is rejected: 34 was admitted before"
    );
    assert_eq!(
        session.value(&format!("SELECT '{}'::jsonb", refused.detail)),
        r#"{"token": 33, "current": 34, "resource": "jobs/nightly"}"#,
        "as POST /fencing-rejections takes it"
    );
    assert_eq!(session.value("SELECT kunci.admit('jobs/hourly', 1)"), "1", "another resource");
}

#[test]
fn what_is_no_token_is_refused_and_changes_nothing() {
    let mut session = fenced("no_token").session();
    let refused = [
        ("SELECT kunci.admit('r', NULL)", "KF002"),
        ("SELECT kunci.admit()", "KF002"),
        ("SELECT kunci.admit('r', 0)", "KF003"),
        ("SELECT kunci.admit('r', -1)", "KF003"),
        ("SELECT kunci.admit('r', 9007199254740992)", "KF003"),
        ("SELECT kunci.admit('r', 9223372036854775807)", "KF003"),
        // PostgreSQL's own: no bigint.
        ("SELECT kunci.admit('r', '9223372036854775808')", "22003"),
        ("SELECT kunci.admit('r', 'garbage')", "22P02"),
        ("SET kunci.token = '0'; SELECT kunci.admit()", "KF003"),
        ("SET kunci.token = '-1'; SELECT kunci.admit()", "KF003"),
        ("SET kunci.token = '1.5'; SELECT kunci.admit()", "KF003"),
        ("SET kunci.token = ' 7'; SELECT kunci.admit()", "KF003"),
        ("SET kunci.token = '0x7'; SELECT kunci.admit()", "KF003"),
        ("SET kunci.token = '9007199254740992'; SELECT kunci.admit()", "KF003"),
        ("SET kunci.token = '99999999999999999999999999'; SELECT kunci.admit()", "KF003"),
        ("SET kunci.token = '7'; SELECT kunci.admit()", "KF004"),
    ];
    for (sql, code) in refused {
        assert_eq!(session.refused(sql).code, code, "{sql}");
    }
    assert_eq!(session.value("SELECT count(*) FROM kunci.fence"), "0");
    assert_eq!(session.value("SELECT kunci.admit('r', 9007199254740991)"), "9007199254740991");
}

#[test]
fn a_resource_is_named_as_a_lock_is() {
    let mut session = fenced("names").session();
    let refused =
        ["NULL", "''", "' a'", "'a '", "E'a\\tb'", "E'a\\u0085b'", "E'e\\u0301'", "repeat('x', 257)"];
    for name in refused {
        let refused = session.refused(&format!("SELECT kunci.admit({name}, 7)"));
        assert_eq!(refused.code, "KF004", "{name}: {refused}");
    }
    for name in ["orders/42", "a b", "it''s", "a\\b", "é", "日本", "🔑", "Orders", "%s"] {
        assert_eq!(session.value(&format!("SELECT kunci.admit('{name}', 7)")), "7", "{name}");
    }
    assert_eq!(session.value("SELECT kunci.admit(repeat('x', 256), 7)"), "7");
    assert_eq!(session.value("SELECT kunci.admit('orders', 6)"), "6", "case counts");
}

#[test]
fn what_was_admitted_in_a_savepoint_goes_with_it() {
    let mut session = fenced("savepoints").session();
    session.run("SELECT kunci.admit('r', 5)");

    session.run("BEGIN; SAVEPOINT a; SELECT kunci.admit('r', 9); ROLLBACK TO a");

    assert_eq!(session.value("SELECT current_setting('kunci.token', true)"), "", "no token is left behind");
    assert_eq!(session.value("SELECT kunci.admit('r', 7)"), "7", "9 was never admitted");
    session.run("ROLLBACK");
    assert_eq!(session.value("SELECT kunci.admit('r', 5)"), "5", "nor was 7");
}

#[test]
fn a_transaction_that_was_admitted_leaves_no_token_to_the_next_one() {
    let mut session = fenced("leftover").session();
    session.run("BEGIN; SELECT kunci.admit('r', 5); COMMIT");

    assert_eq!(session.refused("SELECT kunci.admit()").code, "KF002");
}

#[test]
fn an_error_that_the_caller_catches_admits_nothing() {
    let mut session = fenced("caught").session();
    session.run("SELECT kunci.admit('r', 5)");

    session.run(
        "DO $$ BEGIN PERFORM kunci.admit('r', 4); RAISE 'admitted'; EXCEPTION WHEN SQLSTATE 'KF001' THEN NULL; END $$",
    );

    assert_eq!(session.refused("SELECT kunci.admit('r', 4)").code, "KF001");
}
