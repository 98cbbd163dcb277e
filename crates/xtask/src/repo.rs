//! The repository as files.
//!
//! Owns: where the repository is and which text files it has. Never: what they should say.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const SKIPPED_FOLDERS: [&str; 4] = [".git", "kunci-data", "node_modules", "target"];

/// The repository this tool was built in.
pub(crate) struct Repo {
    root: PathBuf,
}

/// One text file.
pub(crate) struct TextFile {
    /// Its path from the root, with `/` between folders.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Repo {
    /// Finds the root: two folders above this crate.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        match here.ancestors().nth(2) {
            Some(root) if root.join("Cargo.lock").is_file() => Ok(Self { root: root.to_owned() }),
            _ => bail!("no Cargo.lock two folders above {}: run this through `cargo xtask`", here.display()),
        }
    }

    /// The root folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo builds, following `CARGO_TARGET_DIR`.
    pub(crate) fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => self.root.join(folder),
            None => self.root.join("target"),
        }
    }

    /// Every UTF-8 file, sorted by path.
    pub(crate) fn text_files(&self) -> anyhow::Result<Vec<TextFile>> {
        let mut files = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            self.read_folder(&folder, &mut folders, &mut files)
                .with_context(|| format!("read folder {}", folder.display()))?;
        }
        files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(files)
    }

    fn read_folder(
        &self,
        folder: &Path,
        folders: &mut Vec<PathBuf>,
        files: &mut Vec<TextFile>,
    ) -> anyhow::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            if kind.is_dir() && !SKIPPED_FOLDERS.iter().any(|skipped| entry.file_name() == *skipped) {
                folders.push(path);
            } else if kind.is_file() {
                let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
                let relative = path.strip_prefix(&self.root)?.to_string_lossy().replace('\\', "/");
                files.extend(String::from_utf8(bytes).ok().map(|text| TextFile { path: relative, text }));
            }
        }
        Ok(())
    }
}
