//! A program on a terminal of its own, and what is on its screen.
//!
//! Owns: the little of a terminal's language that `kunci top` speaks. Never: anything of a real terminal.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

/// What has been drawn.
#[derive(Default)]
struct Picture {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    pending: Vec<u8>,
    all: Vec<u8>,
}

/// A program on a terminal.
pub(crate) struct OnTerminal {
    keys: File,
    process: Child,
    picture: Arc<Mutex<Picture>>,
}

impl OnTerminal {
    /// Starts `kunci` with these words on a terminal of this size.
    pub(crate) fn start(words: &str, columns: u16, rows: u16) -> Self {
        let keys: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let process = Command::new("setsid")
            .args(["--ctty", "env", "--default-signal", env!("CARGO_BIN_EXE_kunci")])
            .args(words.split(' '))
            .env("TERM", "xterm-256color")
            .env_remove("KUNCI_URL")
            .env_remove("KUNCI_ENDPOINTS")
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal)
            .spawn()
            .unwrap();
        let keys = File::from(keys);
        let picture = Arc::new(Mutex::new(Picture::default()));
        let (mut drawn, on) = (keys.try_clone().unwrap(), Arc::clone(&picture));
        // It ends when the program has closed its end of the terminal.
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = drawn.read(&mut bytes) {
                on.lock().unwrap_or_else(PoisonError::into_inner).draw(&bytes[..count]);
            }
        });
        Self { keys, process, picture }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the terminal another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keys, size).unwrap();
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        let picture = self.picture.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = picture.lines.iter().map(|line| line.iter().collect::<String>());
        lines.map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Everything that was sent to the terminal.
    pub(crate) fn sent(&self) -> String {
        let picture = self.picture.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&picture.all).into_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().unwrap()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Picture {
    fn draw(&mut self, bytes: &[u8]) {
        self.all.extend(bytes);
        self.pending.extend(bytes);
        let pending = std::mem::take(&mut self.pending);
        let text = match std::str::from_utf8(&pending) {
            Ok(text) => text,
            // The rest of a letter is still to come.
            Err(error) => std::str::from_utf8(&pending[..error.valid_up_to()]).unwrap(),
        };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let Some(after) = self.step(first, rest) else { break };
            rest = after;
        }
        let left = pending.len() - text.len() + rest.len();
        self.pending = pending[pending.len() - left..].to_vec();
    }

    /// Takes in one letter or one command, and gives what follows it; nothing when it isn't whole.
    fn step<'a>(&mut self, first: char, text: &'a str) -> Option<&'a str> {
        let after = &text[first.len_utf8()..];
        match first {
            '\u{1b}' if after.starts_with('[') => {
                let end = after.find(|end: char| end.is_ascii_alphabetic())?;
                self.command(&after[1..end], &after[end..=end]);
                Some(&after[end + 1..])
            }
            '\u{1b}' => after.get(1..),
            '\r' => {
                self.column = 0;
                Some(after)
            }
            '\n' => {
                self.row += 1;
                Some(after)
            }
            letter => {
                while self.lines.len() <= self.row {
                    self.lines.push(Vec::new());
                }
                let line = &mut self.lines[self.row];
                while line.len() <= self.column {
                    line.push(' ');
                }
                line[self.column] = letter;
                self.column += 1;
                Some(after)
            }
        }
    }

    fn command(&mut self, numbers: &str, name: &str) {
        let mut numbers = numbers.split(';').map(|number| number.parse::<usize>().unwrap_or(1).max(1) - 1);
        match name {
            "H" => (self.row, self.column) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
            "J" => self.lines.clear(),
            _ => {}
        }
    }
}
