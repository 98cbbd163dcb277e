//! The options of `kunci top`.

use crate::duration::parse_positive;
use clap::Args;
use std::time::Duration;

/// `kunci top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Only resources whose name begins like this; / changes it.
    pub(crate) prefix: Option<String>,
    /// The HTTP address of a node; the others are found from it. Given more than once: ask just these. Also: KUNCI_URL.
    /// When nothing is said: http://127.0.0.1:7400
    #[arg(long, value_name = "URL")]
    pub(crate) url: Vec<String>,
    /// From one question to the next.
    #[arg(long, default_value = "1s", value_parser = parse_positive, value_name = "DURATION")]
    pub(crate) every: Duration,
    /// Print one screen as plain text, and end. Also when standard output is no terminal.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON object, and end.
    #[arg(long)]
    pub(crate) json: bool,
}
