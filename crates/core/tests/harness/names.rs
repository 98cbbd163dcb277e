//! Calls and lease ids by name: `q1.2` is the second call of request `q1`, and the lease id drawn for it.

use kunci_types::{Attempt, LeaseId};

/// The names met so far; a call's number is its place here.
#[derive(Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// The number of a call, made when it is new.
    pub(crate) fn attempt(&mut self, name: &str) -> Attempt {
        let at = self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        Attempt::new(at as u64)
    }

    /// The lease id that the proposer drew for a call.
    pub(crate) fn lease_id(&mut self, name: &str) -> LeaseId {
        let number = self.attempt(name).get();
        LeaseId::from_bytes(u128::from(number).to_be_bytes())
    }

    /// The name of a call.
    pub(crate) fn of_attempt(&self, attempt: Attempt) -> &str {
        &self.0[usize::try_from(attempt.get()).unwrap()]
    }

    /// The name of a lease id.
    pub(crate) fn of_lease(&self, lease_id: &LeaseId) -> &str {
        &self.0[usize::try_from(u128::from_be_bytes(*lease_id.as_bytes())).unwrap()]
    }
}
