//! The settings with their meaning.
//!
//! Owns: parsing and bounds of every value, and the rules that a door stays on loopback and that TLS is whole or not
//! there. Never: where a value was given; the layers know.

use super::{ConfigError, Given, Kind, Layers, Origin, Setting, address};
use crate::audit::{AuditSettings, Renewals};
use crate::http::HttpLimits;
use crate::native::NativeLimits;
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
    /// Where the native protocol is served.
    pub native: SocketAddr,
    /// Where the other members connect to.
    pub peer: SocketAddr,
    /// How others reach the doors, as far as somebody said.
    pub advertised: Advertised,
    /// The failure zone, when somebody named one: 1 to 128 bytes.
    pub zone: Option<String>,
    /// How much this node is preferred as leader; larger is more.
    pub priority: u8,
    /// What the members prove themselves to each other with; without it they talk in plain text.
    pub peer_tls: Option<PeerFiles>,
    /// An empty data folder waits to be told, on loopback too.
    pub wait_for_cluster: bool,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written, as directives.
    pub log_levels: String,
    /// Where spans go.
    pub otlp: Option<String>,
    /// How the audit log is kept, if it is.
    pub audit: Option<AuditSettings>,
    /// What the HTTP door allows a peer.
    pub http_limits: HttpLimits,
    /// What the native door allows a peer.
    pub native_limits: NativeLimits,
}

/// How others reach a node's doors: `host:port` each, when that isn't where the door listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advertised {
    /// The HTTP door.
    pub http: Option<String>,
    /// The native door.
    pub native: Option<String>,
    /// The door for the other members.
    pub peer: Option<String>,
}

/// The PEM files of TLS between members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFiles {
    /// The authority that signs the members' certificates.
    pub ca: PathBuf,
    /// This member's certificate.
    pub cert: PathBuf,
    /// The key of that certificate.
    pub key: PathBuf,
}

impl Settings {
    /// Checks every value, and that no door is open to other machines unless `insecure` says so or, for the other
    /// members, TLS guards it.
    ///
    /// # Errors
    /// For the first value that can't be used.
    pub fn check(layers: &Layers) -> Result<Self, ConfigError> {
        let may_be_reached = switch(layers, Setting::Insecure)?;
        let peer_tls = peer_files(layers)?;
        let address = |setting, may_be_reached| door(layers, setting, may_be_reached);
        let advertised = |setting| optional(layers, setting, address::advertised);
        Ok(Self {
            data: PathBuf::from(&given(layers, Setting::Data)?.text),
            http: address(Setting::Http, may_be_reached)?,
            native: address(Setting::Native, may_be_reached)?,
            peer: address(Setting::Peer, may_be_reached || peer_tls.is_some())?,
            advertised: Advertised {
                http: advertised(Setting::AdvertiseHttp)?,
                native: advertised(Setting::AdvertiseNative)?,
                peer: advertised(Setting::AdvertisePeer)?,
            },
            zone: optional(layers, Setting::Zone, |text| name(Setting::Zone, text))?,
            priority: number(layers, Setting::Priority)
                .map(|number| u8::try_from(number).unwrap_or(u8::MAX))?,
            peer_tls,
            wait_for_cluster: switch(layers, Setting::WaitForCluster)?,
            log_format: parse(layers, Setting::LogFormat, |text| match text {
                "text" => Some(LogFormat::Text),
                "json" => Some(LogFormat::Json),
                _ => None,
            })?,
            log_levels: parse(layers, Setting::LogLevel, |text| {
                EnvFilter::try_new(text).is_ok().then(|| text.to_owned())
            })?,
            otlp: optional(layers, Setting::Otlp, address::advertised)?,
            audit: audit(layers)?,
            http_limits: http_limits(layers)?,
            native_limits: native_limits(layers)?,
        })
    }

    /// Whether every door is on loopback.
    pub fn is_on_loopback(&self) -> bool {
        [self.http, self.native, self.peer].iter().all(|address| address.ip().is_loopback())
    }

    /// How others reach the HTTP door, which listens on `http`.
    pub fn reached_http(&self, http: SocketAddr) -> String {
        reached(self.advertised.http.as_deref(), http)
    }

    /// How others reach the native door, which listens on `native`.
    pub fn reached_native(&self, native: SocketAddr) -> String {
        reached(self.advertised.native.as_deref(), native)
    }

    /// How the other members reach the door for them, which listens on `peer`.
    pub fn reached_peer(&self, peer: SocketAddr) -> String {
        reached(self.advertised.peer.as_deref(), peer)
    }
}

fn reached(advertised: Option<&str>, listening: SocketAddr) -> String {
    advertised.map_or_else(|| address::by_default(listening), str::to_owned)
}

impl Kind {
    /// What a value has to look like, in words.
    pub fn expected(self) -> String {
        match self {
            Self::Folder => "the path of a folder".to_owned(),
            Self::File => "the path of a file".to_owned(),
            Self::Address => "an IP address and a port, such as 127.0.0.1:7400 or [::1]:7400".to_owned(),
            Self::Advertised => {
                "the host and port by which others reach it, such as db1.example.org:7400 or \
                [2001:db8::1]:7400; never 0.0.0.0, [::] or port 0"
                    .to_owned()
            }
            Self::Name { bytes_max } => {
                format!("1 to {bytes_max} bytes without control characters, and no white space at either end")
            }
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

/// A setting that has a default.
fn given(layers: &Layers, setting: Setting) -> Result<&Given, ConfigError> {
    layers.of(setting).ok_or_else(|| ConfigError::BadValue {
        setting,
        origin: Origin::Default,
        found: "nothing".to_owned(),
        expected: setting.kind().expected(),
    })
}

fn parse<T>(
    layers: &Layers,
    setting: Setting,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, ConfigError> {
    let given = given(layers, setting)?;
    given.text.to_str().and_then(parse).ok_or_else(|| bad(setting, given))
}

/// A setting that may be left out.
fn optional<T>(
    layers: &Layers,
    setting: Setting,
    parse_text: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    layers.of(setting).map(|_| parse(layers, setting, parse_text)).transpose()
}

fn switch(layers: &Layers, setting: Setting) -> Result<bool, ConfigError> {
    parse(layers, setting, |text| text.parse().ok())
}

fn name(setting: Setting, text: &str) -> Option<String> {
    let Kind::Name { bytes_max } = setting.kind() else { return None };
    let is_name = (1..=bytes_max).contains(&text.len())
        && !text.chars().any(char::is_control)
        && !text.starts_with(char::is_whitespace)
        && !text.ends_with(char::is_whitespace);
    is_name.then(|| text.to_owned())
}

fn number(layers: &Layers, setting: Setting) -> Result<u64, ConfigError> {
    let in_bounds = |number: &u64| match setting.kind() {
        Kind::Number { least, most } => (least..=most).contains(number),
        _ => false,
    };
    parse(layers, setting, |text| text.parse().ok().filter(in_bounds))
}

/// The three files of TLS between members: all of them or none.
fn peer_files(layers: &Layers) -> Result<Option<PeerFiles>, ConfigError> {
    const ALL: [Setting; 3] = [Setting::PeerCa, Setting::PeerCert, Setting::PeerKey];
    let [ca, cert, key] = ALL.map(|setting| layers.of(setting));
    match (ca, cert, key) {
        (None, None, None) => Ok(None),
        (Some(ca), Some(cert), Some(key)) => {
            let path = |given: &Given| PathBuf::from(&given.text);
            Ok(Some(PeerFiles { ca: path(ca), cert: path(cert), key: path(key) }))
        }
        _ => {
            let (given, missing): (Vec<_>, Vec<_>) =
                ALL.into_iter().partition(|setting| layers.of(*setting).is_some());
            Err(ConfigError::HalfOfTls { given, missing })
        }
    }
}

fn audit(layers: &Layers) -> Result<Option<AuditSettings>, ConfigError> {
    let is_kept = switch(layers, Setting::Audit)?;
    let data = PathBuf::from(&given(layers, Setting::Data)?.text);
    let folder = layers.of(Setting::AuditFolder).map(|given| PathBuf::from(&given.text));
    let hours = number(layers, Setting::AuditFileHoursMax)?;
    let settings = AuditSettings {
        folder: folder.unwrap_or_else(|| data.clone()),
        data,
        renewals: if switch(layers, Setting::AuditRenewals)? {
            Renewals::Recorded
        } else {
            Renewals::LeftOut
        },
        file_bytes_max: number(layers, Setting::AuditFileBytesMax)?,
        file_age_max: Duration::from_secs(hours * 3_600),
        total_bytes_max: number(layers, Setting::AuditTotalBytesMax)?,
    };
    Ok(is_kept.then_some(settings))
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
        trace_one_in: number(layers, Setting::TraceOneIn)?,
        ..HttpLimits::default()
    })
}

fn native_limits(layers: &Layers) -> Result<NativeLimits, ConfigError> {
    let time = |setting| number(layers, setting).map(Duration::from_millis);
    let connections = number(layers, Setting::NativeConnectionsMax)?;
    Ok(NativeLimits {
        connections_max: usize::try_from(connections).unwrap_or(usize::MAX),
        idle_within: time(Setting::NativeIdleMsMax)?,
        write_within: time(Setting::NativeWriteMsMax)?,
        trace_one_in: number(layers, Setting::TraceOneIn)?,
        ..NativeLimits::default()
    })
}

fn door(layers: &Layers, setting: Setting, may_be_reached: bool) -> Result<SocketAddr, ConfigError> {
    let address: SocketAddr = parse(layers, setting, address::listened)?;
    if address.ip().is_loopback() || may_be_reached {
        return Ok(address);
    }
    let origin = given(layers, setting)?.origin.clone();
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
        assert_eq!(format!("{:?}", settings.native_limits), format!("{:?}", NativeLimits::default()));
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
    fn tls_between_members_is_three_files_or_none() {
        let said = words(&[(Setting::PeerCa, "ca.pem"), (Setting::PeerKey, "key.pem")]);
        assert_eq!(
            said,
            "--peer-ca and --peer-key are given without --peer-cert: TLS between members needs all three of \
             --peer-ca, --peer-cert and --peer-key; give what is missing, or none of them"
        );

        let all =
            [(Setting::PeerCa, "ca.pem"), (Setting::PeerCert, "cert.pem"), (Setting::PeerKey, "key.pem")];
        let settings = Settings::check(&flags(&all)).unwrap();
        assert_eq!(settings.peer_tls.unwrap().cert, PathBuf::from("cert.pem"));
        assert_eq!(Settings::check(&flags(&[])).unwrap().peer_tls, None);
    }

    #[test]
    fn with_tls_the_members_may_meet_across_machines_without_insecure() {
        let plain = words(&[(Setting::Peer, "0.0.0.0:7402")]);
        assert!(plain.contains("--peer-ca, --peer-cert and --peer-key"), "{plain}");

        let tls = [
            (Setting::Peer, "0.0.0.0:7402"),
            (Setting::PeerCa, "ca.pem"),
            (Setting::PeerCert, "cert.pem"),
            (Setting::PeerKey, "key.pem"),
        ];
        assert!(Settings::check(&flags(&tls)).is_ok());
        let and_http = [&tls[..], &[(Setting::Http, "0.0.0.0:7400")]].concat();
        assert!(words(&and_http).starts_with("--http: "), "TLS between members guards no other door");
    }

    #[test]
    fn a_zone_is_a_short_name() {
        let zone =
            |text: &str| Settings::check(&flags(&[(Setting::Zone, text)])).map(|settings| settings.zone);
        assert_eq!(zone("eu-1 rack b").unwrap().as_deref(), Some("eu-1 rack b"));
        assert_eq!(zone(&"z".repeat(128)).unwrap().unwrap().len(), 128);
        for text in ["", " a", "a ", "a\nb", &"z".repeat(129)] {
            assert!(zone(text).unwrap_err().to_string().contains("1 to 128 bytes"), "{text:?}");
        }
    }

    #[test]
    fn others_are_told_what_was_said_or_where_the_door_listens() {
        let settings = Settings::check(&flags(&[(Setting::AdvertiseHttp, "db1:80")])).unwrap();
        let listening = SocketAddr::from(([127, 0, 0, 1], 9));

        assert_eq!(settings.reached_http(listening), "db1:80");
        assert_eq!(settings.reached_peer(listening), "127.0.0.1:9");
        assert_eq!(settings.reached_native(listening), "127.0.0.1:9");
        assert!(words(&[(Setting::AdvertisePeer, "0.0.0.0:7402")]).contains("never 0.0.0.0"));
    }
}
