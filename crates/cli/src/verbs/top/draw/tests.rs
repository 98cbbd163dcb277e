//! What a person sees.

use super::*;
use crate::verbs::top::model::News;
use crate::verbs::top::model::tests::{answers, lock, three};
use crate::verbs::top::told::{Detail, Event, Waiter};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;
use std::time::Duration;

fn at(ms: u64) -> Moment {
    Moment::at(Duration::from_millis(ms))
}

fn buffer(model: &Model, screen: &Screen, (width, height): (u16, u16), ms: u64) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, screen, &Theme::new(true), at(ms))).unwrap();
    terminal.backend().buffer().clone()
}

fn text(model: &Model, screen: &Screen, size: (u16, u16), ms: u64) -> String {
    let buffer = buffer(model, screen, size, ms);
    let line = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..size.1).map(|y| format!("{}\n", line(y).trim_end())).collect()
}

fn with_locks() -> Model {
    let mut model = three(0);
    let locks = vec![lock("orders/1", 30_000), lock("orders/2", 8_000)];
    model.take(at(0), at(0), News::Locks { prefix: String::new(), told: Ok((locks.clone(), false)) });
    model.take(at(0), at(0), News::Hot(Ok(locks)));
    let event = Event {
        revision: 7,
        kind: "granted".to_owned(),
        resource: "orders/1".to_owned(),
        owner: "w".to_owned(),
        token: Some(7),
        reason: None,
    };
    model.take(at(0), at(0), News::Event(event));
    model
}

#[test]
fn one_screen_has_the_nodes_the_numbers_the_locks_and_what_happens() {
    let shown = text(&with_locks(), &Screen::default(), (100, 26), 500);
    for expected in [
        "cluster c1: node 1 leads, revision 7",
        "0.5s old",
        "1   leader    a     ok     99       0    954 MiB",
        "3   follower  a     ok     97       2",
        "held 3",
        "orders/1  w       4      29.5s    1m01s     2",
        "orders/2  w       4      7.5s",
        "─ Events",
        "granted  orders/1  w",
    ] {
        assert!(shown.contains(expected), "{expected}:\n{shown}");
    }
}

#[test]
fn a_cluster_without_a_leader_says_so_first_and_in_red() {
    let mut model = with_locks();
    for id in 1..=3 {
        answers(&mut model, 1_000, id, 0, 6);
    }
    let buffer = buffer(&model, &Screen::default(), (100, 26), 1_000);
    let line: String = (0..100).map(|x| buffer[(x, 1)].symbol()).collect();
    assert!(line.starts_with(" ! NO LEADER: nothing is granted, renewed or released"), "{line}");
    assert_eq!(buffer[(3, 1)].fg, Color::Red);
}

#[test]
fn without_colours_an_alarm_is_still_set_apart() {
    let mut model = with_locks();
    for id in 1..=3 {
        answers(&mut model, 1_000, id, 0, 6);
    }
    let mut terminal = Terminal::new(TestBackend::new(100, 26)).unwrap();
    terminal.draw(|frame| draw(frame, &model, &Screen::default(), &Theme::new(false), at(1_000))).unwrap();
    let buffer = terminal.backend().buffer();
    assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(buffer[(3, 1)].modifier.contains(ratatui::style::Modifier::REVERSED));
}

#[test]
fn one_lock_has_its_queue_in_order_and_its_past() {
    let mut model = with_locks();
    model.open(Some("orders/1".to_owned()));
    let waiter = |position, owner: &str| Waiter {
        position,
        owner: owner.to_owned(),
        waited_ms: 4_200,
        left_ms: 59_000,
        attached: position == 1,
    };
    let event = Event { revision: 3, kind: "queued".to_owned(), owner: "w2".to_owned(), ..Event::default() };
    let told = Detail {
        lock: lock("orders/1", 20_000),
        waiters: vec![waiter(1, "first"), waiter(2, "second")],
        events: vec![event],
    };
    model.take(at(0), at(0), News::Detail { resource: "orders/1".to_owned(), told: Ok(told) });
    let screen = Screen { opened: Some("orders/1".to_owned()), ..Screen::default() };
    let shown = text(&model, &screen, (100, 30), 1_000);
    for expected in [
        "orders/1 is held by w",
        "ends in   19s of 30s",
        "1  first   4.2s    59s          yes",
        "2  second  4.2s    59s          no",
        "3         queued  w2",
    ] {
        assert!(shown.contains(expected), "{expected}:\n{shown}");
    }
}

#[test]
fn the_chosen_row_is_on_the_screen_however_long_the_list() {
    let mut model = three(0);
    let locks = (0..500).map(|number| lock(&format!("r{number:03}"), 30_000)).collect();
    model.take(at(0), at(0), News::Locks { prefix: String::new(), told: Ok((locks, true)) });
    let screen = Screen { row: 250, ..Screen::default() };
    let shown = text(&model, &screen, (80, 24), 0);
    assert!(shown.contains("r250") && !shown.contains("r000") && shown.contains("Locks 500+"), "{shown}");
}

/// Whatever the size, it is drawn without a panic, and what is wrong is on it.
#[test]
fn every_size_of_terminal_shows_what_is_wrong() {
    let mut model = with_locks();
    for id in 1..=3 {
        answers(&mut model, 1_000, id, 0, 6);
    }
    for (width, height) in [(1, 1), (12, 4), (30, 8), (40, 10), (80, 24), (130, 20), (200, 60), (300, 3)] {
        for tab in Tab::ALL {
            let screen = Screen { tab, has_help: height % 2 == 0, row: 7, ..Screen::default() };
            let shown = text(&model, &screen, (width, height), 1_000);
            let is_readable = width >= 12 && height >= 3;
            let in_the_way = screen.has_help && height < 20;
            assert!(!is_readable || in_the_way || shown.contains("NO LEADER"), "{width}x{height}:\n{shown}");
        }
    }
}

#[test]
fn names_with_wide_letters_and_escape_sequences_break_no_column() {
    let mut model = three(0);
    let locks = vec![lock("鍵/東京", 30_000), lock("a\u{1b}[2J\u{202e}b", 30_000)];
    model.take(at(0), at(0), News::Locks { prefix: String::new(), told: Ok((locks, false)) });
    let shown = text(&model, &Screen::default(), (100, 26), 0);
    assert!(shown.contains("a�[2J�b") && !shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown}");
}

#[test]
fn a_search_and_an_empty_result_are_told() {
    let mut model = three(0);
    model.search("x/");
    model.take(at(0), at(0), News::Locks { prefix: "x/".to_owned(), told: Ok((Vec::new(), false)) });
    let screen = Screen { typed: Some("x/y".to_owned()), ..Screen::default() };
    let shown = text(&model, &screen, (100, 26), 0);
    assert!(shown.contains("Locks 0 that begin with x/") && shown.contains("/x/y▏"), "{shown}");
    assert!(shown.contains("nothing with this prefix is held or waited for"), "{shown}");
}
