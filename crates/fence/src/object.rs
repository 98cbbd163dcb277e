//! Objects that late writers can't change, in stores with conditional writes: S3 and what speaks it, Google Cloud Storage,
//! Azure, by the crate `object_store`.
//!
//! Owns: where a token is kept in an object, and the way from a token to a write or a rejection. Never: a connection to a
//! store, or its credentials.
//!
//! The token is kept in the object itself, in a line before its value, and each write replaces exactly the version that was
//! read before it. It has to be in the content: an S3 ETag is a digest of the content alone, so a token in the metadata
//! could change while the ETag stays, and a late writer's condition would still hold. It can't be in an object beside it:
//! no store compares one object and writes another in one step.

mod header;
mod probe;

pub use probe::{Unfit, probe};

use crate::gate::{Admitted, Rejected};
use bytes::Bytes;
use header::{Header, Kind};
use kunci_types::{FencingToken, ResourceName};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetResult, ObjectStore, PutMode, PutPayload, UpdateVersion};
use std::sync::Arc;

/// Bytes of a value. What is larger goes into an object of its own that is written once, and its name is the value.
pub const VALUE_BYTES_MAX: u64 = 8 << 20;

/// How often a write that others came before is begun anew. Only holders of the same resource meet here, so that one is
/// the rule.
const TRIES_MAX: usize = 64;

/// Why a write didn't happen, or may not have.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A larger token was admitted before.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// Somebody else wrote between each read and the write that followed it. Nothing was written.
    #[error("others wrote {path} first, {TRIES_MAX} times in a row: try again")]
    Contended {
        /// The object.
        path: Path,
    },
    /// The object can't be read as one of ours. Nothing was written.
    #[error(transparent)]
    NotFenced(#[from] NotFenced),
    /// The value is too large. Nothing was written.
    #[error(
        "a value of {bytes} bytes: expected at most {VALUE_BYTES_MAX}; write it to an object of its own, and its name here"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The store refused or didn't answer. After a timeout the write may have happened: read before you repeat a change
    /// that mustn't be made twice; a plain put may be repeated.
    #[error("write the object: {0}")]
    Store(#[from] Error),
    /// There is no randomness for the name of a write. Nothing was written.
    #[error("name the write: {0}")]
    Random(#[from] getrandom::Error),
}

/// Why an object couldn't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It can't be read as one of ours.
    #[error(transparent)]
    NotFenced(#[from] NotFenced),
    /// The store refused or didn't answer.
    #[error("read the object: {0}")]
    Store(#[from] Error),
}

/// An object that wasn't written through a fence. It is never overwritten: whoever wrote it would do so again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the object {path} {why}: expected one that was written through the fence; write to another path, or move it away"
)]
pub struct NotFenced {
    /// Where it is.
    pub path: Path,
    /// What it is instead.
    pub why: &'static str,
}

/// An object as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// The largest token that was admitted: that of whoever wrote it last.
    pub token: FencingToken,
    /// Its value; none when it was deleted.
    pub value: Option<Bytes>,
}

/// One object, guarded by the resource that its writers hold.
///
/// Every write goes through here; whatever writes to the path otherwise isn't stopped by anything but the store's own
/// permissions.
///
/// # Example
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use kunci_fence::object::{FencedObject, WriteError};
/// use kunci_types::{FencingToken, ResourceName};
/// use object_store::memory::InMemory;
/// use std::sync::Arc;
///
/// let resource = ResourceName::parse("reports/nightly").unwrap();
/// let report = FencedObject::new(Arc::new(InMemory::new()), "reports/nightly.txt".into(), resource);
/// let token = |number| FencingToken::presented(number).unwrap();
///
/// report.put(token(7), "under 7").await?;
/// let Err(WriteError::Rejected(rejected)) = report.put(token(6), "late").await else { panic!() };
/// assert_eq!((rejected.found, rejected.kept), (token(6), token(7)));
/// assert_eq!(report.get().await.unwrap().unwrap().value.unwrap(), "under 7");
/// # Ok::<(), WriteError>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct FencedObject {
    store: Arc<dyn ObjectStore>,
    path: Path,
    resource: ResourceName,
}

/// What a write has to replace.
enum Found {
    Nothing,
    Object { header: Header, value: Bytes, version: UpdateVersion },
}

impl FencedObject {
    /// An object, there or not. The store has to honour conditions; see [`probe()`].
    pub fn new(store: Arc<dyn ObjectStore>, path: Path, resource: ResourceName) -> Self {
        Self { store, path, resource }
    }

    /// What it is now; none when nobody has written it yet.
    ///
    /// # Errors
    /// When the store can't be asked, or the object wasn't written through a fence.
    pub async fn get(&self) -> Result<Option<Current>, ReadError> {
        Ok(match self.find().await? {
            Found::Nothing => None,
            Found::Object { header, value, .. } => {
                let value = (header.kind == Kind::Value).then_some(value);
                Some(Current { token: header.token, value })
            }
        })
    }

    /// Writes a value under a token. May be repeated when its outcome isn't known.
    ///
    /// # Errors
    /// [`WriteError::Rejected`] when a larger token was admitted before; the lease of this one has ended.
    pub async fn put(&self, token: FencingToken, value: impl Into<Bytes>) -> Result<Admitted, WriteError> {
        let value = value.into();
        self.update(token, |_| Some(value.clone())).await
    }

    /// Deletes the value under a token. The token stays, or a late writer would take the object for a new one.
    ///
    /// # Errors
    /// As [`FencedObject::put`].
    pub async fn delete(&self, token: FencingToken) -> Result<Admitted, WriteError> {
        self.update(token, |_| None).await
    }

    /// Replaces the value by what `change` makes of it, none being no value, in one step. Of several that are made at a
    /// time none is lost; `change` may be called more than once, and one result of it is written.
    ///
    /// # Errors
    /// As [`FencedObject::put`]. After [`WriteError::Store`] the change may have been made.
    pub async fn update(
        &self,
        token: FencingToken,
        mut change: impl FnMut(Option<Bytes>) -> Option<Bytes>,
    ) -> Result<Admitted, WriteError> {
        let name = getrandom::u64()?;
        for _ in 0..TRIES_MAX {
            let (before, mode, admitted) = match self.find().await.map_err(WriteError::from)? {
                Found::Nothing => (None, PutMode::Create, Admitted::Newer),
                // A try before was written, and only its answer was lost.
                Found::Object { header, .. } if header.token == token && header.name == name => {
                    return Ok(Admitted::Equal);
                }
                Found::Object { header, .. } if header.token > token => {
                    return Err(self.rejected(token, header.token).into());
                }
                Found::Object { header, value, version } => {
                    let admitted = if header.token == token { Admitted::Equal } else { Admitted::Newer };
                    ((header.kind == Kind::Value).then_some(value), PutMode::Update(version), admitted)
                }
            };
            let after = change(before);
            if let Some(bytes) =
                after.as_ref().map(Bytes::len).filter(|bytes| *bytes as u64 > VALUE_BYTES_MAX)
            {
                return Err(WriteError::TooLarge { bytes });
            }
            let kind = if after.is_some() { Kind::Value } else { Kind::Deleted };
            let header = Header { token, name, kind }.to_string();
            let parts = [Some(Bytes::from(header)), after];
            let content: PutPayload = parts.into_iter().flatten().collect();
            match self.store.put_opts(&self.path, content, mode.into()).await {
                Ok(_) => return Ok(admitted),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(WriteError::Contended { path: self.path.clone() })
    }

    fn rejected(&self, found: FencingToken, kept: FencingToken) -> Rejected {
        Rejected { resource: self.resource.clone(), found, kept }
    }

    async fn find(&self) -> Result<Found, ReadError> {
        let found: GetResult = match self.store.get_opts(&self.path, GetOptions::default()).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(Found::Nothing),
            Err(error) => return Err(error.into()),
        };
        let not_fenced = |why| NotFenced { path: self.path.clone(), why };
        if found.meta.size > VALUE_BYTES_MAX + header::BYTES_MAX {
            return Err(not_fenced("is too large for a fenced one").into());
        }
        let (e_tag, version) = (found.meta.e_tag.clone(), found.meta.version.clone());
        if e_tag.is_none() && version.is_none() {
            return Err(not_fenced("has neither ETag nor version from its store").into());
        }
        let content = found.bytes().await?;
        let Some((header, value_at)) = Header::read(&content) else {
            return Err(not_fenced("doesn't begin with a line `kunci-fence …`").into());
        };
        let version = UpdateVersion { e_tag, version };
        Ok(Found::Object { header, value: content.slice(value_at..), version })
    }
}

impl From<ReadError> for WriteError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFenced(error) => error.into(),
            ReadError::Store(error) => error.into(),
        }
    }
}

/// The page's code is run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/fence-object-stores.md")]
struct Page;
