//! Documentation that builds and leads somewhere.
//!
//! Owns: rustdoc with warnings denied, and the links between Markdown files. Never: follows a link to the network.
//!
//! Generated files such as the OpenAPI document are compared by tests of the crate that generates them.

use crate::links;
use crate::repo::Repo;
use crate::run;
use anyhow::bail;
use std::collections::BTreeMap;

/// Builds the API documentation and follows every relative link.
pub(crate) fn run(repo: &Repo) -> anyhow::Result<()> {
    let mut command = run::cargo_command(repo);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command.args(["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"]);
    run::shown(command)?;

    let pages: BTreeMap<String, String> = repo
        .text_files()?
        .into_iter()
        .filter(|file| file.path.ends_with(".md"))
        .map(|file| (file.path, file.text))
        .collect();
    let faults = links::faults(&pages, |path| repo.root().join(path).exists());
    if faults.is_empty() {
        println!("docs: every relative link of {} Markdown files leads somewhere", pages.len());
        return Ok(());
    }
    faults.iter().for_each(|fault| println!("{fault}"));
    bail!("links that lead nowhere: {}", faults.len());
}
