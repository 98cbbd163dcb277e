//! The dashboard: its build from `ui/`, and its tests in a browser.
//!
//! Owns: that what is committed in `ui/dist` is what the sources give. Never: a part of `cargo build`, which needs no Node.

use crate::repo::Repo;
use crate::run;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Programs that this needs, and the Debian package that has each.
const PROGRAMS: [(&str, &str); 3] = [("node", "nodejs"), ("npm", "npm"), ("/usr/bin/chromium", "chromium")];

/// A test that hangs is stopped after this long; all of them take about a minute and a half on two cores.
const SECONDS_MAX: &str = "600";

/// The screenshots that the documentation shows, by their names in `target/ui-screenshots`.
const SHOWN: [&str; 9] = [
    "locks-light",
    "lock-dark",
    "rates-light",
    "force-release-light",
    "leader-dead-light",
    "hot-queue-light",
    "holder-stopped-light",
    "no-leader-dark",
    "node-dead-light",
];

/// Type-checks the page, builds it again, compares that with `ui/dist`, and tests it against real clusters.
pub(crate) fn run(repo: &Repo) -> anyhow::Result<()> {
    install(repo)?;
    npm(repo, &["run", "check"])?;
    let built = repo.target().join("ui-dist");
    let folder = built.to_string_lossy().into_owned();
    npm(repo, &["run", "build", "--", "--outDir", &folder, "--emptyOutDir"])?;
    compare(&read(&built)?, &read(&repo.root().join("ui/dist"))?)?;
    test(repo)
}

/// Writes `ui/dist`, and after the tests the screenshots in `docs/screens`.
pub(crate) fn write(repo: &Repo) -> anyhow::Result<()> {
    install(repo)?;
    npm(repo, &["run", "check"])?;
    npm(repo, &["run", "build"])?;
    test(repo)?;
    let (from, to) = (repo.target().join("ui-screenshots"), repo.root().join("docs/screens"));
    fs::create_dir_all(&to).with_context(|| format!("make {}", to.display()))?;
    for name in SHOWN {
        let file = format!("{name}.png");
        fs::copy(from.join(&file), to.join(&file)).with_context(|| format!("copy the screenshot {file}"))?;
    }
    println!("ui: wrote ui/dist and {} screenshots; look at them, and commit both", SHOWN.len());
    Ok(())
}

/// Exactly what the lock file says; no script of a package runs.
fn install(repo: &Repo) -> anyhow::Result<()> {
    run::find_programs(&PROGRAMS)?;
    npm(repo, &["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"])
}

fn test(repo: &Repo) -> anyhow::Result<()> {
    run::cargo(repo, &["build", "--locked", "--package", "kunci-cli"])?;
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", SECONDS_MAX, "npm", "--silent", "test"]);
    command.env("KUNCI_BINARY", repo.target().join("debug/kunci"));
    in_ui(repo, &mut command);
    run::shown(command)
        .context("screenshots are in target/ui-screenshots, and how failed tests ended in target/ui-tests")
}

fn npm(repo: &Repo, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("npm");
    command.args(arguments).env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
    in_ui(repo, &mut command);
    run::shown(command)
}

fn in_ui(repo: &Repo, command: &mut Command) {
    command.current_dir(repo.root().join("ui")).stdin(Stdio::null());
}

/// Each file's bytes, by its path in the folder.
type Files = BTreeMap<String, Vec<u8>>;

fn read(folder: &Path) -> anyhow::Result<Files> {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("read folder {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
                files.insert(path.strip_prefix(folder)?.to_string_lossy().into_owned(), bytes);
            }
        }
    }
    Ok(files)
}

/// Fails when what was built isn't what is committed, and names what differs.
fn compare(built: &Files, committed: &Files) -> anyhow::Result<()> {
    let names = built.keys().chain(committed.keys());
    let mut differing: Vec<&str> =
        names.filter(|name| built.get(*name) != committed.get(*name)).map(String::as_str).collect();
    differing.sort_unstable();
    differing.dedup();
    if differing.is_empty() {
        println!("ui: the {} files of ui/dist are what its sources give", committed.len());
        return Ok(());
    }
    bail!(
        "ui/dist isn't what its sources give, by {}: run `cargo xtask ui --write` and commit it",
        differing.join(", ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(of: &[(&str, &str)]) -> Files {
        of.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn a_built_page_that_isnt_the_committed_one_is_told_by_its_files() {
        let built = files(&[("index.html", "a"), ("ui/app.js", "1"), ("ui/new.js", "")]);
        let committed = files(&[("index.html", "a"), ("ui/app.js", "2"), ("ui/old.js", "")]);
        assert!(compare(&built, &built).is_ok());
        let fault = compare(&built, &committed).unwrap_err().to_string();
        assert!(fault.contains("by ui/app.js, ui/new.js, ui/old.js: run"), "{fault}");
    }
}
