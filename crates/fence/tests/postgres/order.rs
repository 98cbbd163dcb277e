//! Who waits for whom: tokens and writes commit together, in the order of the tokens.

use super::{LEVELS, Pending, fenced};
use std::time::Duration;

/// S9: what was admitted first is written first.
#[test]
fn a_newer_token_waits_for_the_writes_of_an_older_one() {
    let database = fenced("newer_waits");
    let mut observer = database.session();
    observer.run("CREATE TABLE word (token bigint)");
    for (number, level) in LEVELS.iter().enumerate() {
        let (older, newer) = (10 * number + 1, 10 * number + 2);
        observer.run("TRUNCATE word");
        let mut first = database.session();
        first.run(&format!("BEGIN ISOLATION LEVEL {level}; SELECT kunci.admit('r', {older})"));
        let second = database.session();
        let begin = format!("BEGIN ISOLATION LEVEL {level}; SELECT kunci.admit('r', {newer})");

        let pending = Pending::blocked(&mut observer, second, &begin);
        first.run(&format!("INSERT INTO word VALUES ({older}); COMMIT"));
        let (mut second, result) = pending.end();

        // With one snapshot for the whole transaction it would not see what it waited for.
        if *level == "READ COMMITTED" {
            assert_eq!(result.unwrap(), [[newer.to_string()]], "{level}");
        } else {
            assert_eq!(result.unwrap_err().code, "40001", "{level}");
            second.run(&format!("ROLLBACK; {begin}"));
        }
        assert_eq!(
            second.value("SELECT token FROM word"),
            older.to_string(),
            "{level}: it sees what older ones wrote"
        );
        second.run("COMMIT");
    }
}

/// S9, C31: the late writer, at the worst moment.
#[test]
fn an_older_token_that_waits_behind_a_newer_one_is_rejected() {
    let database = fenced("older_waits");
    let mut observer = database.session();
    for (number, level) in LEVELS.iter().enumerate() {
        // 41 has written before; 40 never has.
        for (kept, older) in [(41, 41), (40, 41), (0, 41)] {
            let resource = format!("r{number}-{kept}");
            if kept > 0 {
                observer.run(&format!("SELECT kunci.admit('{resource}', {kept})"));
            }
            let mut newer = database.session();
            newer.run(&format!("BEGIN ISOLATION LEVEL {level}; SELECT kunci.admit('{resource}', 42)"));
            let late = format!("BEGIN ISOLATION LEVEL {level}; SELECT kunci.admit('{resource}', {older})");

            let pending = Pending::blocked(&mut observer, database.session(), &late);
            newer.run("COMMIT");
            let (mut session, result) = pending.end();

            let mut refused = result.unwrap_err();
            if refused.code == "40001" {
                assert_ne!(*level, "READ COMMITTED");
                session.run("ROLLBACK");
                refused = session.refused(&late);
            }
            assert_eq!(refused.code, "KF001", "{level}, {kept} was kept: {refused}");
            assert!(refused.message.contains("41") && refused.message.contains("42"), "{refused}");
        }
    }
}

/// A snapshot from before the newer token can't make the older one pass.
#[test]
fn an_old_snapshot_hides_no_newer_token() {
    let database = fenced("old_snapshot");
    let mut observer = database.session();
    for (number, level) in LEVELS[1..].iter().enumerate() {
        for kept in [41, 40, 0] {
            let resource = format!("r{number}-{kept}");
            if kept > 0 {
                observer.run(&format!("SELECT kunci.admit('{resource}', {kept})"));
            }
            let mut late = database.session();
            late.run(&format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM pg_class"));
            observer.run(&format!("SELECT kunci.admit('{resource}', 42)"));

            let refused = late.refused(&format!("SELECT kunci.admit('{resource}', 41)"));

            assert_eq!(refused.code, "40001", "{level}, {kept} was kept: {refused}");
        }
    }
}

#[test]
fn a_newer_token_that_is_rolled_back_lets_the_older_one_go_on() {
    let database = fenced("rolled_back");
    let mut observer = database.session();
    for level in LEVELS {
        for resource in ["known", "unknown"] {
            let resource = format!("{resource} {level}");
            if resource.starts_with("known") {
                observer.run(&format!("SELECT kunci.admit('{resource}', 41)"));
            }
            let mut newer = database.session();
            newer.run(&format!("BEGIN; SELECT kunci.admit('{resource}', 42)"));
            let sql = format!("BEGIN ISOLATION LEVEL {level}; SELECT kunci.admit('{resource}', 41); COMMIT");

            let pending = Pending::blocked(&mut observer, database.session(), &sql);
            newer.run("ROLLBACK");

            assert_eq!(pending.end().1.unwrap(), [["41"]], "{resource}");
        }
    }
}

#[test]
fn transactions_of_one_token_go_side_by_side() {
    let database = fenced("side_by_side");
    let (mut first, mut second) = (database.session(), database.session());
    first.run("SELECT kunci.admit('r', 5)");
    first.run("BEGIN; SELECT kunci.admit('r', 5)");

    second.run("SET lock_timeout = '2s'; BEGIN; SELECT kunci.admit('r', 5); COMMIT");

    let refused = second.refused("SET lock_timeout = '50ms'; SELECT kunci.admit('r', 6)");
    assert_eq!(refused.code, "55P03", "the first is still there: {refused}");
    first.run("COMMIT");
    second.run("SELECT kunci.admit('r', 6)");
}

/// C31: a holder that goes on and on under its old token can't keep the newer one waiting.
#[test]
fn transactions_of_an_older_token_that_overlap_without_end_let_a_newer_one_have_its_turn() {
    let database = fenced("overlap");
    let mut newer = database.session();
    newer.run("SELECT kunci.admit('r', 5); SET statement_timeout = '10s'");
    let older = |delay: u64| {
        let mut session = database.session();
        std::thread::sleep(Duration::from_millis(delay));
        for _ in 0..400 {
            let result = session.query("BEGIN; SELECT kunci.admit('r', 5); SELECT pg_sleep(0.05); COMMIT");
            if let Err(refused) = result {
                return refused.code;
            }
        }
        "never refused".to_owned()
    };

    let codes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = [0, 17, 34]
            .map(|delay| {
                let older = &older;
                scope.spawn(move || older(delay))
            })
            .into_iter()
            .collect();
        std::thread::sleep(Duration::from_millis(200));
        newer.run("SELECT kunci.admit('r', 6)");
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    assert_eq!(codes, ["KF001", "KF001", "KF001"]);
}

#[test]
fn a_prepared_transaction_holds_off_a_newer_token_until_it_is_decided() {
    let database = fenced("prepared");
    let mut observer = database.session();
    observer.run("CREATE TABLE word (token bigint)");
    database
        .session()
        .run("BEGIN; SELECT kunci.admit('r', 5); INSERT INTO word VALUES (5); PREPARE TRANSACTION 'half'");

    let sql = "SELECT kunci.admit('r', 6); SELECT token FROM word";
    let pending = Pending::blocked(&mut observer, database.session(), sql);
    observer.run("COMMIT PREPARED 'half'");

    assert_eq!(pending.end().1.unwrap(), [["5"]]);
}

/// C31: stopped in the middle of a transaction, which would hold the resource for ever.
#[test]
fn the_transaction_of_a_stopped_writer_is_ended_by_the_server_after_its_time() {
    let database = fenced("stopped");
    let mut observer = database.session();
    observer.run("CREATE TABLE word (token bigint)");
    let mut stopped = database.session_with("postgres", "-c idle_in_transaction_session_timeout=300");
    stopped.run("BEGIN; SELECT kunci.admit('r', 5); INSERT INTO word VALUES (5)");

    let sql = "BEGIN; SELECT kunci.admit('r', 6); INSERT INTO word VALUES (6); COMMIT";
    Pending::blocked(&mut observer, database.session(), sql).end().1.unwrap();

    let refused = stopped.refused("INSERT INTO word VALUES (5); COMMIT");
    assert!(["25P03", "08006"].contains(&refused.code.as_str()), "its session has ended: {refused}");
    assert_eq!(observer.run("SELECT token FROM word"), [["6"]]);
}

/// Two resources in opposite order: one of both is told to retry.
#[test]
fn a_deadlock_is_retriable() {
    let database = fenced("deadlock");
    let mut observer = database.session();
    let mut first = database.session();
    let mut second = database.session();
    first.run("BEGIN; SELECT kunci.admit('a', 1)");
    second.run("BEGIN; SELECT kunci.admit('b', 2)");

    let pending = Pending::blocked(&mut observer, first, "SELECT kunci.admit('b', 3)");
    let here = second.query("SELECT kunci.admit('a', 4)");
    if here.is_ok() {
        second.run("COMMIT");
    } else {
        second.run("ROLLBACK");
    }
    let there = pending.end().1;

    let codes: Vec<_> =
        [here, there].into_iter().filter_map(Result::err).map(|refused| refused.code).collect();
    assert_eq!(codes, ["40P01"]);
}
