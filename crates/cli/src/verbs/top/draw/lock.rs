//! One lock by itself: how it stands, who waits, what happened.

use super::grid::Grid;
use super::{Theme, lines};
use crate::duration::human;
use crate::output::card;
use crate::verbs::top::clean::clean;
use crate::verbs::top::model::Model;
use crate::verbs::top::words;
use kunci_client::Moment;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// Draws the lock that is looked at.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: &Theme, now: Moment) {
    let Some((resource, read)) = &model.detail else { return };
    let detail = &read.value;
    let name = clean(resource);
    let text = match (read.asked_at, &read.trouble) {
        (None, None) => format!("{name}: not read yet"),
        (None, Some(why)) => format!("{name}: {why}"),
        (Some(_), _) => {
            let lock = &detail.lock;
            let left = model.left_ms(read, lock, now).map(|left| human(left / 100 * 100));
            let of = lock.ttl_ms.map(|ttl| format!(" of {}", human(ttl))).unwrap_or_default();
            let waiting = detail.waiters.len();
            let state = match (&lock.holder, lock.lock_delay_ms) {
                (Some(holder), _) => format!("{name} is held by {holder}"),
                (None, Some(delay)) => format!("{name} is closed for {}", human(delay)),
                (None, None) => format!("{name} is free"),
            };
            let old = read.trouble.as_ref().map(|why| format!("as of {:.0}s ago: {why}", age(model, now)));
            let fields = [
                ("token", lock.token.map(|token| token.to_string())),
                ("ends in", left.map(|left| format!("{left}{of}"))),
                ("held for", lock.held_ms.map(|held| human(held / 1_000 * 1_000))),
                ("metadata", lock.metadata.clone()),
                ("waiting", Some(waiting.to_string())),
                ("OLD", old),
            ];
            card(&state, &fields)
        }
    };
    let heights = [
        Constraint::Length(lines(text.lines().count())),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Fill(1),
    ];
    let [above, queue_head, queue, history_head, history] = Layout::vertical(heights).areas(area);
    frame.render_widget(Paragraph::new(text), above);
    let waiters = detail.waiters.iter().map(|waiter| {
        let cells = vec![
            waiter.position.to_string(),
            waiter.owner.clone(),
            human(waiter.waited_ms / 100 * 100),
            human(waiter.left_ms / 1_000 * 1_000),
            if waiter.attached { "yes" } else { "no" }.to_owned(),
        ];
        (cells, theme.plain())
    });
    frame.render_widget(Line::styled("─ Queue, first one first ", theme.dim()), queue_head);
    let rows = waiters.collect();
    Grid { heads: &words::QUEUE, rows, importance: &[0, 1, 2, 4, 3], nothing: "nobody waits" }
        .draw(frame, queue, theme);
    frame.render_widget(Line::styled("─ What happened, newest first ", theme.dim()), history_head);
    let rows = detail.events.iter().map(|event| (words::event(event).to_vec(), theme.plain())).collect();
    Grid { heads: &words::EVENTS, rows, importance: &[0, 1, 3, 4], nothing: "nothing that is still kept" }
        .draw(frame, history, theme);
}

fn age(model: &Model, now: Moment) -> f64 {
    model.detail.as_ref().and_then(|(_, read)| read.age(now)).unwrap_or_default().as_secs_f64()
}
