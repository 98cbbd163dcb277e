//! The words of a transcript: commands in, answers and events out.

pub(crate) mod names;
pub(crate) mod parse;
pub(crate) mod show;
