//! A table that gives up columns when there is no room.

use super::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

/// No column takes more, as long as there are others.
const COLUMN_MAX: usize = 48;
const GAP: u16 = 2;

/// Heads and rows.
pub(super) struct Grid<'a> {
    /// The heads.
    pub(super) heads: &'a [&'a str],
    /// The rows' cells, and how a row looks.
    pub(super) rows: Vec<(Vec<String>, Style)>,
    /// The columns, those that stay longest first.
    pub(super) importance: &'a [usize],
    /// What is said when there is no row.
    pub(super) nothing: &'a str,
}

impl Grid<'_> {
    /// Draws as many rows as there is room for.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        if area.height == 0 || area.width == 0 {
            return;
        }
        let columns = self.columns(area.width);
        let buffer = frame.buffer_mut();
        let mut line = |y: u16, cells: &mut dyn Iterator<Item = (usize, &str)>, style: Style| {
            buffer.set_style(Rect { y, height: 1, ..area }, style);
            for (column, cell) in cells {
                if let Some((_, x, width)) = columns.iter().find(|(index, ..)| *index == column) {
                    buffer.set_stringn(area.x + x, y, cell, usize::from(*width), style);
                }
            }
        };
        if self.rows.is_empty() {
            line(area.y, &mut std::iter::empty(), theme.plain());
            buffer.set_stringn(area.x + 1, area.y, self.nothing, usize::from(area.width - 1), theme.dim());
            return;
        }
        line(area.y, &mut self.heads.iter().copied().enumerate(), theme.dim());
        for ((cells, style), y) in self.rows.iter().zip(area.y + 1..area.bottom()) {
            line(y, &mut cells.iter().map(String::as_str).enumerate(), *style);
        }
    }

    /// The columns that there is room for: index, place, width.
    fn columns(&self, width: u16) -> Vec<(usize, u16, u16)> {
        let natural = |column: usize| {
            let cells = self
                .rows
                .iter()
                .filter_map(|(cells, _)| cells.get(column))
                .map(|cell| Span::raw(cell).width());
            let head = self.heads.get(column).map(|head| head.len());
            cells.chain(head).max().unwrap_or(0).min(COLUMN_MAX)
        };
        let mut left = width;
        let mut chosen: Vec<(usize, u16)> = Vec::new();
        for column in self.importance {
            let wanted = u16::try_from(natural(*column)).unwrap_or(u16::MAX);
            match left.checked_sub(wanted) {
                Some(rest) => {
                    chosen.push((*column, wanted));
                    left = rest.saturating_sub(GAP);
                }
                // Rather a part of what matters most than nothing.
                None if chosen.len() < 2 && left > 0 => {
                    chosen.push((*column, left));
                    left = 0;
                }
                None => {}
            }
        }
        chosen.sort_unstable();
        let mut x = 0;
        let mut placed = Vec::with_capacity(chosen.len());
        for (column, wide) in chosen {
            placed.push((column, x, wide));
            x += wide + GAP;
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_columns_go_first() {
        let rows = vec![(["1", "leader", "a-long-address:7400"].map(str::to_owned).to_vec(), Style::new())];
        let grid = Grid { heads: &["ID", "ROLE", "HTTP"], rows, importance: &[0, 2, 1], nothing: "" };
        let columns = |width| grid.columns(width).iter().map(|column| column.0).collect::<Vec<_>>();
        assert_eq!(columns(40), [0, 1, 2]);
        assert_eq!(columns(24), [0, 2]);
        assert_eq!(grid.columns(10), [(0, 0, 2), (2, 4, 6)], "a part of the address");
    }
}
