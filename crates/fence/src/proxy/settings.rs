//! The proxy's settings: a TOML file.
//!
//! Owns: their names, defaults and bounds. Never: acts on one.

use super::rules::{Action, Rule, Rules};
use http::Uri;
use http::uri::Authority;
use kunci_types::FencingToken;
use serde::Deserialize;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file can't be read.
    #[error("read settings from {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It isn't TOML, or has a key or a kind of value that isn't known.
    #[error("{}:{line}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was found and expected.
        what: String,
    },
    /// A value is out of its bounds.
    #[error("{}: {what}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What was found and expected.
        what: String,
    },
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON document a line.
    Json,
}

/// Everything that a proxy is told.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) listen: SocketAddr,
    pub(super) admin: Option<SocketAddr>,
    pub(super) upstream: Authority,
    pub(super) gate: PathBuf,
    pub(super) gate_floor: Option<FencingToken>,
    pub(super) report_to: Vec<String>,
    pub(super) rules: Rules,
    pub(super) limits: Limits,
    pub(super) times: Times,
    log_format: LogFormat,
}

/// Bounds on size and number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) connections_max: usize,
    /// That the upstream has at a time; their clients may have gone.
    pub(super) requests_max: usize,
    pub(super) head_bytes_max: usize,
    pub(super) headers_max: usize,
    pub(super) body_bytes_max: u64,
    pub(super) resources_max: usize,
}

/// Bounds on time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// For a request's head, and for a connection to stay without a request.
    pub(super) head: Duration,
    pub(super) connect: Duration,
    /// For the response's head, once the request is sent.
    pub(super) answer: Duration,
    /// For the next piece of a body, either way.
    pub(super) stall: Duration,
    pub(super) drain: Duration,
    pub(super) settle: Duration,
    pub(super) stop: Duration,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: SocketAddr,
    upstream: String,
    gate: PathBuf,
    admin: Option<SocketAddr>,
    gate_floor: Option<u64>,
    #[serde(default)]
    report_to: Vec<String>,
    #[serde(default)]
    log_format: LogFormat,
    #[serde(default)]
    rule: Vec<FileRule>,
    #[serde(default)]
    limits: FileLimits,
    #[serde(default)]
    times: FileTimes,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRule {
    path: String,
    #[serde(default)]
    methods: Vec<String>,
    #[serde(default)]
    action: Action,
    resource: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    connections_max: u64,
    requests_max: u64,
    head_bytes_max: u64,
    headers_max: u64,
    body_bytes_max: u64,
    resources_max: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            connections_max: 1_024,
            requests_max: 2_048,
            head_bytes_max: 64 << 10,
            headers_max: 100,
            body_bytes_max: 1 << 30,
            resources_max: 1_000_000,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileTimes {
    head_ms_max: u64,
    connect_ms_max: u64,
    answer_ms_max: u64,
    stall_ms_max: u64,
    drain_ms_max: u64,
    settle_ms: u64,
    stop_ms_max: u64,
}

impl Default for FileTimes {
    fn default() -> Self {
        Self {
            head_ms_max: 15_000,
            connect_ms_max: 2_000,
            answer_ms_max: 60_000,
            stall_ms_max: 30_000,
            drain_ms_max: 45_000,
            settle_ms: 30_000,
            stop_ms_max: 30_000,
        }
    }
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// [`SettingsError`], with the key at fault and what was expected.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
        let file: File = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
            let what = error.message().trim().replace('\n', "; ");
            SettingsError::Malformed { path: path.to_owned(), line, what }
        })?;
        file.check().map_err(|what| SettingsError::Unusable { path: path.to_owned(), what })
    }

    /// How log lines are to look.
    pub fn log_format(&self) -> LogFormat {
        self.log_format
    }
}

impl File {
    fn check(self) -> Result<Settings, String> {
        let rule = |(number, rule): (usize, &FileRule)| {
            Rule::new(&rule.path, &rule.methods, rule.action, rule.resource.as_deref())
                .map_err(|what| format!("rule {}: {what}", number + 1))
        };
        let floor = |number| FencingToken::presented(number).map_err(|fault| format!("gate_floor: {fault}"));
        Ok(Settings {
            upstream: upstream(&self.upstream)?,
            gate_floor: self.gate_floor.map(floor).transpose()?,
            rules: Rules(self.rule.iter().enumerate().map(rule).collect::<Result<_, _>>()?),
            limits: self.limits.check()?,
            times: self.times.check()?,
            listen: self.listen,
            admin: self.admin,
            gate: self.gate,
            report_to: self.report_to,
            log_format: self.log_format,
        })
    }
}

fn upstream(url: &str) -> Result<Authority, String> {
    let uri = url.parse::<Uri>().ok();
    let is_door = |uri: &Uri| {
        uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/") && uri.query().is_none()
    };
    let authority = uri.filter(is_door).and_then(|uri| uri.authority().cloned());
    authority.filter(|authority| !authority.host().is_empty() && !authority.as_str().contains('@')).ok_or_else(|| {
        format!(
            "upstream: found {url:?}, expected \"http://host:port\" without a path; it is meant to be close by, so there is no \
             TLS to it"
        )
    })
}

fn within(name: &str, found: u64, bounds: RangeInclusive<u64>) -> Result<u64, String> {
    if bounds.contains(&found) {
        return Ok(found);
    }
    Err(format!("{name}: found {found}, expected a whole number from {} to {}", bounds.start(), bounds.end()))
}

impl FileLimits {
    fn check(&self) -> Result<Limits, String> {
        let size = |name: &str, found, bounds| {
            let found = within(&format!("limits.{name}"), found, bounds)?;
            usize::try_from(found)
                .map_err(|_| format!("limits.{name}: found {found}, which is too large here"))
        };
        Ok(Limits {
            connections_max: size("connections_max", self.connections_max, 1..=100_000)?,
            requests_max: size("requests_max", self.requests_max, 1..=100_000)?,
            head_bytes_max: size("head_bytes_max", self.head_bytes_max, 8 << 10..=1 << 20)?,
            headers_max: size("headers_max", self.headers_max, 10..=1_000)?,
            body_bytes_max: within("limits.body_bytes_max", self.body_bytes_max, 0..=1 << 50)?,
            resources_max: size("resources_max", self.resources_max, 1..=100_000_000)?,
        })
    }
}

impl FileTimes {
    fn check(&self) -> Result<Times, String> {
        let time = |name: &str, found, least| {
            within(&format!("times.{name}"), found, least..=3_600_000).map(Duration::from_millis)
        };
        Ok(Times {
            head: time("head_ms_max", self.head_ms_max, 100)?,
            connect: time("connect_ms_max", self.connect_ms_max, 10)?,
            answer: time("answer_ms_max", self.answer_ms_max, 10)?,
            stall: time("stall_ms_max", self.stall_ms_max, 10)?,
            drain: time("drain_ms_max", self.drain_ms_max, 0)?,
            settle: time("settle_ms", self.settle_ms, 0)?,
            stop: time("stop_ms_max", self.stop_ms_max, 0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "listen = '127.0.0.1:0'\nupstream = 'http://127.0.0.1:8080'\ngate = 'g'\n";

    fn read(more: &str) -> Result<Settings, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fence.toml");
        std::fs::write(&path, format!("{LEAST}{more}")).unwrap();
        let words =
            |error: SettingsError| error.to_string().replace(&format!("{}/", folder.path().display()), "");
        Settings::read(&path).map_err(words)
    }

    #[test]
    fn three_lines_are_enough_and_every_key_is_taken() {
        let least = read("").unwrap();
        assert_eq!(least.limits.resources_max, 1_000_000);
        assert_eq!(least.times.settle, Duration::from_secs(30));
        let all = read(
            "admin = '127.0.0.1:0'\ngate_floor = 9\nreport_to = ['http://127.0.0.1:7400']\nlog_format = 'json'\n\
             [[rule]]\npath = '/a/{b}'\nmethods = ['PUT']\naction = 'fence'\nresource = 'a/{b}'\n\
             [limits]\nconnections_max = 7\nrequests_max = 8\nhead_bytes_max = 9000\nheaders_max = 20\nbody_bytes_max = 1\nresources_max = 3\n\
             [times]\nhead_ms_max = 100\nconnect_ms_max = 10\nanswer_ms_max = 11\nstall_ms_max = 12\ndrain_ms_max = 13\n\
             settle_ms = 14\nstop_ms_max = 15\n",
        )
        .unwrap();
        assert_eq!((all.rules.0.len(), all.limits.connections_max), (1, 7));
        assert_eq!((all.log_format(), all.times.stop), (LogFormat::Json, Duration::from_millis(15)));
    }

    #[test]
    fn a_key_that_is_not_known_is_refused_with_its_line_and_those_that_are() {
        let unknown = read("lisen = 1\n").unwrap_err();
        assert!(
            unknown.starts_with("fence.toml:4: unknown field `lisen`, expected one of `listen`, `upstream`"),
            "{unknown}"
        );
        let unknown = read("[times]\nsettle = 1\n").unwrap_err();
        assert!(
            unknown.starts_with("fence.toml:5: unknown field `settle`") && unknown.contains("`settle_ms`"),
            "{unknown}"
        );
        assert!(read("[[rule]]\npath = '/'\nmethod = 'PUT'\n").unwrap_err().contains("`methods`"));
        assert!(read("listen = '[::1]:1'\n").unwrap_err().starts_with("fence.toml:4: duplicate key"));
        assert!(
            read("[[rule]]\npath = '/'\naction = 'allow'\n")
                .unwrap_err()
                .contains("`fence`, `open`, `refuse`")
        );
    }

    #[test]
    fn a_value_out_of_its_bounds_is_refused_with_them() {
        let fault = |more: &str| read(more).unwrap_err();
        assert_eq!(
            fault("[limits]\nheaders_max = 1\n"),
            "fence.toml: limits.headers_max: found 1, expected a whole number from 10 to 1000"
        );
        assert!(fault("[times]\nsettle_ms = 3600001\n").contains("times.settle_ms: found 3600001"));
        assert!(fault("gate_floor = 0\n").contains("gate_floor: fencing token 0 is out of range"));
        assert!(fault("[[rule]]\npath = '/a'\n[[rule]]\npath = 'b'\n").contains("rule 2: path: found \"b\""));
        for url in ["https://a:1", "http://a:1/base", "a:1", "http://u@a:1", "http://a?x"] {
            assert!(upstream(url).unwrap_err().contains("expected \"http://host:port\""), "{url}");
        }
        assert!(upstream("http://orders.internal").is_ok());
    }
}
