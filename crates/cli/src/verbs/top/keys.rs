//! What keys do.
//!
//! Owns: what is on the screen: which list, which row, which lock, what is being typed. Never: draws or asks.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A prefix can't be longer than a name.
const TYPED_MAX: usize = 256;

/// Which list is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    /// Locks in order of name.
    #[default]
    Locks,
    /// The longest queues.
    Hot,
    /// Leases that end soon.
    Expiring,
    /// What happens.
    Events,
}

impl Tab {
    /// In the order of their keys, 1 to 4.
    pub(super) const ALL: [Self; 4] = [Self::Locks, Self::Hot, Self::Expiring, Self::Events];

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Locks => "Locks",
            Self::Hot => "Hot",
            Self::Expiring => "Expiring",
            Self::Events => "Events",
        }
    }

    fn after(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL.get((at + steps) % Self::ALL.len()).copied().unwrap_or_default()
    }
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Nothing but another picture.
    Draw,
    /// The locks with this prefix.
    Search(String),
    /// This lock, or none.
    Open(Option<String>),
    /// The end.
    Quit,
    /// To stop for a while, as Ctrl-Z asks.
    Stop,
}

/// What is on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Screen {
    /// The list.
    pub(super) tab: Tab,
    /// The row.
    pub(super) row: usize,
    /// The lock that is looked at by itself.
    pub(super) opened: Option<String>,
    /// The prefix that is being typed.
    pub(super) typed: Option<String>,
    /// Whether the keys are explained.
    pub(super) has_help: bool,
}

impl Screen {
    /// Takes in a key, on a list of these resources, of which a page has so many; `prefix` is what is searched for now.
    pub(super) fn press(&mut self, key: KeyEvent, list: &[String], page: usize, prefix: &str) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Draw;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Wish::Quit,
                KeyCode::Char('z') => Wish::Stop,
                _ => Wish::Draw,
            };
        }
        if let Some(typed) = self.typed.take() {
            return self.type_on(typed, key.code, prefix);
        }
        if self.has_help {
            self.has_help = false;
            return if key.code == KeyCode::Char('q') { Wish::Quit } else { Wish::Draw };
        }
        self.command(key.code, list, page, prefix)
    }

    fn command(&mut self, code: KeyCode, list: &[String], page: usize, prefix: &str) -> Wish {
        let last = list.len().saturating_sub(1);
        match code {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.has_help = true,
            KeyCode::Char('/') => {
                self.typed = Some(prefix.to_owned());
                return self.open(None);
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left if self.opened.is_some() => {
                return self.open(None);
            }
            KeyCode::Esc if !prefix.is_empty() => return self.search(String::new()),
            KeyCode::Enter | KeyCode::Right if self.opened.is_none() => {
                if let Some(resource) = list.get(self.row.min(last)) {
                    return self.open(Some(resource.clone()));
                }
            }
            KeyCode::Up | KeyCode::Char('k') => self.row = self.row.min(last).saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.row = (self.row + 1).min(last),
            KeyCode::PageUp => self.row = self.row.min(last).saturating_sub(page),
            KeyCode::PageDown => self.row = (self.row + page).min(last),
            KeyCode::Home | KeyCode::Char('g') => self.row = 0,
            KeyCode::End | KeyCode::Char('G') => self.row = last,
            KeyCode::Tab => return self.turn_to(self.tab.after(1)),
            KeyCode::BackTab => return self.turn_to(self.tab.after(Tab::ALL.len() - 1)),
            KeyCode::Char(digit @ '1'..='4') => {
                let at = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(1);
                return self.turn_to(Tab::ALL.get(at - 1).copied().unwrap_or_default());
            }
            _ => {}
        }
        Wish::Draw
    }

    fn type_on(&mut self, mut typed: String, code: KeyCode, prefix: &str) -> Wish {
        match code {
            KeyCode::Enter if typed == prefix => return Wish::Draw,
            KeyCode::Enter => return self.search(typed),
            KeyCode::Esc => return Wish::Draw,
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Char(character) if typed.len() + character.len_utf8() <= TYPED_MAX => {
                typed.push(character);
            }
            _ => {}
        }
        self.typed = Some(typed);
        Wish::Draw
    }

    fn search(&mut self, prefix: String) -> Wish {
        (self.tab, self.row) = (Tab::Locks, 0);
        Wish::Search(prefix)
    }

    fn turn_to(&mut self, tab: Tab) -> Wish {
        (self.tab, self.row) = (tab, 0);
        self.open(None)
    }

    fn open(&mut self, resource: Option<String>) -> Wish {
        if self.opened == resource {
            return Wish::Draw;
        }
        self.opened.clone_from(&resource);
        Wish::Open(resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(screen: &mut Screen, code: KeyCode) -> Wish {
        let list = ["a", "b", "c"].map(str::to_owned);
        screen.press(KeyEvent::new(code, KeyModifiers::NONE), &list, 2, "or")
    }

    #[test]
    fn arrows_stay_within_the_list_and_enter_opens_the_row() {
        let mut screen = Screen::default();
        press(&mut screen, KeyCode::Up);
        assert_eq!(screen.row, 0);
        for _ in 0..9 {
            press(&mut screen, KeyCode::Down);
        }
        assert_eq!(screen.row, 2);
        assert_eq!(press(&mut screen, KeyCode::Enter), Wish::Open(Some("c".to_owned())));
        assert_eq!(press(&mut screen, KeyCode::Esc), Wish::Open(None));
        screen.row = 99;
        assert_eq!(
            press(&mut screen, KeyCode::Enter),
            Wish::Open(Some("c".to_owned())),
            "the list got shorter"
        );
    }

    #[test]
    fn what_is_typed_after_a_slash_is_no_command() {
        let mut screen = Screen::default();
        press(&mut screen, KeyCode::Char('/'));
        assert_eq!(screen.typed.as_deref(), Some("or"), "it goes on from the search before");
        for key in ['q', '?', '1'] {
            assert_eq!(press(&mut screen, KeyCode::Char(key)), Wish::Draw);
        }
        press(&mut screen, KeyCode::Backspace);
        assert_eq!(press(&mut screen, KeyCode::Enter), Wish::Search("orq?".to_owned()));
        press(&mut screen, KeyCode::Char('/'));
        assert_eq!((press(&mut screen, KeyCode::Esc), screen.typed.as_deref()), (Wish::Draw, None));
    }

    #[test]
    fn control_c_and_q_end_it_wherever_one_is() {
        for begin in ['/', '?'] {
            let mut screen = Screen::default();
            press(&mut screen, KeyCode::Char(begin));
            let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(screen.press(end, &[], 2, ""), Wish::Quit);
        }
        assert_eq!(press(&mut Screen::default(), KeyCode::Char('q')), Wish::Quit);
    }

    #[test]
    fn lists_are_turned_by_tab_and_by_number() {
        let mut screen = Screen { row: 2, ..Screen::default() };
        press(&mut screen, KeyCode::Tab);
        assert_eq!((screen.tab, screen.row), (Tab::Hot, 0));
        press(&mut screen, KeyCode::BackTab);
        press(&mut screen, KeyCode::BackTab);
        assert_eq!(screen.tab, Tab::Events);
        press(&mut screen, KeyCode::Char('3'));
        assert_eq!(screen.tab, Tab::Expiring);
    }
}
