//! The settings with their meaning.
//!
//! Owns: parsing and bounds of every value, and the rule that a door stays on loopback. Never: where a value was
//! given; the layers know.

use super::{ConfigError, Given, Kind, Layers, Setting};
use crate::http::HttpLimits;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON document a line.
    Json,
}

/// What a node needs to be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder.
    pub data: PathBuf,
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Where the native protocol will be served.
    pub native: SocketAddr,
    /// Where the other members will connect to.
    pub peer: SocketAddr,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written, as directives.
    pub log_levels: String,
    /// What the HTTP door allows a peer.
    pub http_limits: HttpLimits,
}

impl Settings {
    /// Checks every value, and that no door is open to other machines unless `insecure` says so.
    ///
    /// # Errors
    /// For the first value that can't be used.
    pub fn check(layers: &Layers) -> Result<Self, ConfigError> {
        let switch = |setting| parse(layers, setting, |text| text.parse::<bool>().ok());
        let may_be_reached = switch(Setting::Insecure)?;
        let address = |setting| door(layers, setting, may_be_reached);
        Ok(Self {
            data: PathBuf::from(&layers.of(Setting::Data).text),
            http: address(Setting::Http)?,
            native: address(Setting::Native)?,
            peer: address(Setting::Peer)?,
            log_format: parse(layers, Setting::LogFormat, |text| match text {
                "text" => Some(LogFormat::Text),
                "json" => Some(LogFormat::Json),
                _ => None,
            })?,
            log_levels: parse(layers, Setting::LogLevel, |text| {
                EnvFilter::try_new(text).is_ok().then(|| text.to_owned())
            })?,
            http_limits: http_limits(layers)?,
        })
    }

    /// Whether every door is on loopback.
    pub fn is_on_loopback(&self) -> bool {
        [self.http, self.native, self.peer].iter().all(|address| address.ip().is_loopback())
    }
}

impl Kind {
    /// What a value has to look like, in words.
    pub fn expected(self) -> String {
        match self {
            Self::Folder => "the path of a folder".to_owned(),
            Self::Address => "an IP address and a port, such as 127.0.0.1:7400 or [::1]:7400".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::Word(words) => words.join(" or "),
            Self::Levels => {
                "error, warn, info, debug, trace, or directives such as info,kunci_server=debug".to_owned()
            }
            Self::Number { least, most } => format!("a whole number from {least} to {most}"),
        }
    }
}

fn bad(setting: Setting, given: &Given) -> ConfigError {
    ConfigError::BadValue {
        setting,
        origin: given.origin.clone(),
        found: format!("{:?}", given.text.to_string_lossy()),
        expected: setting.kind().expected(),
    }
}

fn parse<T>(
    layers: &Layers,
    setting: Setting,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ConfigError> {
    let given = layers.of(setting);
    given.text.to_str().and_then(parse).ok_or_else(|| bad(setting, given))
}

fn number(layers: &Layers, setting: Setting) -> Result<u64, ConfigError> {
    let in_bounds = |number: &u64| match setting.kind() {
        Kind::Number { least, most } => (least..=most).contains(number),
        Kind::Folder | Kind::Address | Kind::Switch | Kind::Word(_) | Kind::Levels => false,
    };
    parse(layers, setting, |text| text.parse().ok().filter(in_bounds))
}

fn http_limits(layers: &Layers) -> Result<HttpLimits, ConfigError> {
    let size = |setting| number(layers, setting).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let time = |setting| number(layers, setting).map(Duration::from_millis);
    Ok(HttpLimits {
        connections_max: size(Setting::HttpConnectionsMax)?,
        head_bytes_max: size(Setting::HttpHeadBytesMax)?,
        body_bytes_max: size(Setting::HttpBodyBytesMax)?,
        head_within: time(Setting::HttpHeadMsMax)?,
        body_within: time(Setting::HttpBodyMsMax)?,
        idle_within: time(Setting::HttpIdleMsMax)?,
        write_within: time(Setting::HttpWriteMsMax)?,
        ..HttpLimits::default()
    })
}

fn door(layers: &Layers, setting: Setting, may_be_reached: bool) -> Result<SocketAddr, ConfigError> {
    // Only this name, because it means the same on every machine; any other would be looked up once and go stale.
    let parse_address = |text: &str| match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port| SocketAddr::from(([127, 0, 0, 1], port))),
        None => text.parse().ok(),
    };
    let address: SocketAddr = parse(layers, setting, parse_address)?;
    if address.ip().is_loopback() || may_be_reached {
        return Ok(address);
    }
    let origin = layers.of(setting).origin.clone();
    Err(ConfigError::NotLoopback { setting, origin, address: address.to_string() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::flags;
    use super::*;

    fn words(given: &[(Setting, &str)]) -> String {
        Settings::check(&flags(given)).unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_are_a_node_on_loopback() {
        let settings = Settings::check(&flags(&[])).unwrap();

        assert!(settings.is_on_loopback());
        assert_eq!(settings.http.port(), 7400);
        assert_eq!((settings.native.port(), settings.peer.port()), (7401, 7402));
    }

    #[test]
    fn the_default_limits_are_those_of_the_door() {
        let settings = Settings::check(&flags(&[])).unwrap();
        assert_eq!(format!("{:?}", settings.http_limits), format!("{:?}", HttpLimits::default()));
    }

    #[test]
    fn an_address_that_others_can_reach_needs_insecure() {
        for (setting, name) in
            [(Setting::Http, "--http"), (Setting::Native, "--native"), (Setting::Peer, "--peer")]
        {
            let refused = words(&[(setting, "0.0.0.0:7400")]);
            assert!(refused.starts_with(&format!("{name}: 0.0.0.0:7400 can be reached from other machines")));
            assert!(refused.contains("--insecure"), "{refused}");

            let said = flags(&[(setting, "0.0.0.0:7400"), (Setting::Insecure, "true")]);
            assert!(!Settings::check(&said).unwrap().is_on_loopback());
        }
    }

    #[test]
    fn a_bad_value_is_refused_with_what_was_expected() {
        assert_eq!(
            words(&[(Setting::Http, "7400")]),
            "--http: found \"7400\", expected an IP address and a port, such as 127.0.0.1:7400 or [::1]:7400"
        );
        assert_eq!(
            words(&[(Setting::HttpBodyBytesMax, "1")]),
            "--http-body-bytes-max: found \"1\", expected a whole number from 4096 to 1048576"
        );
        assert_eq!(
            words(&[(Setting::LogFormat, "xml")]),
            "--log-format: found \"xml\", expected text or json"
        );
        assert!(words(&[(Setting::LogLevel, "loud=very")]).starts_with("--log-level: found \"loud=very\""));
    }

    #[test]
    fn localhost_is_the_only_name_that_is_an_address() {
        let http = |text| Settings::check(&flags(&[(Setting::Http, text)])).map(|settings| settings.http);
        assert_eq!(http("localhost:80").unwrap().to_string(), "127.0.0.1:80");
        assert!(http("example.org:80").is_err());
    }
}
