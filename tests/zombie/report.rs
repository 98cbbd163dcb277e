//! What the run says to `cargo xtask zombie`.
//!
//! Owns: which way it runs, and the file that a target's part of the report goes to. Never: what is in it.

use std::path::PathBuf;

/// Set to any value: run without the fence, and tell what is lost.
const WITHOUT_FENCE: &str = "KUNCI_ZOMBIE_WITHOUT_FENCE";
/// A folder for one file of words for each target.
const REPORT: &str = "KUNCI_ZOMBIE_REPORT";

/// Whether the run is to show what happens without the fence.
pub(crate) fn is_without_fence() -> bool {
    std::env::var_os(WITHOUT_FENCE).is_some()
}

/// Tells about a target: into its file, if there is a folder for it, and to whoever runs the test by hand.
pub(crate) fn tell(target: &str, words: &str) {
    print!("{words}");
    if let Some(folder) = std::env::var_os(REPORT).map(PathBuf::from) {
        std::fs::write(folder.join(target), words).unwrap();
    }
}
