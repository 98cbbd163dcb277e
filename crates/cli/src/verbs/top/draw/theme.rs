//! Colours, or what stands for them.

use ratatui::style::{Color, Modifier, Style};

/// How things are set apart.
#[derive(Clone, Copy, Debug)]
pub(in crate::verbs::top) struct Theme {
    has_colours: bool,
}

impl Theme {
    /// With colours unless the person wants none: <https://no-color.org>.
    pub(in crate::verbs::top) fn of_environment() -> Self {
        Self::new(std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
    }

    /// With colours, or without.
    pub(in crate::verbs::top) fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    fn colour(self, colour: Color, else_as: Modifier) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new().add_modifier(else_as) }
    }

    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    pub(super) fn head(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn good(self) -> Style {
        self.colour(Color::Green, Modifier::BOLD)
    }

    pub(super) fn warning(self) -> Style {
        self.colour(Color::Yellow, Modifier::BOLD)
    }

    pub(super) fn alarm(self) -> Style {
        let loud = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
        if self.has_colours { loud.fg(Color::Red) } else { loud }
    }

    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
