//! Where a value comes from.

use std::fmt;
use std::path::PathBuf;

/// Where a value comes from; shown as a person would look for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line, by this flag.
    Flag(String),
    /// This environment variable.
    Environment(String),
    /// A file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// Nobody said anything.
    Default,
}

impl Origin {
    /// The kind, as `--json` says it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Flag(_) => "flag",
            Self::Environment(_) => "environment",
            Self::File { .. } => "file",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Environment(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}
