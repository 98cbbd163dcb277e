//! From a line's bytes to an answer: a client's side.
//!
//! Owns: what has to be in an answer. Never: minds a field that it doesn't know; a later release may have more.

use super::LINE_BYTES_MAX;
use super::answer::{Answer, At, Grant, Held, Outcome, Refused, Status, Welcome};
use super::fields::{split, take_tag, text, whole};
use super::request::{Op, Subject};
use crate::code::Applied;
use kunci_types::ResourceName;

/// An answer that can't be read: whoever is there speaks something else, or the connection is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer can't be read: {what} is missing or malformed")]
pub struct BadAnswer {
    /// What is at fault.
    pub what: &'static str,
}

/// Most answers have no more fields.
const FIELDS_MOSTLY: usize = 8;

fn bad(what: &'static str) -> BadAnswer {
    BadAnswer { what }
}

impl Answer {
    /// Reads a line without its `\n`; a `\r` before that is left out here.
    ///
    /// # Errors
    /// Says what is missing or malformed.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadAnswer> {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.len() > LINE_BYTES_MAX {
            return Err(bad("the end of the line"));
        }
        let line = str::from_utf8(bytes).map_err(|_| bad("text"))?;
        let (line, tag) = take_tag(line).map_err(|_| bad("the tag"))?;
        let (letter, rest) = split(line);
        let (op, rest) = split(rest.ok_or(bad("the operation"))?);
        let (subject, rest) = match op {
            "?" => (None, rest),
            letter => {
                let op = Op::of(letter).ok_or(bad("the operation"))?;
                let (key, rest) = if op.has_key() {
                    let (raw, rest) = split(rest.ok_or(bad("the key"))?);
                    (Some(key(raw)?), rest)
                } else {
                    (None, rest)
                };
                (Some(Subject { op, key }), rest)
            }
        };
        let named = Named::of(rest.unwrap_or_default());
        Ok(Self { subject, outcome: outcome(letter, &named)?, at: named.at()?, tag })
    }
}

fn key(raw: &str) -> Result<ResourceName, BadAnswer> {
    let text = text("key", raw).map_err(|_| bad("the key"))?;
    ResourceName::parse(&text).map_err(|_| bad("the key"))
}

fn outcome(letter: &str, named: &Named<'_>) -> Result<Outcome, BadAnswer> {
    let request_id = || named.text_if("req");
    Ok(match letter {
        "A" => Outcome::Granted(Grant {
            token: named.number("token")?,
            lease: named.text("lease")?,
            ttl_ms: named.number("ttl_ms")?,
            request_id: named.text("req")?,
            repeated: named.flag("repeated"),
        }),
        "R" => Outcome::Released { already: named.flag("already") },
        "N" => Outcome::Renewed { ttl_ms: named.number("ttl_ms")?, is_final: named.flag("final") },
        "C" => Outcome::Cancelled { request_id: request_id()?, repeated: named.flag("repeated") },
        "T" => Outcome::TimedOut { request_id: request_id()?, repeated: named.flag("repeated") },
        "Q" => Outcome::Status(named.status()?),
        "H" => Outcome::Held(Held {
            holder: named.text("holder")?,
            token: named.number("token")?,
            ttl_ms: named.number("ttl_ms")?,
            queue: named.number("queue")?,
            request_id: request_id()?,
        }),
        "M" => Outcome::Moved { leader: named.text("leader")?, request_id: request_id()? },
        "W" => Outcome::Welcome(Welcome {
            version: u32::try_from(named.number("version")?).map_err(|_| bad("version"))?,
            cluster: named.text_if("cluster")?,
            leader: named.text_if("leader")?,
        }),
        "P" => Outcome::Pong,
        "E" => Outcome::Error(named.refused()?),
        _ => return Err(bad("the result")),
    })
}

/// The `name=value` fields of an answer, in their order.
struct Named<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Named<'a> {
    fn of(fields: &'a str) -> Self {
        let mut named = Vec::with_capacity(FIELDS_MOSTLY);
        named.extend(fields.split(' ').filter_map(|field| field.split_once('=')));
        Self(named)
    }

    fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn text_if(&self, name: &'static str) -> Result<Option<String>, BadAnswer> {
        let decoded = self.raw(name).map(|raw| text(name, raw).map_err(|_| bad(name))).transpose()?;
        Ok(decoded.map(String::from))
    }

    fn text(&self, name: &'static str) -> Result<String, BadAnswer> {
        self.text_if(name)?.ok_or(bad(name))
    }

    fn number_if(&self, name: &'static str) -> Result<Option<u64>, BadAnswer> {
        self.raw(name).map(|raw| whole(name, raw).map_err(|_| bad(name))).transpose()
    }

    fn number(&self, name: &'static str) -> Result<u64, BadAnswer> {
        self.number_if(name)?.ok_or(bad(name))
    }

    fn flag(&self, name: &str) -> bool {
        self.raw(name) == Some("true")
    }

    fn at(&self) -> Result<At, BadAnswer> {
        let parts = self.raw("at").and_then(|raw| raw.split_once('.'));
        let at = parts
            .and_then(|(index, place)| Some(At { index: index.parse().ok()?, place: place.parse().ok()? }));
        at.ok_or(bad("at"))
    }

    fn status(&self) -> Result<Status, BadAnswer> {
        Ok(Status {
            held: match self.raw("held") {
                Some("true") => true,
                Some("false") => false,
                _ => return Err(bad("held")),
            },
            holder: self.text_if("holder")?,
            token: self.number_if("token")?,
            ttl_ms: self.number_if("ttl_ms")?,
            held_ms: self.number_if("held_ms")?,
            delay_ms: self.number_if("delay_ms")?,
            queue: self.number("queue")?,
        })
    }

    fn refused(&self) -> Result<Refused, BadAnswer> {
        Ok(Refused {
            code: self.text("code")?,
            // What isn't known to be undone may have happened.
            applied: if self.raw("applied") == Some("no") { Applied::No } else { Applied::Unknown },
            retry_ms: self.number_if("retry_ms")?,
            reason: self.text_if("reason")?,
            token: self.number_if("token")?,
            delay_ms: self.number_if("delay_ms")?,
            field: self.text_if("field")?,
            min_ms: self.number_if("min_ms")?,
            max_ms: self.number_if("max_ms")?,
            limit: self.text_if("limit")?,
            max: self.number_if("max")?,
            request_id: self.text_if("req")?,
            detail: self.text_if("detail")?.unwrap_or_default(),
        })
    }
}
