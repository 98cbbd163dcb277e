//! The gate of a passage, whichever it is.
//!
//! Owns: the choice. Never: a comparison of its own.

use crate::gate::{AdmitError, Admitted, FileGate, Gate};
use kunci_types::{FencingToken, ResourceName};

/// Where tokens are kept.
#[derive(Debug)]
pub enum AnyGate {
    /// In memory: for a resource that doesn't outlive the process.
    Memory(Gate),
    /// On disk.
    File(FileGate),
}

impl From<Gate> for AnyGate {
    fn from(gate: Gate) -> Self {
        Self::Memory(gate)
    }
}

impl From<FileGate> for AnyGate {
    fn from(gate: FileGate) -> Self {
        Self::File(gate)
    }
}

impl AnyGate {
    pub(super) async fn admit(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Admitted, AdmitError> {
        match self {
            Self::Memory(gate) => gate.admit(resource, token),
            Self::File(gate) => gate.admit(resource, token).await,
        }
    }

    pub(super) fn kept_of(&self, resource: &ResourceName) -> Option<FencingToken> {
        match self {
            Self::Memory(gate) => gate.kept_of(resource),
            Self::File(gate) => gate.kept_of(resource),
        }
    }

    /// How many resources are kept.
    pub fn resources(&self) -> usize {
        match self {
            Self::Memory(gate) => gate.resources(),
            Self::File(gate) => gate.resources(),
        }
    }

    /// Whether newer tokens are still admitted.
    ///
    /// # Errors
    /// [`AdmitError::Stopped`] after a disk that failed.
    pub fn check(&self) -> Result<(), AdmitError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::File(gate) => gate.check(),
        }
    }
}
