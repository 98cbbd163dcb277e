//! Every command and statement in docs/fencing.md runs, in order, and says what the page shows.
//!
//! Owns: what an `sql` block means. A statement ends with a line that ends in `;`, and `--> ` below it shows what it
//! gives: rows, what it did, or `ERROR <SQLSTATE>: <message>`. Never: a statement of its own.

use crate::console::{Step, blocks, is_as_shown, steps};
use crate::node::Node;
use crate::postgres::{Database, Session};
use crate::{empty, in_shell, started};
use std::path::Path;

/// A statement, and what the page shows of its result.
#[derive(Debug, PartialEq, Eq)]
struct Statement {
    line: usize,
    sql: String,
    shown: Vec<String>,
}

fn statements(page: &str) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for (first, block) in blocks(page, "sql") {
        let mut begun: Option<Statement> = None;
        for (line, text) in (first..).zip(block.lines()) {
            if let Some(shown) = text.strip_prefix("--> ") {
                statements.last_mut().unwrap().shown.push(shown.to_owned());
                continue;
            }
            let statement = begun.get_or_insert(Statement { line, sql: String::new(), shown: Vec::new() });
            statement.sql.push_str(text);
            statement.sql.push('\n');
            if text.ends_with(';') {
                statements.extend(begun.take());
            }
        }
        assert_eq!(begun, None, "a statement ends with its block");
    }
    statements
}

/// What a statement gives, as the page shows it.
fn result(session: &mut Session, sql: &str) -> Vec<String> {
    match session.query(sql) {
        Err(refused) => vec![format!("ERROR {}: {}", refused.code, refused.message)],
        Ok(rows) if rows.is_empty() => vec![session.done.clone()],
        Ok(rows) => rows.iter().map(|row| row.join(" | ")).collect(),
    }
}

fn check_statement(session: &mut Session, statement: &Statement) {
    let found = result(session, &statement.sql);
    let shown = &statement.shown;
    let is_refused = found[0].starts_with("ERROR ");
    let is_right =
        if shown.is_empty() { !is_refused } else { is_as_shown(&shown.join("\n"), &found.join("\n")) };
    assert!(
        is_right,
        "docs/fencing.md:{}: {}shows {shown:?} but gives {found:?}",
        statement.line, statement.sql
    );
}

fn check_command(folder: &Path, node: &Node, database: &Database, step: &Step<'_>) {
    let mut shell = in_shell(&format!("exec 2>&1; {}", step.command), node, database);
    let output = shell.current_dir(folder).output().unwrap();
    let found = String::from_utf8(output.stdout).unwrap();
    let shown = step.shown.join("\n");
    assert!(
        is_as_shown(&shown, found.trim_end()),
        "docs/fencing.md:{}: `{}` shows\n{shown}\nbut says\n{found}",
        step.line,
        step.command
    );
}

#[test]
fn every_command_and_statement_of_the_page_gives_what_it_shows() {
    let page = include_str!("../../../../docs/fencing.md");
    let folder = tempfile::tempdir().unwrap();
    let node = started(&folder.path().join("data"));
    let database = empty("shop");
    let mut session = database.session();
    let mut commands = steps(page).into_iter().peekable();
    let statements = statements(page);
    assert!(statements.len() > 50 && commands.len() > 5, "the page has lost its examples");

    for statement in &statements {
        while let Some(step) = commands.next_if(|step| step.line < statement.line) {
            check_command(folder.path(), &node, &database, &step);
        }
        check_statement(&mut session, statement);
    }
    commands.for_each(|step| check_command(folder.path(), &node, &database, &step));
}

#[test]
fn a_statement_may_have_several_lines_and_shows_what_follows_it() {
    let page = "```sql\nSELECT 1;\n--> 1\nSELECT\n  2;\n```\n";
    let statement = |line, sql: &str, shown: &[&str]| Statement {
        line,
        sql: sql.to_owned(),
        shown: shown.iter().map(|text| (*text).to_owned()).collect(),
    };
    assert_eq!(statements(page), [statement(2, "SELECT 1;\n", &["1"]), statement(4, "SELECT\n  2;\n", &[])]);
}
