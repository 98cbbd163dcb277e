//! `kunci man`.

use crate::args::{Cli, ManArgs};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use clap::CommandFactory as _;

/// Writes one page for `kunci` and one for each verb.
pub(crate) fn run(args: &ManArgs, output: &Output) -> Result<Exit, Failure> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder)).map_err(
        |error| {
            let text =
                format!("write manual pages to {}: {error}; name a folder to write to", folder.display());
            Failure::new(Exit::Refused, text)
        },
    )?;
    output.say(&format!("read them with: man {}", folder.join("kunci.1").display()));
    Ok(Exit::Done)
}
