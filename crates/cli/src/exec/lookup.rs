//! Whether there is such a command.
//!
//! Owns: looking in `PATH` as a shell does. Never: runs anything.

use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What a look at the command found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A file that can be run.
    Executable,
    /// A file, or a folder, that can't be run.
    NotExecutable,
    /// Nothing.
    Nothing,
}

/// Looks for `command`, in the folders of `path` when its name has no slash.
pub(super) fn look_up(command: &OsStr, path: Option<&OsStr>) -> Found {
    if command.as_bytes().contains(&b'/') {
        return look_at(Path::new(command));
    }
    let folders: Vec<PathBuf> = path.map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    let found = || folders.iter().map(|folder| look_at(&folder.join(command)));
    if command.is_empty() || found().all(|found| found == Found::Nothing) {
        return Found::Nothing;
    }
    if found().any(|found| found == Found::Executable) { Found::Executable } else { Found::NotExecutable }
}

fn look_at(file: &Path) -> Found {
    match file.metadata() {
        Err(_) => Found::Nothing,
        Ok(metadata) if metadata.is_file() && access(file, Access::EXEC_OK).is_ok() => Found::Executable,
        Ok(_) => Found::NotExecutable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_as_a_shell_finds_it() {
        let look = |command: &str| look_up(OsStr::new(command), Some(OsStr::new("/nowhere:/bin:/usr/bin")));
        assert_eq!(look("sh"), Found::Executable);
        assert_eq!(look("/bin/sh"), Found::Executable);
        assert_eq!(look("/bin"), Found::NotExecutable);
        assert_eq!(look("/etc/passwd"), Found::NotExecutable);
        assert_eq!(look("no-such-command-anywhere"), Found::Nothing);
        assert_eq!(look(""), Found::Nothing);
    }
}
