//! The live screen's life: keys, signals, news, and the terminal as it was at the end.
//!
//! Owns: the terminal while it is drawn on, and the tasks that ask. Never: what is asked or drawn.

use super::ask::{self, Learned, Wanted};
use super::draw::{self, Theme};
use super::keys::{Screen, Tab, Wish};
use super::model::Model;
use super::{wanted, words};
use crate::exit::{Exit, Failure};
use crate::signals::{Signals, stop_self};
use kunci_client::{BootClock, Clock as _};
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

/// From one picture to the next: a remaining time counts down before one's eyes.
const FRAME: Duration = Duration::from_millis(200);
/// How long the thread that reads keys waits before it looks whether it is still wanted.
const KEYS_WAIT: Duration = Duration::from_millis(250);
/// News that is taken in between two pictures.
const NEWS_MAX: usize = 1_024;

/// The terminal while it is drawn on; as it was before when this ends, however it ends.
struct Stage(DefaultTerminal);

impl Stage {
    fn set() -> io::Result<Self> {
        // It brings a hook that restores the terminal before a panic is told.
        ratatui::try_init().map(Self)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        ratatui::restore();
        let _ = execute!(io::stdout(), cursor::Show);
    }
}

fn broken(error: &io::Error) -> Failure {
    Failure::new(Exit::Refused, format!("draw on the terminal: {error}; use --once for plain text"))
}

/// Draws until somebody has seen enough, or a signal ends it.
pub(super) async fn run(model: Model, every: Duration) -> Result<Exit, Failure> {
    let mut signals = Signals::catch_ending()
        .map_err(|error| Failure::new(Exit::Refused, format!("catch signals: {error}")))?;
    let stage = Stage::set().map_err(|error| broken(&error))?;
    let (learned, news) = mpsc::channel(NEWS_MAX);
    let wants = watch::Sender::new(wanted(&model, None));
    let mut top = Top {
        screen: Screen::default(),
        theme: Theme::of_environment(),
        asked: BTreeMap::new(),
        asking: JoinSet::new(),
        model,
        stage,
        every,
        learned,
        wants,
    };
    top.asking.spawn(ask::about_locks(top.wants.subscribe(), every, top.learned.clone()));
    top.asking.spawn(ask::about_events(top.wants.subscribe(), top.learned.clone()));
    top.ask();
    tokio::select! {
        ended = top.go_on(news) => ended,
        signal = signals.next_ending() => Ok(Exit::Signal(signal.as_raw())),
    }
}

struct Top {
    model: Model,
    screen: Screen,
    theme: Theme,
    stage: Stage,
    every: Duration,
    asked: BTreeMap<String, AbortHandle>,
    asking: JoinSet<()>,
    learned: mpsc::Sender<Learned>,
    wants: watch::Sender<Wanted>,
}

impl Top {
    async fn go_on(&mut self, mut news: mpsc::Receiver<Learned>) -> Result<Exit, Failure> {
        let mut keys = read_keys();
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = frames.tick() => self.draw()?,
                Some(pressed) = keys.recv() => {
                    match pressed.map_err(|error| broken(&error))? {
                        Event::Key(key) => {
                            if let Some(exit) = self.press(key)? {
                                return Ok(exit);
                            }
                        }
                        Event::Resize(..) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => {}
                    }
                    self.draw()?;
                }
                Some((asked_at, told)) = news.recv() => {
                    self.model.take(asked_at, BootClock.now(), told);
                    self.ask();
                }
                Some(Err(ended)) = self.asking.join_next() => if ended.is_panic() {
                    std::panic::resume_unwind(ended.into_panic());
                },
            }
        }
    }

    /// Asks whoever is known by now, and nobody else, for what is looked at.
    fn ask(&mut self) {
        let urls = self.model.urls();
        self.asked.retain(|url, asking| {
            let is_known = urls.contains(url);
            if !is_known {
                asking.abort();
            }
            is_known
        });
        for url in urls {
            if !self.asked.contains_key(&url) {
                let asking = ask::about_node(url.clone(), self.every, self.learned.clone());
                self.asked.insert(url, self.asking.spawn(asking));
            }
        }
        let wanted = wanted(&self.model, self.screen.opened.clone());
        self.wants.send_if_modified(|now| {
            let is_new = *now != wanted;
            *now = wanted;
            is_new
        });
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let Self { model, screen, theme, stage, .. } = self;
        let drawn = stage.0.draw(|frame| draw::draw(frame, model, screen, theme, BootClock.now()));
        drawn.map(drop).map_err(|error| broken(&error))
    }

    fn press(&mut self, key: event::KeyEvent) -> Result<Option<Exit>, Failure> {
        let list: Vec<String> = match self.screen.tab {
            Tab::Events => self.model.events.iter().map(|event| event.resource.clone()).collect(),
            tab => {
                let list = words::list(&self.model, tab, BootClock.now());
                list.iter().map(|(lock, _)| lock.resource.clone()).collect()
            }
        };
        let height = self.stage.0.size().map_err(|error| broken(&error))?.height;
        match self.screen.press(key, &list, draw::page(height), &self.model.prefix) {
            Wish::Draw => {}
            Wish::Search(prefix) => self.model.search(&prefix),
            Wish::Open(resource) => self.model.open(resource),
            Wish::Quit => return Ok(Some(Exit::Done)),
            Wish::Stop => {
                ratatui::restore();
                stop_self();
                self.stage.0 = ratatui::try_init().map_err(|error| broken(&error))?;
            }
        }
        self.ask();
        Ok(None)
    }
}

/// Keys, and changes of the terminal's size. A thread of its own waits for them, and ends when nobody wants them.
fn read_keys() -> mpsc::Receiver<io::Result<Event>> {
    let (keys, pressed) = mpsc::channel(64);
    std::thread::spawn(move || {
        while !keys.is_closed() {
            let read = match event::poll(KEYS_WAIT) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let is_over = read.is_err();
            if keys.blocking_send(read).is_err() || is_over {
                return;
            }
        }
    });
    pressed
}
