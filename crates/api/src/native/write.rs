//! From an answer to its line: a server's side.
//!
//! Owns: the order of fields, the same each time. Never: decides what is answered.

use super::answer::{Answer, Outcome, Refused, Status};
use super::coding;
use super::request::Subject;
use crate::code::Applied;

impl Answer {
    /// Appends the line with its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.outcome.letter().as_bytes());
        match &self.subject {
            Some(Subject { op, key }) => {
                word(out, op.letter());
                if let Some(key) = key {
                    out.push(b' ');
                    coding::encode(key.as_str(), out);
                }
            }
            None => word(out, "?"),
        }
        self.outcome.write(out);
        word(out, &format!("at={}.{}", self.at.index, self.at.place));
        if let Some(tag) = self.tag {
            word(out, &format!("#{}", tag.get()));
        }
        out.push(b'\n');
    }
}

impl Outcome {
    fn letter(&self) -> &'static str {
        match self {
            Self::Granted(_) => "A",
            Self::Released { .. } => "R",
            Self::Renewed { .. } => "N",
            Self::Cancelled { .. } => "C",
            Self::Status(_) => "Q",
            Self::TimedOut { .. } => "T",
            Self::Held(_) => "H",
            Self::Moved { .. } => "M",
            Self::Welcome(_) => "W",
            Self::Pong => "P",
            Self::Error(_) => "E",
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Granted(grant) => {
                number(out, "token", grant.token);
                text(out, "lease", &grant.lease);
                number(out, "ttl_ms", grant.ttl_ms);
                text(out, "req", &grant.request_id);
                flag(out, "repeated", grant.repeated);
            }
            Self::Released { already } => flag(out, "already", *already),
            Self::Renewed { ttl_ms, is_final } => {
                number(out, "ttl_ms", *ttl_ms);
                flag(out, "final", *is_final);
            }
            Self::Cancelled { request_id, repeated } | Self::TimedOut { request_id, repeated } => {
                text_if(out, "req", request_id.as_deref());
                flag(out, "repeated", *repeated);
            }
            Self::Status(status) => status.write(out),
            Self::Held(held) => {
                text(out, "holder", &held.holder);
                number(out, "token", held.token);
                number(out, "ttl_ms", held.ttl_ms);
                number(out, "queue", held.queue);
                text_if(out, "req", held.request_id.as_deref());
            }
            Self::Moved { leader, request_id } => {
                text(out, "leader", leader);
                text_if(out, "req", request_id.as_deref());
            }
            Self::Welcome(welcome) => {
                number(out, "version", welcome.version.into());
                text_if(out, "cluster", welcome.cluster.as_deref());
                text_if(out, "leader", welcome.leader.as_deref());
            }
            Self::Pong => {}
            Self::Error(refused) => refused.write(out),
        }
    }
}

impl Status {
    fn write(&self, out: &mut Vec<u8>) {
        word(out, if self.held { "held=true" } else { "held=false" });
        text_if(out, "holder", self.holder.as_deref());
        number_if(out, "token", self.token);
        number_if(out, "ttl_ms", self.ttl_ms);
        number_if(out, "held_ms", self.held_ms);
        number_if(out, "delay_ms", self.delay_ms);
        number(out, "queue", self.queue);
    }
}

impl Refused {
    fn write(&self, out: &mut Vec<u8>) {
        text(out, "code", &self.code);
        word(out, if self.applied == Applied::No { "applied=no" } else { "applied=unknown" });
        number_if(out, "retry_ms", self.retry_ms);
        text_if(out, "reason", self.reason.as_deref());
        number_if(out, "token", self.token);
        number_if(out, "delay_ms", self.delay_ms);
        text_if(out, "field", self.field.as_deref());
        number_if(out, "min_ms", self.min_ms);
        number_if(out, "max_ms", self.max_ms);
        text_if(out, "limit", self.limit.as_deref());
        number_if(out, "max", self.max);
        text_if(out, "req", self.request_id.as_deref());
        text(out, "detail", &self.detail);
    }
}

fn word(out: &mut Vec<u8>, word: &str) {
    out.push(b' ');
    out.extend_from_slice(word.as_bytes());
}

fn name(out: &mut Vec<u8>, name: &str) {
    word(out, name);
    out.push(b'=');
}

fn text(out: &mut Vec<u8>, field: &str, text: &str) {
    name(out, field);
    coding::encode(text, out);
}

fn text_if(out: &mut Vec<u8>, field: &str, value: Option<&str>) {
    if let Some(value) = value {
        text(out, field, value);
    }
}

fn number(out: &mut Vec<u8>, field: &str, number: u64) {
    name(out, field);
    out.extend_from_slice(number.to_string().as_bytes());
}

fn number_if(out: &mut Vec<u8>, field: &str, value: Option<u64>) {
    if let Some(value) = value {
        number(out, field, value);
    }
}

/// A flag is there, or not.
fn flag(out: &mut Vec<u8>, field: &str, is_set: bool) {
    if is_set {
        name(out, field);
        out.extend_from_slice(b"true");
    }
}
