//! Whether a store honours the conditions that a fence stands on.
//!
//! Owns: the trial. Never: an object but the one that it is given.

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, UpdateVersion};

/// A store that no fence can stand on.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// It says by itself that it can't.
    #[error(
        "the store can't write on a condition: {0}; use one that can, or guard it by `kunci fence proxy`"
    )]
    NotSupported(#[source] Error),
    /// It takes the condition and doesn't keep to it: the worst case, since nothing tells of it later.
    #[error(
        "the store ignores {condition}: a late writer would get through; use another store, or a newer version of it"
    )]
    Ignores {
        /// The header of S3 that it ignores.
        condition: &'static str,
    },
    /// It couldn't be tried.
    #[error("try the store: {0}")]
    Store(#[source] Error),
}

/// Tries whether a store honours conditions, on an object that nobody else uses; it is deleted before and after. To be
/// called once, when a program starts: a store that ignores conditions looks like any other until data is lost.
///
/// It finds what is ignored always, not what is ignored only when two requests meet.
///
/// # Errors
/// Says in what the store is unfit.
pub async fn probe(store: &dyn ObjectStore, scratch: &Path) -> Result<(), Unfit> {
    remove(store, scratch).await?;
    let tried = try_conditions(store, scratch).await;
    let removed = remove(store, scratch).await;
    tried.and(removed)
}

async fn try_conditions(store: &dyn ObjectStore, scratch: &Path) -> Result<(), Unfit> {
    let create = |text: &'static str| store.put_opts(scratch, text.into(), PutMode::Create.into());
    let first: UpdateVersion = create("first").await.map_err(unfit)?.into();
    match create("second").await {
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
        Ok(_) => return Err(Unfit::Ignores { condition: "If-None-Match" }),
        Err(error) => return Err(unfit(error)),
    }
    let update =
        |text: &'static str| store.put_opts(scratch, text.into(), PutMode::Update(first.clone()).into());
    update("third").await.map_err(unfit)?;
    match update("fourth").await {
        Err(Error::Precondition { .. }) => Ok(()),
        Ok(_) => Err(Unfit::Ignores { condition: "If-Match" }),
        Err(error) => Err(unfit(error)),
    }
}

async fn remove(store: &dyn ObjectStore, scratch: &Path) -> Result<(), Unfit> {
    match store.delete(scratch).await {
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(Unfit::Store(error)),
    }
}

fn unfit(error: Error) -> Unfit {
    match error {
        Error::NotImplemented { .. } | Error::NotSupported { .. } => Unfit::NotSupported(error),
        error => Unfit::Store(error),
    }
}
