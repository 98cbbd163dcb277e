//! The fields of a line, one space between them.
//!
//! Owns: how a field is taken and what a value in it may be. Never: which fields a request has.

use super::coding;
use super::fault::LineFault;
use super::request::{Op, Tag};
use super::seconds;
use std::borrow::Cow;

/// What is left of a line.
pub(super) struct Fields<'a> {
    op: Op,
    rest: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// The fields after the operation.
    pub(super) fn new(op: Op, rest: Option<&'a str>) -> Self {
        Self { op, rest }
    }

    /// The next field, if there is one.
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        let (field, rest) = split(rest);
        self.rest = rest;
        Some(field)
    }

    /// The next field, which has to be there.
    pub(super) fn expect(&mut self, field: &'static str) -> Result<&'a str, LineFault> {
        self.next().filter(|text| !text.is_empty()).ok_or(LineFault::Missing { op: self.op, field })
    }

    /// Nothing may be left.
    pub(super) fn end(mut self) -> Result<(), LineFault> {
        match self.next() {
            None => Ok(()),
            Some(_) => Err(LineFault::Unknown { op: self.op }),
        }
    }

    /// Reads `name=value` fields to the end, each at most once: `names` with the place for each value.
    pub(super) fn named<const N: usize>(
        mut self,
        names: [&'static str; N],
    ) -> Result<[Option<&'a str>; N], LineFault> {
        let mut values = [None; N];
        while let Some(field) = self.next() {
            let named = field.split_once('=');
            let found = named.and_then(|(name, value)| {
                Some((names.iter().zip(&mut values).find(|(known, _)| **known == name)?, value))
            });
            let Some(((name, place), value)) = found else { return Err(LineFault::Unknown { op: self.op }) };
            if place.replace(value).is_some() {
                return Err(LineFault::Twice { field: name });
            }
        }
        Ok(values)
    }
}

/// The first field and what comes after its space.
pub(super) fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(' ') {
        Some((field, rest)) => (field, Some(rest)),
        None => (text, None),
    }
}

/// Takes the tag off the end of a line.
pub(super) fn take_tag(text: &str) -> Result<(&str, Option<Tag>), LineFault> {
    let Some((rest, last)) = text.rsplit_once(' ') else { return Ok((text, None)) };
    let Some(number) = last.strip_prefix('#') else { return Ok((text, None)) };
    Ok((rest, Some(Tag::new(whole("tag", number)?))))
}

/// The text that a field stands for.
pub(super) fn text<'a>(field: &'static str, raw: &'a str) -> Result<Cow<'a, str>, LineFault> {
    coding::decode(raw).map_err(|cause| LineFault::Coding { field, cause })
}

/// A number of seconds, in ms.
pub(super) fn ms(field: &'static str, raw: &str) -> Result<u64, LineFault> {
    seconds::parse(raw).ok_or(LineFault::Seconds { field })
}

/// A whole number, written in one way only: it is echoed, and compared as text by some.
pub(super) fn whole(field: &'static str, raw: &str) -> Result<u64, LineFault> {
    let is_canonical = raw == "0" || (!raw.starts_with('0') && raw.bytes().all(|byte| byte.is_ascii_digit()));
    raw.parse().ok().filter(|_| is_canonical).ok_or(LineFault::Number { field })
}
