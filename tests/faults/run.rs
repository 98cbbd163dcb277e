//! One run of one test: its seed, its folder, and what is kept when it fails.
//!
//! Owns: that runs come one after another (their times matter), and where a failing one leaves its history, its
//! nodes' words and how to run it again.

use crate::clock::now_us;
use crate::world::{leftovers, programs};
use kunci_oracle::History;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A run. When it is dropped by a panic, its evidence is kept.
pub(crate) struct Run {
    name: &'static str,
    seed: u64,
    folder: PathBuf,
    pub(crate) history: History,
    /// Last: the next run begins once everything of this one is gone.
    _turn: MutexGuard<'static, ()>,
}

impl Run {
    /// Waits for its turn and begins. `name` is the test function's.
    pub(crate) fn begin(name: &'static str) -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        programs::find();
        leftovers::clean(&runs());
        let seed = match std::env::var("KUNCI_FAULTS_SEED") {
            Ok(text) => text.parse().expect("KUNCI_FAULTS_SEED is a whole number"),
            Err(_) => now_us() % 1_000_000,
        };
        let folder = runs().join(format!("run-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        println!("{name}: seed {seed}");
        Self { name, seed, folder, history: History::default(), _turn: turn }
    }

    /// What all chance comes from.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Where this run keeps its data folders and logs; gone when it ends.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn keep_evidence(&self) -> std::io::Result<()> {
        let kept = runs().join(format!("{}-{}", self.name, self.seed));
        std::fs::create_dir_all(&kept)?;
        self.history.write(&kept.join("history.jsonl"))?;
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if let (true, Some(name)) = (path.extension().is_some_and(|end| end == "log"), path.file_name()) {
                std::fs::copy(&path, kept.join(name))?;
            }
        }
        let again =
            format!("KUNCI_FAULTS_SEED={} cargo test -p kunci-cli --test faults {}", self.seed, self.name);
        std::fs::write(kept.join("again"), format!("{again}\n"))?;
        eprintln!(
            "kept {}: history.jsonl and the words of each node\nrun it again with: {again}",
            kept.display()
        );
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Err(error) = self.keep_evidence()
        {
            eprintln!("the evidence of {} can't be kept: {error}", self.name);
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn runs() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("..").join("faults")
}
