//! A node's settings: what they are, where each comes from, and what it means.
//!
//! Owns: the layers (flag over environment over file over default) and the check of every value. Never: acts on a
//! setting.

mod address;
mod error;
mod file;
mod nearest;
mod origin;
mod setting;
mod settings;

pub use error::ConfigError;
pub use origin::Origin;
pub use setting::{Kind, Setting};
pub use settings::{Advertised, LogFormat, PeerFiles, Settings};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The environment variable that names the file; `--config` wins over it.
pub const FILE_VARIABLE: &str = "KUNCI_CONFIG";

/// A value as it was written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The value.
    pub text: OsString,
    /// Where it was written.
    pub origin: Origin,
}

/// What every setting was given as, before anything is checked. One that nobody gave and that has no default isn't
/// in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    given: BTreeMap<Setting, Given>,
}

impl Layers {
    /// Puts the layers on top of each other: `flags`, then the environment as `variable` knows it, then the file
    /// that `file` or the environment names, then the defaults.
    ///
    /// # Errors
    /// When the file can't be read, isn't TOML, or has a key that is no setting.
    pub fn read(
        flags: BTreeMap<Setting, OsString>,
        file: Option<PathBuf>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ConfigError> {
        // An empty variable is one that isn't set: that is how compose files and unit files say so.
        let variable = |name: &str| variable(name).filter(|text| !text.is_empty());
        let file = file.or_else(|| variable(FILE_VARIABLE).map(PathBuf::from));
        let mut in_file = file.map(|path| file::read(&path)).transpose()?.unwrap_or_default();
        let mut flags = flags;
        let given = Setting::ALL.into_iter().map(|setting| {
            let from_flag =
                flags.remove(&setting).map(|text| Given { text, origin: Origin::Flag(setting.flag()) });
            let from_variable = || {
                let name = setting.variable();
                variable(&name).map(|text| Given { text, origin: Origin::Environment(name) })
            };
            let by_default =
                || setting.default().map(|text| Given { text: text.into(), origin: Origin::Default });
            let given = from_flag.or_else(from_variable).or_else(|| in_file.remove(&setting));
            Some((setting, given.or_else(by_default)?))
        });
        Ok(Self { given: given.flatten().collect() })
    }

    /// What a setting was given as, or its default; `None` when it has neither.
    pub(crate) fn of(&self, setting: Setting) -> Option<&Given> {
        self.given.get(&setting)
    }

    /// Every setting with what it was given as, in the order of [`Setting::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Setting, Option<&Given>)> {
        Setting::ALL.into_iter().map(|setting| (setting, self.of(setting)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layers in which only these flags are given.
    pub(super) fn flags(given: &[(Setting, &str)]) -> Layers {
        let flags = given.iter().map(|(setting, text)| (*setting, OsString::from(text))).collect();
        Layers::read(flags, None, |_| None).unwrap()
    }

    fn layers(flag: Option<&str>, variable: Option<&str>, file: Option<&str>) -> Result<Layers, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kunci.toml");
        if let Some(text) = file {
            std::fs::write(&path, text).unwrap();
        }
        let flags = flag.map(|text| (Setting::Http, OsString::from(text))).into_iter().collect();
        let file = file.map(|_| path);
        Layers::read(flags, file, |name| {
            (name == "KUNCI_HTTP").then(|| variable.map(OsString::from)).flatten()
        })
    }

    fn http(layers: &Layers) -> (String, String) {
        let given = layers.of(Setting::Http).unwrap();
        (given.text.to_string_lossy().into_owned(), given.origin.to_string())
    }

    #[test]
    fn a_flag_wins_over_the_environment_over_the_file_over_the_default() {
        let (flag, variable, file) = (Some("[::1]:1"), Some("[::1]:2"), Some("\nhttp = \"[::1]:3\"\n"));

        let (value, source) = http(&layers(flag, variable, file).unwrap());
        assert_eq!((value.as_str(), source.as_str()), ("[::1]:1", "--http"));

        let (value, source) = http(&layers(None, variable, file).unwrap());
        assert_eq!((value.as_str(), source.as_str()), ("[::1]:2", "KUNCI_HTTP"));

        let (value, source) = http(&layers(None, None, file).unwrap());
        assert_eq!(value, "[::1]:3");
        assert!(source.ends_with("kunci.toml:2"), "{source}");

        let (value, source) = http(&layers(None, None, None).unwrap());
        assert_eq!((value.as_str(), source.as_str()), ("127.0.0.1:7400", "default"));
    }

    #[test]
    fn an_empty_variable_is_one_that_is_not_set() {
        assert_eq!(http(&layers(None, Some(""), None).unwrap()).1, "default");
    }

    #[test]
    fn the_environment_can_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.toml");
        std::fs::write(&path, "http = \"[::1]:9\"").unwrap();

        let named = |name: &str| (name == FILE_VARIABLE).then(|| path.clone().into_os_string());
        let layers = Layers::read(BTreeMap::new(), None, named).unwrap();

        assert_eq!(http(&layers).0, "[::1]:9");
    }
}
