//! A file, written by programs that open the durable gate for each write.
//!
//! Owns: a file and how it is written. Never: the fence; that is `kunci_fence::gate`.

use crate::target::{Fence, Rejected, Target, Writer};
use kunci_fence::gate::{AdmitError, FileGate, OpenError};
use kunci_types::{FencingToken, ResourceName};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// S9, C03: see `run`.
#[test]
fn a_late_write_to_a_file_is_refused_in_every_round() {
    crate::run::run::<Files>();
}

/// A folder for each item: its value, and the gate that guards it.
pub(crate) struct Files(PathBuf);

impl Target for Files {
    const NAME: &'static str = "file";
    type Writer = FileWriter;

    fn start(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn address(&self) -> String {
        self.0.to_str().unwrap().to_owned()
    }

    async fn value(&self, item: &str) -> Option<String> {
        fs::read_to_string(self.0.join(item).join("value")).ok()
    }
}

pub(crate) struct FileWriter {
    folder: PathBuf,
    item: ResourceName,
}

impl FileWriter {
    /// The gate, once no other process has it.
    async fn gate(&self) -> FileGate {
        loop {
            match FileGate::open(&self.folder.join("gate")) {
                Ok(gate) => return gate,
                Err(OpenError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn put(&self, value: &str) {
        let new = self.folder.join("value.new");
        fs::write(&new, value).unwrap();
        fs::File::open(&new).unwrap().sync_all().unwrap();
        fs::rename(&new, self.folder.join("value")).unwrap();
    }
}

impl Writer for FileWriter {
    async fn open(address: &str, item: &str) -> Self {
        let folder = Path::new(address).join(item);
        fs::create_dir_all(&folder).unwrap();
        Self { folder, item: ResourceName::parse(item).unwrap() }
    }

    async fn write(&mut self, fence: Fence, token: u64, value: &str) -> Result<(), Rejected> {
        if fence == Fence::Off {
            self.put(value);
            return Ok(());
        }
        // Nobody else can have the gate until the value is in its place: the check and the write are one step.
        let gate = self.gate().await;
        match gate.admit(&self.item, FencingToken::presented(token).unwrap()).await {
            Ok(_) => {
                self.put(value);
                drop(gate);
                Ok(())
            }
            Err(AdmitError::Rejected(rejected)) => {
                Err(Rejected { found: rejected.found.get(), kept: rejected.kept.get() })
            }
            Err(error) => panic!("{error}"),
        }
    }
}
