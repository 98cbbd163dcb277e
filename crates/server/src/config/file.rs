//! The settings file.
//!
//! Owns: TOML, and the line of every value. Never: what a value means.

use super::nearest::nearest;
use super::{ConfigError, Given, Kind, Origin, Setting};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Reads every value of a file.
pub(super) fn read(path: &Path) -> Result<BTreeMap<Setting, Given>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let line_at = |byte: usize| text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1;
    let table = DeTable::parse(&text).map_err(|error| ConfigError::NotToml {
        path: path.to_owned(),
        line: line_at(error.span().map_or(0, |span| span.start)),
        what: error.message().to_owned(),
    })?;
    let mut all = BTreeMap::new();
    for (key, value) in table.get_ref() {
        let line = line_at(key.span().start);
        let key = key.get_ref().as_ref();
        let Some(setting) = Setting::ALL.into_iter().find(|setting| setting.name() == key) else {
            let names = Setting::ALL.into_iter().map(Setting::name);
            let nearest = nearest(key, names);
            return Err(ConfigError::UnknownKey {
                path: path.to_owned(),
                line,
                key: key.to_owned(),
                nearest,
            });
        };
        let origin = Origin::File { path: path.to_owned(), line };
        let Some(given) = text_of(setting.kind(), value.get_ref()) else {
            let found = text.get(value.span()).unwrap_or_default().to_owned();
            return Err(ConfigError::BadValue {
                setting,
                origin,
                found,
                expected: setting.kind().expected(),
            });
        };
        all.insert(setting, Given { text: given, origin });
    }
    Ok(all)
}

/// The value as a flag would have it, if it is of the kind that the setting takes.
fn text_of(kind: Kind, value: &DeValue<'_>) -> Option<OsString> {
    match kind {
        Kind::Switch => value.as_bool().map(|on| on.to_string().into()),
        Kind::Number { .. } => {
            let number = value.as_integer()?;
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string().into())
        }
        Kind::Folder
        | Kind::File
        | Kind::Address
        | Kind::Advertised
        | Kind::Name { .. }
        | Kind::Word(_)
        | Kind::Levels => value.as_str().map(OsString::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<BTreeMap<Setting, Given>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kunci.toml");
        std::fs::write(&path, text).unwrap();
        let words =
            |error: ConfigError| error.to_string().replace(&format!("{}/", folder.path().display()), "");
        read(&path).map_err(words)
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let all =
            read_text("data = 'd'\ninsecure = true\n\nhttp_body_bytes_max = 0x1_0000 # bytes\n").unwrap();

        let text = |setting| all[&setting].text.to_str().unwrap();
        assert_eq!((text(Setting::Data), text(Setting::Insecure)), ("d", "true"));
        assert_eq!(text(Setting::HttpBodyBytesMax), "65536");
    }

    #[test]
    fn an_unknown_key_is_refused_by_name_with_the_nearest_known_one() {
        assert_eq!(
            read_text("data = \"d\"\nhtpp = \"127.0.0.1:1\"").unwrap_err(),
            "kunci.toml:2: unknown setting `htpp`; did you mean `http`?"
        );
        let strange = read_text("[database]\nurl = \"x\"").unwrap_err();
        assert!(strange.starts_with("kunci.toml:1: unknown setting `database`; expected one of data, http,"));
    }

    #[test]
    fn a_value_of_another_kind_is_refused_with_file_line_and_key() {
        assert_eq!(
            read_text("http_body_ms_max = \"soon\"").unwrap_err(),
            "kunci.toml:1: http_body_ms_max: found \"soon\", expected a whole number from 10 to 600000"
        );
        assert_eq!(
            read_text("\ninsecure = \"yes\"").unwrap_err(),
            "kunci.toml:2: insecure: found \"yes\", expected true or false"
        );
    }

    #[test]
    fn what_is_not_toml_is_refused_with_its_line() {
        let error = read_text("data = \"d\"\nhttp: 7400\n").unwrap_err();
        assert!(error.starts_with("kunci.toml:2: "), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_is_refused_by_name() {
        let error = read(Path::new("nowhere/kunci.toml")).unwrap_err().to_string();
        assert!(error.starts_with("read settings from nowhere/kunci.toml: "), "{error}");
    }
}
