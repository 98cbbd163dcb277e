//! `kunci completions`.

use crate::args::{Cli, CompletionsArgs};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use clap::CommandFactory as _;

/// Writes the script to standard output.
pub(crate) fn run(args: &CompletionsArgs, output: &Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kunci", &mut script);
    output.bytes(&script)?;
    Ok(Exit::Done)
}
