//! Why settings can't be used.
//!
//! Owns: the words. Each says where the value stands, what it is, and what was expected.

use super::{Origin, Setting};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Settings that a node must not start with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("read settings from {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },

    /// The file isn't TOML.
    #[error("{}:{line}: {what}; expected TOML, one `name = value` a line", path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser says.
        what: String,
    },

    /// A key that is no setting.
    #[error("{}:{line}: unknown setting `{key}`; {}", path.display(), Suggestion(*nearest))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The setting that was probably meant.
        nearest: Option<&'static str>,
    },

    /// A value of the wrong kind or out of bounds.
    #[error("{}: found {found}, expected {expected}", Place(*setting, origin))]
    BadValue {
        /// The setting.
        setting: Setting,
        /// Where the value stands.
        origin: Origin,
        /// The value.
        found: String,
        /// What would do.
        expected: String,
    },

    /// An address that other machines can reach.
    #[error("{}: {address} can be reached from other machines, and {}", Place(*setting, origin), Unguarded(*setting))]
    NotLoopback {
        /// The setting.
        setting: Setting,
        /// Where the address stands.
        origin: Origin,
        /// The address.
        address: String,
    },

    /// Some of the three files of TLS between members.
    #[error(
        "{} given without {}: TLS between members needs all three of --peer-ca, --peer-cert and --peer-key; give \
         what is missing, or none of them",
        AreFlags(given),
        flags(missing)
    )]
    HalfOfTls {
        /// Those that are given, wherever.
        given: Vec<Setting>,
        /// Those that aren't.
        missing: Vec<Setting>,
    },
}

fn flags(settings: &[Setting]) -> String {
    settings.iter().map(|setting| setting.flag()).collect::<Vec<_>>().join(" and ")
}

struct AreFlags<'a>(&'a [Setting]);

impl fmt::Display for AreFlags<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", flags(self.0), if self.0.len() == 1 { "is" } else { "are" })
    }
}

/// Why a door that others can reach isn't opened just so, and what to do.
struct Unguarded(Setting);

impl fmt::Display for Unguarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Setting::Peer => {
                "without TLS anybody there may pass for a member; give --peer-ca, --peer-cert and --peer-key, use a \
                 loopback address such as 127.0.0.1, or say --insecure if nobody else can reach it"
            }
            _ => {
                "this version has no authentication and no TLS for clients; use a loopback address such as \
                 127.0.0.1, or say --insecure if everybody who can reach it may take and end every lock"
            }
        })
    }
}

/// A setting in the place where it was given, such as `kunci.toml:3: http`.
struct Place<'a>(Setting, &'a Origin);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            // The name is said already.
            Origin::Flag(_) | Origin::Environment(_) => write!(f, "{}", self.1),
            Origin::File { .. } | Origin::Default => write!(f, "{}: {}", self.1, self.0.name()),
        }
    }
}

struct Suggestion(Option<&'static str>);

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "did you mean `{name}`?"),
            None => {
                let names: Vec<_> = Setting::ALL.into_iter().map(Setting::name).collect();
                write!(f, "expected one of {}", names.join(", "))
            }
        }
    }
}
