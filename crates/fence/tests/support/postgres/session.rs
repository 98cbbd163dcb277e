//! One session with PostgreSQL, by its simple query protocol.
//!
//! Owns: the few messages that a trusted client on a socket needs. Never: a type but text.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Error, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Version 3.0 of the protocol.
const VERSION: i32 = 196_608;

/// What the server refused, with the fields of its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The five characters of the SQLSTATE; `08006` when the connection ended.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) detail: String,
    pub(crate) hint: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.code, self.message, self.detail)
    }
}

impl std::error::Error for Refused {}

/// Rows of text.
pub(crate) type Rows = Vec<Vec<String>>;

/// A connection of its own.
pub(crate) struct Session {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    /// The process that serves it.
    pub(crate) process: i32,
    /// What the last statement that succeeded has done, as in `UPDATE 1`.
    pub(crate) done: String,
}

impl Session {
    /// Connects by the socket in this folder.
    pub(crate) fn open(socket: &Path, database: &str, role: &str, options: &str) -> io::Result<Self> {
        let writer = UnixStream::connect(socket.join(".s.PGSQL.5432"))?;
        // A test that hangs says where.
        writer.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut session =
            Self { reader: BufReader::new(writer.try_clone()?), writer, process: 0, done: String::new() };
        let mut body = VERSION.to_be_bytes().to_vec();
        for text in ["user", role, "database", database, "options", options] {
            body.extend(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        session.send(&body)?;
        loop {
            let (kind, body) = session.receive()?;
            match kind {
                b'E' => return Err(Error::other(refused(&body))),
                b'K' => session.process = i32::from_be_bytes(bytes(&body, 0)),
                b'Z' => return Ok(session),
                _ => {}
            }
        }
    }

    /// Runs statements as one message: the rows of the last of them that had any, `NULL` as an empty text.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Rows, Refused> {
        self.exchange(sql).unwrap_or_else(|error| {
            Err(Refused { code: "08006".to_owned(), message: error.to_string(), ..Refused::default() })
        })
    }

    /// Runs statements that must succeed.
    pub(crate) fn run(&mut self, sql: &str) -> Rows {
        self.query(sql).unwrap_or_else(|refused| panic!("{sql}: {refused}"))
    }

    /// The first column of the first row.
    pub(crate) fn value(&mut self, sql: &str) -> String {
        self.run(sql).first().and_then(|row| row.first()).unwrap().clone()
    }

    /// Runs statements that must be refused.
    pub(crate) fn refused(&mut self, sql: &str) -> Refused {
        match self.query(sql) {
            Err(refused) => refused,
            Ok(rows) => panic!("{sql}: expected a refusal, found {rows:?}"),
        }
    }

    fn exchange(&mut self, sql: &str) -> io::Result<Result<Rows, Refused>> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.writer.write_all(b"Q")?;
        self.send(&body)?;
        let mut result = Ok(Vec::new());
        loop {
            let (kind, body) = self.receive()?;
            match (kind, &mut result) {
                (b'T', Ok(rows)) => rows.clear(),
                (b'D', Ok(rows)) => rows.push(row(&body)),
                (b'C', _) => {
                    self.done = text(body.strip_suffix(&[0]).unwrap_or(&body));
                }
                // As when an administrator ends the session: nothing follows.
                (b'E', _) if field(&body, b'S') == "FATAL" => return Ok(Err(refused(&body))),
                (b'E', _) => result = Err(refused(&body)),
                (b'Z', _) => return Ok(result),
                _ => {}
            }
        }
    }

    fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let length = i32::try_from(body.len() + 4).map_err(Error::other)?;
        self.writer.write_all(&[&length.to_be_bytes(), body].concat())
    }

    fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.reader.read_exact(&mut head)?;
        let length = usize::try_from(i32::from_be_bytes(bytes(&head, 1))).map_err(Error::other)?;
        let mut body = vec![0; length.checked_sub(4).ok_or(ErrorKind::InvalidData)?];
        self.reader.read_exact(&mut body)?;
        Ok((head[0], body))
    }
}

fn bytes<const N: usize>(message: &[u8], at: usize) -> [u8; N] {
    message[at..at + N].try_into().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn row(body: &[u8]) -> Vec<String> {
    let mut at = 2;
    let mut columns = Vec::new();
    while at < body.len() {
        let length = usize::try_from(i32::from_be_bytes(bytes(body, at))).unwrap_or(0);
        at += 4;
        columns.push(text(&body[at..at + length]));
        at += length;
    }
    columns
}

fn field(body: &[u8], wanted: u8) -> String {
    let fields: HashMap<u8, String> = body
        .split(|byte| *byte == 0)
        .filter_map(|field| Some((*field.first()?, text(field.get(1..)?))))
        .collect();
    fields.get(&wanted).cloned().unwrap_or_default()
}

fn refused(body: &[u8]) -> Refused {
    let [code, message, detail, hint] = [b'C', b'M', b'D', b'H'].map(|wanted| field(body, wanted));
    Refused { code, message, detail, hint }
}
