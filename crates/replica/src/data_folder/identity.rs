//! Which node of which cluster a data folder belongs to.
//!
//! Owns: the identity file and its checks. Never: made up a second time beside existing data.

use super::durable::replace_file;
use super::error::{FolderError, doing};
use crate::storage::Files;
use kunci_types::Revision;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The format of the whole data folder: layout, log records, snapshots.
pub const FOLDER_FORMAT: u32 = 1;
const FIRST_LINE: &str = "kunci data folder";

/// 128 random bits that tell one cluster from every other, shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClusterId([u8; 16]);

impl ClusterId {
    /// Draws a new one from the system's random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ClusterId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_hex = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        match u128::from_str_radix(text, 16) {
            Ok(number) if is_hex => Ok(Self(number.to_be_bytes())),
            _ => Err(format!("cluster id {text:?} isn't 32 lower-case hex digits")),
        }
    }
}

/// Which node of which cluster this is, and whether it ever took part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster.
    pub cluster_id: ClusterId,
    /// The node in it.
    pub node_id: u64,
    /// Every token of the cluster is larger than this, as whoever formed it here said.
    pub token_floor: Revision,
    /// Whether it has voted. From then on a log without a vote is a loss, not a new folder.
    pub has_started: bool,
}

impl Identity {
    fn to_text(self) -> String {
        let Self { cluster_id, node_id, token_floor, has_started } = self;
        let body = format!(
            "{FIRST_LINE}\nformat {FOLDER_FORMAT}\ncluster {cluster_id}\nnode {node_id}\n\
             floor {token_floor}\nstarted {has_started}\n"
        );
        let checksum = crc32fast::hash(body.as_bytes());
        format!("{body}checksum {checksum:08x}\n")
    }

    /// Reads the identity file in `folder`; `None` if there is no such file.
    pub(crate) fn read(files: &dyn Files, folder: &Path) -> Result<Option<Self>, FolderError> {
        let file = identity_file(folder);
        match files.read(&file) {
            Ok(bytes) => Self::parse(&file, &bytes).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(doing("read identity file", &file)(error)),
        }
    }

    pub(crate) async fn write(self, files: &dyn Files, folder: &Path) -> Result<(), FolderError> {
        replace_file(files, &identity_file(folder), self.to_text().as_bytes()).await
    }

    fn parse(file: &Path, bytes: &[u8]) -> Result<Self, FolderError> {
        let damaged =
            |what: &str| FolderError::IdentityDamaged { file: file.to_owned(), what: what.to_owned() };
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it isn't text"))?;
        let at = text.rfind("checksum ").ok_or_else(|| damaged("its checksum line is missing"))?;
        let (body, checksum) = text.split_at(at);
        if checksum != format!("checksum {:08x}\n", crc32fast::hash(body.as_bytes())) {
            return Err(damaged("its checksum doesn't fit its content"));
        }
        let mut lines = body.lines();
        if lines.next() != Some(FIRST_LINE) {
            return Err(damaged("its first line isn't \"kunci data folder\""));
        }
        let mut field = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.map(str::to_owned).ok_or_else(|| damaged(&format!("its {name} line is missing")))
        };
        // The format comes first: a later one may have other lines below.
        let found: u32 = field("format")?.parse().map_err(|_| damaged("its format isn't a number"))?;
        if found > FOLDER_FORMAT {
            return Err(FolderError::NewerFormat { file: file.to_owned(), found, known: FOLDER_FORMAT });
        }
        Ok(Self {
            cluster_id: field("cluster")?.parse().map_err(|what: String| damaged(&what))?,
            node_id: field("node")?.parse().map_err(|_| damaged("its node isn't a number"))?,
            token_floor: field("floor")?
                .parse()
                .ok()
                .and_then(Revision::new)
                .ok_or_else(|| damaged("its floor isn't a revision"))?,
            has_started: field("started")?
                .parse()
                .map_err(|_| damaged("its started line isn't true or false"))?,
        })
    }
}

/// Where the identity of a node in `folder` is.
pub(crate) fn identity_file(folder: &Path) -> PathBuf {
    folder.join("identity")
}

/// Notes once that the node has voted.
#[derive(Debug)]
pub(crate) struct Started {
    files: Arc<dyn Files>,
    folder: PathBuf,
    identity: Mutex<Identity>,
}

impl Started {
    pub(crate) fn new(files: Arc<dyn Files>, folder: &Path, identity: Identity) -> Self {
        Self { files, folder: folder.to_owned(), identity: Mutex::new(identity) }
    }

    /// Writes the note unless it is there. To be called after the vote is on disk: a crash in between leaves
    /// a vote without a note, which is harmless, and never a note without a vote.
    pub(crate) async fn note(&self) -> Result<(), FolderError> {
        let mut identity = self.identity.lock().await;
        if !identity.has_started {
            let noted = Identity { has_started: true, ..*identity };
            noted.write(&*self.files, &self.folder).await?;
            *identity = noted;
        }
        Ok(())
    }
}
