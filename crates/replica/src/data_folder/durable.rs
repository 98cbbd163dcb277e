//! File operations that hold across a power cut.
//!
//! Owns: the order of write, sync, rename and folder sync. Never: what is in the files.

use super::error::{FolderError, doing};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Makes new, renamed and removed names in `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), FolderError> {
    File::open(folder).and_then(|opened| opened.sync_all()).map_err(doing("sync folder", folder))
}

/// Makes `folder` and everything above it that is missing, durably.
pub(crate) fn make_folder(folder: &Path) -> Result<(), FolderError> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(parent)?;
    fs::create_dir(folder).map_err(doing("make folder", folder))?;
    sync_folder(parent)
}

/// Replaces the file at `path`: after a crash it has the old content or the new, never a mix.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary).map_err(doing("make file", &temporary))?;
    file.write_all(content).map_err(doing("write file", &temporary))?;
    file.sync_all().map_err(doing("sync file", &temporary))?;
    put_in_place(&temporary, path)
}

/// Gives a synced temporary file its name, durably.
pub(crate) fn put_in_place(temporary: &Path, path: &Path) -> Result<(), FolderError> {
    fs::rename(temporary, path).map_err(doing("rename file into place as", path))?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}
