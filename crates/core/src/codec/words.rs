//! The bytes of the vocabulary's types.

use super::{DecodeError, Reader, Writer};
use kunci_types::{
    Attempt, Caller, ClusterTime, FencingToken, LeaseId, LockDelay, Metadata, Owner, ResourceName, Revision,
    Ttl,
};

impl Writer {
    pub(crate) fn resource(&mut self, name: &ResourceName) {
        self.text(name.as_str());
    }

    pub(crate) fn owner(&mut self, owner: &Owner) {
        self.text(owner.as_str());
    }

    pub(crate) fn metadata(&mut self, metadata: Option<&Metadata>) {
        self.option(metadata, |writer, metadata| writer.text(metadata.as_str()));
    }

    pub(crate) fn caller(&mut self, caller: &Caller) {
        self.u8(match caller {
            Caller::Unproven(_) => 0,
            Caller::Proven(_) => 1,
        });
        self.owner(caller.name());
    }

    pub(crate) fn lease_id(&mut self, lease_id: &LeaseId) {
        self.bytes.extend_from_slice(lease_id.as_bytes());
    }

    pub(crate) fn attempt(&mut self, attempt: Attempt) {
        self.u64(attempt.get());
    }

    pub(crate) fn time(&mut self, time: ClusterTime) {
        self.u64(time.as_ms());
    }
}

impl Reader<'_> {
    pub(crate) fn resource(&mut self) -> Result<ResourceName, DecodeError> {
        Ok(ResourceName::from_log(self.text("resource name")?))
    }

    pub(crate) fn owner(&mut self) -> Result<Owner, DecodeError> {
        Ok(Owner::from_log(self.text("owner")?))
    }

    /// An owner that is mostly the caller, whose text it shares then.
    pub(crate) fn owner_beside(&mut self, caller: &Caller) -> Result<Owner, DecodeError> {
        let text = self.text("owner")?;
        let same = Some(caller.name()).filter(|name| name.as_str() == text);
        Ok(same.cloned().unwrap_or_else(|| Owner::from_log(text)))
    }

    pub(crate) fn metadata(&mut self) -> Result<Option<Metadata>, DecodeError> {
        self.option("metadata", |reader| Ok(Metadata::from_log(reader.text("metadata")?)))
    }

    pub(crate) fn caller(&mut self) -> Result<Caller, DecodeError> {
        match self.u8("caller")? {
            0 => Ok(Caller::Unproven(self.owner()?)),
            1 => Ok(Caller::Proven(self.owner()?)),
            found => Err(DecodeError::Meaningless { what: "caller", found: found.into() }),
        }
    }

    pub(crate) fn lease_id(&mut self) -> Result<LeaseId, DecodeError> {
        Ok(LeaseId::from_bytes(self.array("lease id")?))
    }

    pub(crate) fn attempt(&mut self) -> Result<Attempt, DecodeError> {
        Ok(Attempt::new(self.u64("attempt")?))
    }

    pub(crate) fn time(&mut self) -> Result<ClusterTime, DecodeError> {
        Ok(ClusterTime::from_ms(self.u64("cluster time")?))
    }

    pub(crate) fn ttl(&mut self) -> Result<Ttl, DecodeError> {
        Ok(Ttl::from_ms(self.u64("lease duration")?))
    }

    pub(crate) fn lock_delay(&mut self) -> Result<LockDelay, DecodeError> {
        Ok(LockDelay::from_ms(self.u64("lock-delay")?))
    }

    pub(crate) fn revision(&mut self) -> Result<Revision, DecodeError> {
        let found = self.u64("revision")?;
        Revision::new(found).ok_or(DecodeError::Meaningless { what: "revision", found })
    }

    pub(crate) fn token(&mut self) -> Result<FencingToken, DecodeError> {
        let found = self.u64("fencing token")?;
        FencingToken::presented(found).map_err(|_| DecodeError::Meaningless { what: "fencing token", found })
    }
}
