//! A small disk: a file system in memory that a test can fill.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounted while it lives.
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Makes one of so many MiB at `path`.
    pub(super) fn mount(path: &Path, mebibytes: u32) -> Self {
        std::fs::create_dir_all(path).unwrap();
        let size = format!("size={mebibytes}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "kunci-faults"]).arg(path);
        assert!(mount.status().unwrap().success(), "{mount:?} failed");
        Self { path: path.to_owned() }
    }

    /// Takes room until only so many MiB are left.
    pub(crate) fn fill_to(&self, mebibytes_left: u64) {
        let state = rustix::fs::statvfs(&self.path).unwrap();
        let free = state.f_bavail * state.f_frsize;
        let mut take = vec![1; usize::try_from(free.saturating_sub(mebibytes_left << 20)).unwrap()];
        if mebibytes_left == 0 {
            // More than there is: whatever the node frees or takes meanwhile, the last block goes.
            take.resize(take.len() + (16 << 20), 1);
        }
        let written = std::fs::write(self.ballast(), &take);
        assert!(written.is_ok() || mebibytes_left == 0, "the disk isn't as large as it says: {written:?}");
    }

    /// Gives the room back.
    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.path).output());
    }
}
