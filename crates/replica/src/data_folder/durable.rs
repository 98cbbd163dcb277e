//! File operations that hold across a power cut.
//!
//! Owns: the order of write, sync, rename and folder sync. Never: what is in the files.

use super::error::{FolderError, doing};
use crate::storage::{Access, Files};
use std::path::{Path, PathBuf};

/// Makes new, renamed and removed names in `folder` durable.
pub(crate) async fn sync_folder(files: &dyn Files, folder: &Path) -> Result<(), FolderError> {
    files.sync_folder(folder).await.map_err(doing("sync folder", folder))
}

/// Makes `folder` and everything above it that is missing, durably.
pub(crate) async fn make_folder(files: &dyn Files, folder: &Path) -> Result<(), FolderError> {
    let missing =
        folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !files.is_folder(folder));
    let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    for folder in missing.iter().rev() {
        files.make_folder(folder).map_err(doing("make folder", folder))?;
        let parent =
            folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync_folder(files, parent).await?;
    }
    Ok(())
}

/// Replaces the file at `path`: after a crash it has the old content or the new, never a mix.
pub(crate) async fn replace_file(files: &dyn Files, path: &Path, content: &[u8]) -> Result<(), FolderError> {
    let temporary = path.with_extension("tmp");
    let file = files.open(&temporary, Access::Replace).map_err(doing("make file", &temporary))?;
    file.append(content).map_err(doing("write file", &temporary))?;
    file.sync_all().await.map_err(doing("sync file", &temporary))?;
    put_in_place(files, &temporary, path).await
}

/// Gives a synced temporary file its name, durably.
pub(crate) async fn put_in_place(
    files: &dyn Files,
    temporary: &Path,
    path: &Path,
) -> Result<(), FolderError> {
    files.rename(temporary, path).map_err(doing("rename file into place as", path))?;
    sync_folder(files, path.parent().unwrap_or(Path::new("."))).await
}
