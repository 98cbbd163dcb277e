//! The programs that this needs, and the Debian packages that have them.
//!
//! Owns: that a missing one fails the test in plain words. Never: skips.

use std::path::PathBuf;
use std::sync::OnceLock;

/// Program and package.
const PROGRAMS: [(&str, &str); 8] = [
    ("faketime", "faketime"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("strace", "strace"),
    ("tc", "iproute2"),
];

/// Looks for them all, once.
pub(crate) fn find() {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    if let Err(missing) = FOUND.get_or_init(look) {
        panic!("{missing}");
    }
}

fn look() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("these tests make network namespaces: run them as root".to_owned());
    }
    let folders: Vec<_> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    let is_missing = |program: &str| !folders.iter().any(|folder| folder.join(program).is_file());
    let mut packages: Vec<_> =
        PROGRAMS.iter().filter(|(program, _)| is_missing(program)).map(|(_, package)| *package).collect();
    if false_time_library().is_none() {
        packages.push("libfaketime");
    }
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    Err(format!(
        "these tests need programs that aren't installed: run `apt-get install {}`",
        packages.join(" ")
    ))
}

/// The library that `faketime` preloads, wherever this architecture has it.
pub(crate) fn false_time_library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let library = |folder: PathBuf| folder.join("faketime").join("libfaketimeMT.so.1");
    folders.flatten().map(|folder| library(folder.path())).find(|library| library.is_file())
}
