//! The settings, one row each.
//!
//! Owns: names, defaults and help. A setting has one name in three spellings: `log_format` in the file,
//! `--log-format` on the command line, `KUNCI_LOG_FORMAT` in the environment. Never: a value.

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder; the flag's value is called DIR.
    Folder,
    /// A file; the flag's value is called FILE.
    File,
    /// `IP:PORT`, to listen on.
    Address,
    /// `HOST:PORT`, as others reach it.
    Advertised,
    /// A name for people, of at most this many bytes.
    Name {
        /// The most bytes.
        bytes_max: usize,
    },
    /// On or off; the flag alone turns it on.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A log level, or directives as `RUST_LOG` has them.
    Levels,
    /// A whole number from `least` to `most`.
    Number {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
}

/// One setting of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// The data folder.
    Data,
    /// The HTTP door.
    Http,
    /// The native door.
    Native,
    /// The door for the other members.
    Peer,
    /// How clients reach the HTTP door.
    AdvertiseHttp,
    /// How clients reach the native door.
    AdvertiseNative,
    /// How the other members reach this one.
    AdvertisePeer,
    /// The failure zone.
    Zone,
    /// How much this node is preferred as leader.
    Priority,
    /// The authority that signs the members' certificates.
    PeerCa,
    /// This member's certificate.
    PeerCert,
    /// The key of that certificate.
    PeerKey,
    /// An empty data folder waits to be told.
    WaitForCluster,
    /// Doors may be open to other machines.
    Insecure,
    /// How log lines look.
    LogFormat,
    /// Which log lines are written.
    LogLevel,
    /// Which requests are followed that don't ask for it.
    TraceOneIn,
    /// Where spans go.
    Otlp,
    /// Whether an audit log is kept.
    Audit,
    /// The folder of the audit log.
    AuditFolder,
    /// Whether renewals are recorded.
    AuditRenewals,
    /// Size of one file of it.
    AuditFileBytesMax,
    /// Age of the file that is written.
    AuditFileHoursMax,
    /// Size of all files together.
    AuditTotalBytesMax,
    /// Connections at once.
    HttpConnectionsMax,
    /// Size of a request's line and headers.
    HttpHeadBytesMax,
    /// Size of a request's body.
    HttpBodyBytesMax,
    /// Time for a request's line and headers.
    HttpHeadMsMax,
    /// Time for a request's body.
    HttpBodyMsMax,
    /// Time between requests on a connection.
    HttpIdleMsMax,
    /// Time without progress in writing an answer.
    HttpWriteMsMax,
    /// Native connections at once.
    NativeConnectionsMax,
    /// Time with nothing under way on a native connection.
    NativeIdleMsMax,
    /// Time without progress in writing native answers.
    NativeWriteMsMax,
}

impl Setting {
    /// Every setting, in the order in which they are shown.
    pub const ALL: [Self; 34] = [
        Self::Data,
        Self::Http,
        Self::Native,
        Self::Peer,
        Self::AdvertiseHttp,
        Self::AdvertiseNative,
        Self::AdvertisePeer,
        Self::Zone,
        Self::Priority,
        Self::PeerCa,
        Self::PeerCert,
        Self::PeerKey,
        Self::WaitForCluster,
        Self::Insecure,
        Self::LogFormat,
        Self::LogLevel,
        Self::TraceOneIn,
        Self::Otlp,
        Self::Audit,
        Self::AuditFolder,
        Self::AuditRenewals,
        Self::AuditFileBytesMax,
        Self::AuditFileHoursMax,
        Self::AuditTotalBytesMax,
        Self::HttpConnectionsMax,
        Self::HttpHeadBytesMax,
        Self::HttpBodyBytesMax,
        Self::HttpHeadMsMax,
        Self::HttpBodyMsMax,
        Self::HttpIdleMsMax,
        Self::HttpWriteMsMax,
        Self::NativeConnectionsMax,
        Self::NativeIdleMsMax,
        Self::NativeWriteMsMax,
    ];

    /// Its name, as the file spells it.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Its name as a flag.
    pub fn flag(self) -> String {
        format!("--{}", self.name().replace('_', "-"))
    }

    /// Its name as an environment variable.
    pub fn variable(self) -> String {
        format!("KUNCI_{}", self.name().to_uppercase())
    }

    /// What it is when nobody says; `None` when it then isn't there.
    pub fn default(self) -> Option<&'static str> {
        self.row().1
    }

    /// What its values look like.
    pub fn kind(self) -> Kind {
        self.row().2
    }

    /// One sentence for `--help`.
    pub fn help(self) -> &'static str {
        self.row().3
    }

    #[expect(clippy::too_many_lines, reason = "a table: one row for each setting, and nothing is decided")]
    fn row(self) -> (&'static str, Option<&'static str>, Kind, &'static str) {
        const FORMATS: Kind = Kind::Word(&["text", "json"]);
        const MS: Kind = Kind::Number { least: 10, most: 600_000 };
        match self {
            Self::Data => (
                "data",
                Some("./kunci-data"),
                Kind::Folder,
                "The data folder. One process at a time may use it",
            ),
            Self::Http => (
                "http",
                Some("127.0.0.1:7400"),
                Kind::Address,
                "Where HTTP is served; port 0 takes a free one",
            ),
            Self::Native => (
                "native",
                Some("127.0.0.1:7401"),
                Kind::Address,
                "Where the native protocol is served; port 0 takes a free one",
            ),
            Self::Peer => (
                "peer",
                Some("127.0.0.1:7402"),
                Kind::Address,
                "Where the other members of the cluster connect to; port 0 takes a free one",
            ),
            Self::AdvertiseHttp => (
                "advertise_http",
                None,
                Kind::Advertised,
                "How clients reach the HTTP door, when that isn't the address of --http: behind NAT or a name; \
                 for 0.0.0.0 and [::] it is this machine's host name unless you say otherwise",
            ),
            Self::AdvertiseNative => (
                "advertise_native",
                None,
                Kind::Advertised,
                "The same for the address of --native; redirects name it",
            ),
            Self::AdvertisePeer => (
                "advertise_peer",
                None,
                Kind::Advertised,
                "The same for the address of --peer: how the other members reach this one",
            ),
            Self::Zone => (
                "zone",
                None,
                Kind::Name { bytes_max: 128 },
                "The failure zone that this node is in, such as a data centre; `kunci cluster status` warns when \
                 two voters share one",
            ),
            Self::Priority => (
                "priority",
                Some("0"),
                Kind::Number { least: 0, most: 255 },
                "Leadership moves to the healthy member with the largest",
            ),
            Self::PeerCa => (
                "peer_ca",
                None,
                Kind::File,
                "PEM file with the authority that signs the members' certificates; with --peer-cert and --peer-key \
                 members talk TLS, and each checks the other's certificate",
            ),
            Self::PeerCert => (
                "peer_cert",
                None,
                Kind::File,
                "PEM file with this member's certificate, and those between it and the authority; node 3's is made \
                 out to node-3.kunci",
            ),
            Self::PeerKey => ("peer_key", None, Kind::File, "PEM file with the key of that certificate"),
            Self::WaitForCluster => (
                "wait_for_cluster",
                Some("false"),
                Kind::Switch,
                "With an empty data folder, wait until `kunci cluster init` or `add` gives this node a cluster; without \
                 it, a node that only its own machine can reach forms one by itself",
            ),
            Self::Insecure => (
                "insecure",
                Some("false"),
                Kind::Switch,
                "Allow addresses that other machines can reach, though anybody there may take and end every lock",
            ),
            Self::LogFormat => {
                ("log_format", Some("text"), FORMATS, "How log lines on standard error look: text or json")
            }
            Self::LogLevel => (
                "log_level",
                Some("info"),
                Kind::Levels,
                "error, warn, info, debug or trace, or directives such as info,kunci_server=debug",
            ),
            Self::TraceOneIn => (
                "trace_one_in",
                Some("0"),
                Kind::Number { least: 0, most: 1_000_000_000 },
                "Of so many requests one is followed through logs and spans without its client asking for it: \
                 docs/tracing.md; 0 follows none",
            ),
            Self::Otlp => (
                "otlp",
                None,
                Kind::Advertised,
                "Where spans of followed requests go: the OTLP over HTTP of a collector, such as 127.0.0.1:4318; only \
                 in a kunci that was built with the feature otlp",
            ),
            Self::Audit => (
                "audit",
                Some("true"),
                Kind::Switch,
                "Record who got, gave back and was denied which lock: docs/audit.md; --audit=false records nothing",
            ),
            Self::AuditFolder => (
                "audit_folder",
                None,
                Kind::Folder,
                "The folder of the audit log; without it, the data folder",
            ),
            Self::AuditRenewals => (
                "audit_renewals",
                Some("false"),
                Kind::Switch,
                "Record every renewal too, which is most of what happens; those that are denied are always recorded",
            ),
            Self::AuditFileBytesMax => (
                "audit_file_bytes_max",
                Some("67108864"),
                Kind::Number { least: 65_536, most: 1 << 40 },
                "Bytes of the audit log's file before it is put aside and another one begins",
            ),
            Self::AuditFileHoursMax => (
                "audit_file_hours_max",
                Some("24"),
                Kind::Number { least: 1, most: 100_000 },
                "Hours until the audit log's file is put aside, however small it is",
            ),
            Self::AuditTotalBytesMax => (
                "audit_total_bytes_max",
                Some("1073741824"),
                Kind::Number { least: 131_072, most: 1 << 50 },
                "Bytes of all files of the audit log together; the oldest go",
            ),
            Self::HttpConnectionsMax => (
                "http_connections_max",
                Some("10000"),
                Kind::Number { least: 1, most: 1_000_000 },
                "HTTP connections at once; more are told so and closed",
            ),
            Self::HttpHeadBytesMax => (
                "http_head_bytes_max",
                Some("16384"),
                Kind::Number { least: 8_192, most: 1 << 20 },
                "Bytes of an HTTP request's line and headers",
            ),
            Self::HttpBodyBytesMax => (
                "http_body_bytes_max",
                Some("65536"),
                Kind::Number { least: 4_096, most: 1 << 20 },
                "Bytes of an HTTP request's body; a request that renews many leases may have 1 MiB",
            ),
            Self::HttpHeadMsMax => (
                "http_head_ms_max",
                Some("10000"),
                MS,
                "Milliseconds until an HTTP request's line and headers are there",
            ),
            Self::HttpBodyMsMax => {
                ("http_body_ms_max", Some("10000"), MS, "Milliseconds until an HTTP request's body is there")
            }
            Self::HttpIdleMsMax => (
                "http_idle_ms_max",
                Some("90000"),
                MS,
                "Milliseconds from one HTTP request to the next on a connection before it is closed",
            ),
            Self::HttpWriteMsMax => (
                "http_write_ms_max",
                Some("10000"),
                MS,
                "Milliseconds that writing an HTTP answer may stand still before the connection is closed",
            ),
            Self::NativeConnectionsMax => (
                "native_connections_max",
                Some("20000"),
                Kind::Number { least: 1, most: 1_000_000 },
                "Native connections at once; more are told so and closed",
            ),
            Self::NativeIdleMsMax => (
                "native_idle_ms_max",
                Some("600000"),
                MS,
                "Milliseconds without a request under way before a native connection is closed",
            ),
            Self::NativeWriteMsMax => (
                "native_write_ms_max",
                Some("10000"),
                MS,
                "Milliseconds that writing native answers may stand still before the connection is cut off",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_one_name_in_three_spellings() {
        let setting = Setting::LogFormat;
        assert_eq!(setting.name(), "log_format");
        assert_eq!(setting.flag(), "--log-format");
        assert_eq!(setting.variable(), "KUNCI_LOG_FORMAT");
    }

    #[test]
    fn settings_are_listed_once_each_in_their_order() {
        assert!(Setting::ALL.is_sorted());
        assert!(Setting::ALL.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
