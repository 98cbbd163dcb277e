//! The live screen.
//!
//! Owns: what is where, and what gives way when there is little room. Never: asks, or decides what is known.

mod grid;
mod lock;
mod theme;

pub(super) use theme::Theme;

use super::clean::clean;
use super::keys::{Screen, Tab};
use super::model::{Model, NodeRow, Reach};
use super::words;
use grid::Grid;
use kunci_client::Moment;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

/// With less than this nothing can be told apart.
const WIDTH_MIN: u16 = 30;
const HEIGHT_MIN: u16 = 8;
/// From this width on, what is hot, ends soon and happens has a column of its own.
const WIDE: u16 = 130;

const HELP: &str = "\
 1 2 3 4  tab     locks, hot, expiring, events
 up down j k      another row; also page up and down, home, end
 enter            one lock: its queue and what happened to it
 esc              back; or the search is over
 /                search: only names that begin so
 ?                this help
 q  ctrl-c        the end

 Rates and latencies are over the last ten seconds.
 A remaining time is counted down here; the cluster decides when a lease ends.";

/// Draws what is known.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, screen: &Screen, theme: &Theme, now: Moment) {
    let area = frame.area();
    let alarms = model.alarms(now);
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        let said = alarms.first().cloned().unwrap_or_else(|| words::title(model, now));
        let text = format!("{said}\n(this terminal is too small for more)");
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let rows = model.rows(now);
    let height = area.height;
    let alarm_lines = lines(alarms.len()).min((height / 4).max(1));
    let node_lines = (lines(rows.len()) + 1).min(height / 3);
    let total_lines = if height >= 24 { 3 } else { u16::from(height >= 14) };
    let heights = [1, alarm_lines, node_lines, total_lines].map(Constraint::Length);
    let parts = [&heights[..], &[Constraint::Min(2), Constraint::Length(1)]].concat();
    let [title, alarm, nodes, totals, main, foot] = Layout::vertical(parts).areas(area);

    draw_title(frame, title, model, theme, now);
    draw_alarms(frame, alarm, &alarms, theme);
    draw_nodes(frame, nodes, &rows, theme);
    let text = words::totals(&model.totals(now)).join(" · ");
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), totals);
    draw_main(frame, main, model, screen, theme, now);
    draw_foot(frame, foot, model, screen, theme);
    if screen.has_help {
        draw_help(frame, area);
    }
}

/// How many rows of a list a page has on a screen of this height.
pub(super) fn page(height: u16) -> usize {
    usize::from(height / 2).max(1)
}

fn lines(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: &Theme, now: Moment) {
    let age = match model.age(now) {
        Some(age) => format!(" {:.1}s old ", age.as_secs_f64()),
        None => " no data yet ".to_owned(),
    };
    let width = lines(age.len()).min(area.width);
    let [left, right] = Layout::horizontal([Constraint::Min(0), Constraint::Length(width)]).areas(area);
    frame.render_widget(Line::styled(words::title(model, now), theme.head()), left);
    frame.render_widget(Line::styled(age, theme.dim()), right);
}

fn draw_alarms(frame: &mut Frame<'_>, area: Rect, alarms: &[String], theme: &Theme) {
    let shown = alarms.iter().take(usize::from(area.height)).enumerate().map(|(at, alarm)| {
        let rest = alarms.len().saturating_sub(usize::from(area.height));
        let is_last = at + 1 == usize::from(area.height);
        let more = if is_last && rest > 0 { format!(" (and {rest} more)") } else { String::new() };
        let is_loud = alarm.starts_with("NO ");
        let style = if is_loud { theme.alarm() } else { theme.warning() };
        Line::styled(format!(" ! {alarm}{more} "), style)
    });
    frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), area);
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, rows: &[NodeRow], theme: &Theme) {
    let style = |row: &NodeRow| match &row.reach {
        Reach::No(..) | Reach::Silent(_) => theme.warning(),
        _ if row.role == "leader" => theme.good(),
        _ => theme.plain(),
    };
    Grid {
        heads: &words::NODES,
        rows: rows.iter().map(|row| (words::node(row).to_vec(), style(row))).collect(),
        // What a person needs first when there is no room for all.
        importance: &[0, 1, 3, 9, 5, 6, 4, 7, 2, 8],
        nothing: "no node is known yet",
    }
    .draw(frame, area, theme);
}

fn draw_main(frame: &mut Frame<'_>, area: Rect, model: &Model, screen: &Screen, theme: &Theme, now: Moment) {
    if screen.opened.is_some() {
        lock::draw(frame, area, model, theme, now);
        return;
    }
    if area.width >= WIDE {
        let parts = [Constraint::Percentage(58), Constraint::Percentage(42)];
        let [left, right] = Layout::horizontal(parts).areas(area);
        draw_tab(frame, left, model, screen, theme, now);
        let others = Tab::ALL.into_iter().filter(|tab| *tab != screen.tab && *tab != Tab::Locks);
        let others: Vec<Tab> = others.collect();
        let areas = Layout::vertical(others.iter().map(|_| Constraint::Fill(1))).split(right);
        for (tab, area) in others.into_iter().zip(areas.iter()) {
            draw_list(frame, *area, model, tab, None, theme, now);
        }
    } else if area.height >= 16 && screen.tab != Tab::Events {
        let [above, below] = Layout::vertical([Constraint::Fill(2), Constraint::Fill(1)]).areas(area);
        draw_tab(frame, above, model, screen, theme, now);
        draw_list(frame, below, model, Tab::Events, None, theme, now);
    } else {
        draw_tab(frame, area, model, screen, theme, now);
    }
}

fn draw_tab(frame: &mut Frame<'_>, area: Rect, model: &Model, screen: &Screen, theme: &Theme, now: Moment) {
    draw_list(frame, area, model, screen.tab, Some(screen.row), theme, now);
}

/// A list under its name; with the row that is chosen, when keys move it.
fn draw_list(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    tab: Tab,
    chosen: Option<usize>,
    theme: &Theme,
    now: Moment,
) {
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    frame.render_widget(heading(model, tab, chosen.is_some(), theme), head);
    let room = usize::from(body.height.saturating_sub(1));
    if tab == Tab::Events {
        let from = first_shown(chosen, model.events.len(), room);
        let events = model.events.iter().skip(from).take(room).enumerate();
        let rows =
            events.map(|(at, event)| (words::event(event).to_vec(), row_style(chosen, from + at, theme)));
        let nothing = model.no_events.as_deref().unwrap_or("nothing has happened since");
        let grid =
            Grid { heads: &words::EVENTS, rows: rows.collect(), importance: &[1, 2, 3, 0, 4], nothing };
        grid.draw(frame, body, theme);
        return;
    }
    let list = words::list(model, tab, now);
    let from = first_shown(chosen, list.len(), room);
    let chosen = chosen.map(|row| row.min(list.len().saturating_sub(1)));
    let shown = list.iter().skip(from).take(room).enumerate();
    let rows = shown
        .map(|(at, (lock, left))| (words::lock(lock, *left).to_vec(), row_style(chosen, from + at, theme)));
    let grid = Grid {
        heads: &words::LOCKS,
        rows: rows.collect(),
        importance: &[0, 1, 3, 5, 2, 4],
        nothing: nothing(model, tab),
    };
    grid.draw(frame, body, theme);
}

/// Why a list is empty.
fn nothing(model: &Model, tab: Tab) -> &str {
    let read = match tab {
        Tab::Hot => &model.hot,
        Tab::Expiring => &model.next,
        Tab::Locks | Tab::Events => &model.locks,
    };
    match (&read.trouble, read.asked_at, tab) {
        (Some(why), _, _) => why,
        (None, None, _) => "not read yet",
        (None, Some(_), Tab::Hot) => "nobody waits for anything",
        (None, Some(_), Tab::Expiring) => "no lease ends within ten seconds without being renewed in time",
        (None, Some(_), _) if model.prefix.is_empty() => "nothing is held or waited for",
        (None, Some(_), _) => "nothing with this prefix is held or waited for",
    }
}

fn heading(model: &Model, tab: Tab, is_chosen: bool, theme: &Theme) -> Line<'static> {
    let count = match tab {
        Tab::Locks => {
            let more = if model.has_more { "+" } else { "" };
            format!(" {}{more}", model.locks.value.len())
        }
        Tab::Hot | Tab::Expiring | Tab::Events => String::new(),
    };
    let prefix = if model.prefix.is_empty() || matches!(tab, Tab::Hot | Tab::Expiring) {
        String::new()
    } else {
        format!(" that begin with {}", clean(&model.prefix))
    };
    let text = format!("─ {}{count}{prefix} ", tab.name());
    let style = if is_chosen { theme.head() } else { theme.dim() };
    Line::from(vec![Span::styled(text, style), Span::styled("─".repeat(200), theme.dim())])
}

/// The first row that is shown, so that the chosen one is.
fn first_shown(chosen: Option<usize>, count: usize, room: usize) -> usize {
    let row = chosen.unwrap_or(0).min(count.saturating_sub(1));
    (row + 1).saturating_sub(room)
}

fn row_style(chosen: Option<usize>, row: usize, theme: &Theme) -> ratatui::style::Style {
    if chosen == Some(row) { theme.chosen() } else { theme.plain() }
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, model: &Model, screen: &Screen, theme: &Theme) {
    let text = match &screen.typed {
        Some(typed) => format!("/{}▏  enter: search, esc: not", clean(typed)),
        None if screen.opened.is_some() => " esc back  q quit  ? help".to_owned(),
        None if !model.prefix.is_empty() => {
            " esc end the search  enter one lock  tab another list  q quit  ? help".to_owned()
        }
        None => " / search  enter one lock  tab another list  q quit  ? help".to_owned(),
    };
    frame.render_widget(Line::styled(text, theme.dim()), area);
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let width = 84.min(area.width);
    let height = 13.min(area.height);
    let help = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, help);
    frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title(" kunci top ")), help);
}

#[cfg(test)]
mod tests;
