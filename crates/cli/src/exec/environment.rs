//! What the command finds in its environment.
//!
//! Owns: the names. Never: hands on what names another cluster than the lock's.

use super::lock::Lock;
use crate::door::Doors;
use std::process::Command;

/// Variables of the command, beside those that it inherits.
#[derive(Debug, Default)]
pub(super) struct Environment {
    variables: Vec<(&'static str, Option<String>)>,
}

impl Environment {
    /// What every command finds: the lock, and where its cluster is.
    pub(super) fn new(lock: &Lock, owner: &str, doors: &Doors) -> Self {
        let mut environment = Self { variables: doors.variables().to_vec() };
        environment.set("KUNCI_FENCING_TOKEN", lock.token().to_string());
        environment.set("KUNCI_LEASE_ID", lock.lease_id());
        environment.set("KUNCI_RESOURCE", lock.resource());
        environment.set("KUNCI_OWNER", owner);
        environment
    }

    /// Adds one, or takes the place of one that is inherited.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.variables.push((name, Some(value.into())));
    }

    /// Gives them to a command.
    pub(super) fn give_to(&self, command: &mut Command) {
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }
}
