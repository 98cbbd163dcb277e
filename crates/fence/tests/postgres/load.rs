//! Eight writers with interleaved tokens, in each isolation level.
//!
//! Owns: the load and what an inversion is. Never: a clock; every writer has its number of tokens.

use super::postgres::{Database, Refused, Session};
use super::{LEVELS, fenced};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WRITERS: u64 = 8;
const TOKENS_EACH: u64 = 60;

/// What became of the tokens.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    written: u64,
    rejected: u64,
    repeated: u64,
}

/// What one writer does with a token, in one transaction that is left open when it fails.
type Write = fn(&mut Session, level: &str, token: u64) -> Result<bool, Refused>;

/// As a program that knows the fence.
fn admit_then_write(session: &mut Session, level: &str, token: u64) -> Result<bool, Refused> {
    session.query(&format!("BEGIN ISOLATION LEVEL {level}"))?;
    session.query(&format!("SELECT kunci.admit('r', {token})"))?;
    session.query(&format!("INSERT INTO written (token) VALUES ({token})"))?;
    session.query("COMMIT")?;
    Ok(true)
}

/// As a program that only has the setting.
fn write(session: &mut Session, level: &str, token: u64) -> Result<bool, Refused> {
    session.query(&format!("SET SESSION kunci.token = '{token}'; SET SESSION kunci.resource = 'r'"))?;
    session.query(&format!("BEGIN ISOLATION LEVEL {level}"))?;
    session.query(&format!("INSERT INTO written (token) VALUES ({token})"))?;
    session.query("COMMIT")?;
    Ok(true)
}

/// What many do instead: look, then write.
fn check_then_write(session: &mut Session, level: &str, token: u64) -> Result<bool, Refused> {
    session.query(&format!("BEGIN ISOLATION LEVEL {level}"))?;
    let newest = session.query("SELECT coalesce(max(token), 0) FROM written")?;
    let is_newest = newest[0][0].parse::<u64>().unwrap() <= token;
    if is_newest {
        session.query(&format!("INSERT INTO written (token) VALUES ({token})"))?;
    }
    session.query("COMMIT")?;
    Ok(is_newest)
}

/// One writer: draws tokens, is held up, and writes twice with each.
fn writer(database: &Database, number: u64, level: &str, write: Write, mint: &AtomicU64) -> Tally {
    let mut session = database.session();
    let mut tally = Tally::default();
    for round in 0..TOKENS_EACH {
        let token = mint.fetch_add(1, Ordering::Relaxed);
        for attempt in 0..2 {
            std::thread::sleep(Duration::from_micros((number * 977 + round * 613 + attempt * 1_409) % 4_000));
            loop {
                let result = write(&mut session, level, token);
                if result.is_err() {
                    session.run("ROLLBACK");
                }
                match result {
                    Ok(true) => tally.written += 1,
                    Ok(false) => tally.rejected += 1,
                    Err(refused) if refused.code == "KF001" => tally.rejected += 1,
                    Err(refused) if ["40001", "40P01"].contains(&refused.code.as_str()) => {
                        tally.repeated += 1;
                        continue;
                    }
                    Err(refused) => panic!("{level}: {refused}"),
                }
                break;
            }
        }
    }
    tally
}

/// Lets all writers go, and gives what became of their tokens and how many rows came after a newer token's.
fn load(database: &Database, level: &str, writes: [Write; 2]) -> (Tally, u64) {
    let mint = AtomicU64::new(1);
    let tallies: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS)
            .map(|number| {
                let (mint, write) = (&mint, writes[usize::from(number % 2 == 1)]);
                scope.spawn(move || writer(database, number, level, write, mint))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let tally = tallies.iter().fold(Tally::default(), |sum, one| Tally {
        written: sum.written + one.written,
        rejected: sum.rejected + one.rejected,
        repeated: sum.repeated + one.repeated,
    });
    let mut session = database.session();
    assert_eq!(
        session.value("SELECT count(*) FROM written"),
        tally.written.to_string(),
        "all that was written is there"
    );
    let late = session.value(
        "SELECT count(*) FROM (SELECT token, max(token) OVER (ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND
        1 PRECEDING) AS newest FROM written) rows WHERE token < newest",
    );
    (tally, late.parse().unwrap())
}

/// Rows that say in which order they were written.
const WRITTEN: &str = "CREATE TABLE written (place bigserial, token bigint NOT NULL)";

/// S9.
#[test]
fn no_write_of_an_older_token_comes_after_one_of_a_newer_in_any_isolation_level() {
    for level in LEVELS {
        let database = fenced(&format!("load_{}", level.replace(' ', "_").to_lowercase()));
        database.session().run(&format!("{WRITTEN}; SELECT kunci.protect('written', 'r')"));

        let (tally, late) = load(&database, level, [admit_then_write, write]);

        println!("{level}: {tally:?}, {late} late");
        assert_eq!(late, 0, "{level}: {tally:?}");
        assert!(tally.written > 0 && tally.rejected > 0, "{level}: the load was none: {tally:?}");
    }
}

/// The load is one that shows it: without the fence, late writes land.
#[test]
fn to_check_and_then_write_lets_late_writes_land() {
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        let database = fenced(&format!("naive_{}", level.replace(' ', "_").to_lowercase()));
        database.session().run(WRITTEN);

        let (tally, late) = load(&database, level, [check_then_write, check_then_write]);

        println!("{level}: {tally:?}, {late} late");
        assert!(late > 0, "{level}: {tally:?}");
    }
}
