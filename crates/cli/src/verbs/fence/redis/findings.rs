//! What a Redis server's settings mean for a fence.
//!
//! Owns: each finding, its code and words. Never: asks a server.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a check knows about one server.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// The answer to `INFO`.
    pub(super) info: BTreeMap<String, String>,
    /// The settings `appendfsync` and `min-replicas-to-write`; none where they may not be read.
    pub(super) sync: Option<String>,
    pub(super) replicas_min: Option<String>,
    /// The library `kunci`.
    pub(super) library: Library,
    /// Why its function couldn't be called.
    pub(super) call_error: Option<String>,
}

/// How the library is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Library {
    /// The very text of this version.
    Current,
    /// Another text under our name.
    Other,
    /// There is none.
    Missing,
    /// The server doesn't tell, and says why.
    Unknown(String),
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The fence doesn't work, or lets late writers in during normal running.
    Error,
    /// It holds while nothing crashes or fails over.
    Warning,
}

/// One thing to know.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    level: Level,
    /// Stable, for programs.
    code: &'static str,
    /// What was found, and what to do.
    text: String,
}

/// What was found at one server.
#[derive(Clone, Debug)]
pub(super) struct Report {
    address: String,
    version: String,
    library: &'static str,
    findings: Vec<Finding>,
}

impl Report {
    /// Judges it.
    pub(super) fn of(address: &str, facts: &Facts) -> Self {
        let mut findings = Vec::new();
        of_library(facts, &mut findings);
        of_eviction(facts, &mut findings);
        of_durability(facts, &mut findings);
        of_replicas(facts, &mut findings);
        let library = match facts.library {
            Library::Current => "current",
            Library::Other => "other",
            Library::Missing => "missing",
            Library::Unknown(_) => "unknown",
        };
        Self {
            address: address.to_owned(),
            version: facts.text("redis_version").to_owned(),
            library,
            findings,
        }
    }

    /// Whether there is a finding of this level.
    pub(super) fn has(&self, level: Level) -> bool {
        self.findings.iter().any(|finding| finding.level == level)
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let finding = |finding: &Finding| json!({ "level": finding.level.as_str(), "code": finding.code, "text": finding.text });
        let findings: Vec<_> = self.findings.iter().map(finding).collect();
        json!({ "address": self.address, "version": self.version, "library": self.library, "findings": findings })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}  Redis {}, library: {}", self.address, self.version, self.library);
        for Finding { level, code, text: words } in &self.findings {
            text.push_str(&format!("\n  {}: {words} ({code})", level.as_str()));
        }
        text
    }
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl Facts {
    fn text(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }
}

fn of_library(facts: &Facts, findings: &mut Vec<Finding>) {
    let mut error = |code, text: String| findings.push(Finding { level: Level::Error, code, text });
    let version = facts.text("redis_version");
    let major: u64 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < 7 {
        let text = format!(
            "Redis {version} has no functions: upgrade to 7.0, or use `kunci fence redis print --script`"
        );
        return error("too_old", text);
    }
    match &facts.library {
        Library::Current => {}
        Library::Other => {
            let text = "the library kunci is another version: run `kunci fence redis install`";
            return error("other_version", text.to_owned());
        }
        Library::Missing => {
            let text = "the library kunci isn't loaded: run `kunci fence redis install`";
            return error("not_installed", text.to_owned());
        }
        Library::Unknown(why) => {
            let text = format!(
                "the server doesn't say whether the library kunci is loaded: {why}; ask as a user who may"
            );
            return error("unknown_library", text);
        }
    }
    if let Some(why) = &facts.call_error {
        error(
            "not_callable",
            format!("kunci_kept can't be called: {why}; give this user FCALL and FCALL_RO"),
        );
    }
    if facts.text("role") == "slave" {
        error("replica", "this is a replica and takes no writes: check the primary".to_owned());
    }
}

fn of_eviction(facts: &Facts, findings: &mut Vec<Finding>) {
    let policy = facts.text("maxmemory_policy");
    if !policy.starts_with("allkeys-") {
        return;
    }
    let advice = "set maxmemory-policy to noeviction or to one of volatile-*, which leave fence keys alone";
    findings.push(if facts.number("maxmemory") > 0 {
        let text = format!(
            "maxmemory-policy {policy} throws fence keys out, and a late writer is let in then: {advice}"
        );
        Finding { level: Level::Error, code: "evicts_fence_keys", text }
    } else {
        let text =
            format!("maxmemory-policy {policy} would throw fence keys out once maxmemory is set: {advice}");
        Finding { level: Level::Warning, code: "would_evict_fence_keys", text }
    });
}

fn of_durability(facts: &Facts, findings: &mut Vec<Finding>) {
    let (code, text) = if facts.text("aof_enabled") != "1" {
        (
            "no_append_only_file",
            "a crash forgets the tokens since the last snapshot: set appendonly yes".to_owned(),
        )
    } else {
        match facts.sync.as_deref() {
            Some("always") => return,
            Some(sync) => {
                let text = format!(
                    "with appendfsync {sync} a crash of the machine forgets the newest tokens: set appendfsync always"
                );
                ("synced_late", text)
            }
            None => {
                let text = "appendfsync can't be read; unless it is always, a crash of the machine forgets the newest tokens";
                ("sync_unknown", text.to_owned())
            }
        }
    };
    findings.push(Finding { level: Level::Warning, code, text });
}

fn of_replicas(facts: &Facts, findings: &mut Vec<Finding>) {
    let replicas = facts.number("connected_slaves");
    let waits = facts.replicas_min.as_deref().is_some_and(|min| min != "0");
    if replicas == 0 || waits {
        return;
    }
    let text = format!(
        "{replicas} replicas follow behind: one that takes over may not have heard of the newest tokens; set \
         min-replicas-to-write 1, and call WAIT after a write that has to survive"
    );
    findings.push(Finding { level: Level::Warning, code: "replicas_lag", text });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safe() -> Facts {
        let info = [
            ("redis_version", "7.0.15"),
            ("role", "master"),
            ("maxmemory", "0"),
            ("maxmemory_policy", "noeviction"),
            ("aof_enabled", "1"),
            ("connected_slaves", "0"),
        ];
        Facts {
            info: info.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            sync: Some("always".to_owned()),
            replicas_min: Some("0".to_owned()),
            library: Library::Current,
            call_error: None,
        }
    }

    fn codes(change: impl FnOnce(&mut Facts)) -> Vec<(&'static str, Level)> {
        let mut facts = safe();
        change(&mut facts);
        let found = Report::of("here", &facts).findings;
        found.into_iter().map(|finding| (finding.code, finding.level)).collect()
    }

    fn with(name: &str, value: &str) -> Vec<(&'static str, Level)> {
        codes(|facts| drop(facts.info.insert(name.to_owned(), value.to_owned())))
    }

    #[test]
    fn nothing_is_said_about_a_safe_server() {
        assert_eq!(codes(|_| {}), []);
        assert_eq!(with("maxmemory_policy", "volatile-lru"), []);
    }

    #[test]
    fn each_risk_has_its_finding() {
        assert_eq!(with("redis_version", "6.2.1"), [("too_old", Level::Error)]);
        assert_eq!(with("role", "slave"), [("replica", Level::Error)]);
        assert_eq!(with("aof_enabled", "0"), [("no_append_only_file", Level::Warning)]);
        assert_eq!(with("connected_slaves", "2"), [("replicas_lag", Level::Warning)]);
        assert_eq!(codes(|facts| facts.sync = None), [("sync_unknown", Level::Warning)]);
        assert_eq!(
            codes(|facts| facts.sync = Some("everysec".to_owned())),
            [("synced_late", Level::Warning)]
        );
        assert_eq!(codes(|facts| facts.library = Library::Missing), [("not_installed", Level::Error)]);
        assert_eq!(codes(|facts| facts.library = Library::Other), [("other_version", Level::Error)]);
        assert_eq!(
            codes(|facts| facts.call_error = Some("NOPERM".to_owned())),
            [("not_callable", Level::Error)]
        );
    }

    #[test]
    fn a_policy_that_evicts_fence_keys_is_an_error_once_it_can() {
        assert_eq!(with("maxmemory_policy", "allkeys-lru"), [("would_evict_fence_keys", Level::Warning)]);
        let evicting = codes(|facts| {
            facts.info.insert("maxmemory".to_owned(), "1000000".to_owned());
            facts.info.insert("maxmemory_policy".to_owned(), "allkeys-lfu".to_owned());
        });
        assert_eq!(evicting, [("evicts_fence_keys", Level::Error)]);
    }
}
