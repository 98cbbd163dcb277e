//! The first words on every connection between nodes.
//!
//! Owns: who says what, and the bytes of it. Never: decides who is let in.
//!
//! ```text
//! "kunci-p\n"   length of body u32   crc32 of body u32   body: JSON
//! ```
//!
//! Integers are big-endian. The caller says [`Hello`], and nothing more before it has its [`Answer`]. These few
//! bytes are all that any two releases must understand of each other: a reader passes over fields it doesn't know,
//! and a field that comes later has a default.

use super::roster::Me;
use crate::data_folder::ClusterId;
use crate::raft_types::Member;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The versions of what comes after the handshake that this release speaks.
pub(super) const VERSIONS: RangeInclusive<u16> = 1..=1;
/// Begins every message; no TLS record and no HTTP request begins so.
const MAGIC: [u8; 8] = *b"kunci-p\n";
/// The first bytes of TLS records: of an alert and of a handshake.
const FIRST_BYTES_OF_TLS: RangeInclusive<u8> = 0x15..=0x16;
/// The most bytes of a body: a member's addresses are names of hosts, and a refusal is a sentence or two.
const BODY_BYTES_MAX: usize = 4096;
/// The most characters of a text for people, so that any text fits.
const TEXT_CHARS_MAX: usize = 512;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Raft: streams of entries.
    Append,
    /// Raft: votes and other single questions, and the pulse.
    Ask,
    /// Raft: a snapshot.
    Snapshot,
    /// HTTP/2 after the handshake: calls of clients, forwarded to the leader.
    Calls,
    /// Who is there, and the invitation of a new node.
    Door,
}

impl Purpose {
    const ALL: [Self; 5] = [Self::Append, Self::Ask, Self::Snapshot, Self::Calls, Self::Door];

    /// `None` for a purpose of another release.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.word() == word)
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Ask => "ask",
            Self::Snapshot => "snapshot",
            Self::Calls => "calls",
            Self::Door => "door",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a node isn't let in. The text beside it is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RefusalCode {
    /// No common version of the protocol, or a purpose that only one side knows.
    Version,
    /// The caller belongs to another cluster.
    OtherCluster,
    /// The caller wants another node than this one.
    WrongNode,
    /// The caller is no member any more.
    Removed,
    /// The node called belongs to no cluster yet.
    NoCluster,
    /// The node called belongs to a cluster already, and was invited all the same.
    HasCluster,
    /// Too many connections, or just taking up an invitation.
    Busy,
    /// The caller's certificate isn't that of the node it says it is, or only one side has TLS.
    Certificate,
    /// Anything else, and any code of a newer release.
    Other,
}

impl RefusalCode {
    const ALL: [Self; 9] = [
        Self::Version,
        Self::OtherCluster,
        Self::WrongNode,
        Self::Removed,
        Self::NoCluster,
        Self::HasCluster,
        Self::Busy,
        Self::Certificate,
        Self::Other,
    ];

    fn from_word(word: &str) -> Self {
        Self::ALL.into_iter().find(|code| code.word() == word).unwrap_or(Self::Other)
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::OtherCluster => "other_cluster",
            Self::WrongNode => "wrong_node",
            Self::Removed => "removed",
            Self::NoCluster => "no_cluster",
            Self::HasCluster => "has_cluster",
            Self::Busy => "busy",
            Self::Certificate => "certificate",
            Self::Other => "other",
        }
    }
}

/// A node of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    #[serde(with = "as_text")]
    pub(super) cluster_id: ClusterId,
    pub(super) node_id: u64,
}

impl From<Me> for Place {
    fn from(me: Me) -> Self {
        Self { cluster_id: me.cluster_id, node_id: me.node_id }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of cluster {}", self.node_id, self.cluster_id)
    }
}

/// What the caller says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version_min: u16,
    pub(super) version_max: u16,
    /// A word, so that the purpose of a newer release can be read, and refused.
    pub(super) purpose: String,
    pub(super) caller: Place,
    /// The node that it wants; `None` when it asks who is there.
    #[serde(default)]
    pub(super) to: Option<u64>,
}

impl Hello {
    pub(super) fn new(me: Me, to: Option<u64>, purpose: Purpose) -> Self {
        Self {
            version_min: *VERSIONS.start(),
            version_max: *VERSIONS.end(),
            purpose: purpose.word().to_owned(),
            caller: me.into(),
            to,
        }
    }

    /// The newest version that both sides speak.
    pub(super) fn common_version(&self) -> Option<u16> {
        let newest = self.version_max.min(*VERSIONS.end());
        (newest >= self.version_min && VERSIONS.contains(&newest)).then_some(newest)
    }
}

/// What the node called says, to a hello and to an invitation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(super) enum Answer {
    Welcome(Welcome),
    Refused(Refusal),
}

/// The caller is let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) version: u16,
    /// Who answers; `None` when it belongs to no cluster.
    #[serde(default)]
    pub(super) place: Option<Place>,
    /// How it is reached. Only at the door.
    #[serde(default)]
    pub(super) member: Option<Member>,
}

/// The caller isn't let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    code: String,
    text: String,
}

impl Refusal {
    pub(super) fn new(code: RefusalCode, text: impl AsRef<str>) -> Self {
        Self { code: code.word().to_owned(), text: text.as_ref().chars().take(TEXT_CHARS_MAX).collect() }
    }

    pub(super) fn code(&self) -> RefusalCode {
        RefusalCode::from_word(&self.code)
    }

    /// What to tell people. It comes from outside: never more than a bounded line of it.
    pub(super) fn text(&self) -> String {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        self.text.chars().take(TEXT_CHARS_MAX).map(printable).collect()
    }
}

/// A node of no cluster gets its place. Follows a welcome at the door.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Invitation {
    pub(super) place: Place,
}

/// Why a message can't be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("the connection ended within the handshake: {0}")]
    Ended(#[from] io::Error),
    #[error("it doesn't speak kunci's peer protocol: it begins with {0:?}")]
    Foreign(String),
    #[error("it talks TLS")]
    Tls,
    #[error("a message of the handshake says it has {0} bytes, expected at most {BODY_BYTES_MAX}")]
    TooLong(usize),
    #[error("a message of the handshake is damaged: its checksum is another")]
    Damaged,
    #[error("a message of the handshake can't be read: {}", .0.escape_debug())]
    Content(String),
}

/// Reads one message, and not a byte more. The caller bounds the time.
pub(super) async fn read<T: DeserializeOwned>(from: &mut (impl AsyncRead + Unpin)) -> Result<T, Unreadable> {
    let mut magic = [0; MAGIC.len()];
    let mut so_far = 0;
    // Looked at as it arrives: a stranger may send less than this and then wait.
    while so_far < magic.len() {
        let read = from.read(&mut magic[so_far..]).await?;
        so_far += read;
        if magic[..so_far] != MAGIC[..so_far] {
            return Err(foreign(&magic[..so_far]));
        }
        if read == 0 {
            return Err(Unreadable::Ended(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    let length = from.read_u32().await? as usize;
    let checksum = from.read_u32().await?;
    if length > BODY_BYTES_MAX {
        return Err(Unreadable::TooLong(length));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).await?;
    if crc32fast::hash(&body) != checksum {
        return Err(Unreadable::Damaged);
    }
    serde_json::from_slice(&body)
        .map_err(|error| Unreadable::Content(error.to_string().chars().take(TEXT_CHARS_MAX).collect()))
}

/// Writes one message and sends it. The caller bounds the time.
pub(super) async fn write<T: Serialize>(to: &mut (impl AsyncWrite + Unpin), message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    if body.len() > BODY_BYTES_MAX {
        let what =
            format!("a message of the handshake has {} bytes, expected at most {BODY_BYTES_MAX}", body.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let mut bytes = Vec::with_capacity(MAGIC.len() + 8 + body.len());
    bytes.extend(MAGIC);
    bytes.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(crc32fast::hash(&body).to_be_bytes());
    bytes.extend(body);
    to.write_all(&bytes).await?;
    to.flush().await
}

/// Whether a connection that begins with this byte is a plain one of ours.
pub(super) fn begins_plain(first: u8) -> bool {
    first == MAGIC[0]
}

fn foreign(bytes: &[u8]) -> Unreadable {
    if bytes.first().is_some_and(|first| FIRST_BYTES_OF_TLS.contains(first)) {
        return Unreadable::Tls;
    }
    Unreadable::Foreign(String::from_utf8_lossy(bytes).into_owned())
}

/// A cluster id as people see it everywhere else.
mod as_text {
    use crate::data_folder::ClusterId;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(id: &ClusterId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ClusterId, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> Hello {
        let me = Me { cluster_id: "000102030405060708090a0b0c0d0e0f".parse().unwrap(), node_id: 2 };
        Hello::new(me, Some(3), Purpose::Calls)
    }

    async fn bytes_of<T: Serialize>(message: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, message).await.unwrap();
        bytes
    }

    /// What old and new releases must understand of each other; a change here cuts them off.
    #[tokio::test]
    async fn a_hello_looks_like_this_for_ever() {
        let bytes = bytes_of(&hello()).await;
        assert_eq!(&bytes[..8], b"kunci-p\n");
        assert_eq!(
            std::str::from_utf8(&bytes[16..]).unwrap(),
            r#"{"version_min":1,"version_max":1,"purpose":"calls","caller":{"cluster_id":"000102030405060708090a0b0c0d0e0f","node_id":2},"to":3}"#
        );
    }

    #[tokio::test]
    async fn what_a_newer_release_adds_is_passed_over() {
        let newer = serde_json::json!({
            "version_min": 1, "version_max": 9, "purpose": "gossip", "since": [1, 2], "zone": {"name": "b"},
            "caller": {"cluster_id": "000102030405060708090a0b0c0d0e0f", "node_id": 2, "name": "b"}
        });
        let read: Hello = read(&mut bytes_of(&newer).await.as_slice()).await.unwrap();
        assert_eq!(read, Hello { version_max: 9, purpose: "gossip".to_owned(), to: None, ..hello() });
        assert_eq!(read.common_version(), Some(1));
        assert_eq!(Purpose::from_word(&read.purpose), None);

        let refused =
            serde_json::json!({"answer": "refused", "code": "full_moon", "text": "wait\na week", "until": 7});
        let Answer::Refused(refusal) = super::read(&mut bytes_of(&refused).await.as_slice()).await.unwrap()
        else {
            panic!("it was refused");
        };
        assert_eq!((refusal.code(), refusal.text()), (RefusalCode::Other, "wait a week".to_owned()));
    }

    #[test]
    fn releases_talk_in_the_newest_version_that_both_know() {
        let common =
            |version_min, version_max| Hello { version_min, version_max, ..hello() }.common_version();
        assert_eq!(common(1, 1), Some(1));
        assert_eq!(common(0, 7), Some(1));
        assert_eq!(common(2, 7), None);
        assert_eq!(common(0, 0), None);
        assert_eq!(common(7, 0), None);
    }

    /// The stream goes on with another protocol after the handshake.
    #[tokio::test]
    async fn nothing_after_a_message_is_read() {
        let mut bytes = bytes_of(&hello()).await;
        bytes.extend(b"PRI * HTTP/2.0");
        let mut rest = bytes.as_slice();
        let _: Hello = read(&mut rest).await.unwrap();
        assert_eq!(rest, b"PRI * HTTP/2.0");
    }

    #[tokio::test]
    async fn what_is_no_message_is_told_in_words() {
        let words = async |bytes: &[u8]| read::<Hello>(&mut &*bytes).await.unwrap_err().to_string();
        assert_eq!(
            words(b"GET / HTTP/1.1\r\n").await,
            r#"it doesn't speak kunci's peer protocol: it begins with "GET / HT""#
        );
        assert_eq!(words(&[0x16, 3, 1]).await, "it talks TLS");
        assert_eq!(
            words(b"kunci-p\n\x00\x00\x10\x01\x00\x00\x00\x00").await,
            "a message of the handshake says it has 4097 bytes, expected at most 4096"
        );
        let mut damaged = bytes_of(&hello()).await;
        damaged[30] ^= 1;
        assert_eq!(words(&damaged).await, "a message of the handshake is damaged: its checksum is another");
        assert!(words(b"kunci-p\n\x00").await.starts_with("the connection ended within the handshake"));
        assert!(
            words(&bytes_of(&7).await).await.starts_with("a message of the handshake can't be read: invalid")
        );
    }

    #[tokio::test]
    async fn the_longest_refusal_and_the_longest_addresses_fit() {
        let refusal = Refusal::new(RefusalCode::Other, "\u{1}".repeat(10_000));
        bytes_of(&Answer::Refused(refusal)).await;

        let host = format!("{}:65535", "h".repeat(253));
        let member = Member {
            peer: host.clone(),
            http: host.clone(),
            native: host,
            zone: Some("z".repeat(256)),
            ..Member::default()
        };
        let welcome = Welcome { version: 1, place: Some(hello().caller), member: Some(member) };
        bytes_of(&Answer::Welcome(welcome)).await;
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            begins_right in any::<bool>(),
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let bytes = if begins_right { [MAGIC.as_slice(), &bytes].concat() } else { bytes };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            prop_assert!(runtime.block_on(read::<Hello>(&mut bytes.as_slice())).is_err());
        }
    }
}
