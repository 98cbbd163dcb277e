//! Streams in memory and certificates of the moment, for tests.

use super::links::{Arrival, BoxedStream, Doorway, Links};
use super::tls::{PeerTls, TlsError};
use futures::future::BoxFuture;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How much is on the way in one direction.
const BYTES_ON_THE_WAY: usize = 64 << 10;

/// The way out to one door, whatever the address.
#[derive(Clone)]
pub(crate) struct Wire {
    to: mpsc::UnboundedSender<io::Result<Arrival>>,
}

/// The door at its end.
pub(crate) struct WireEnd {
    arrivals: mpsc::UnboundedReceiver<io::Result<Arrival>>,
}

pub(crate) fn wire() -> (Wire, WireEnd) {
    let (to, arrivals) = mpsc::unbounded_channel();
    (Wire { to }, WireEnd { arrivals })
}

impl Wire {
    /// A connection without a handshake.
    pub(crate) fn raw(&self) -> BoxedStream {
        let (here, there) = tokio::io::duplex(BYTES_ON_THE_WAY);
        let arrival = Arrival { stream: Box::new(there), from: "a test".to_owned() };
        self.to.send(Ok(arrival)).unwrap();
        Box::new(here)
    }

    /// Lets the door fail to take a connection.
    pub(crate) fn fail(&self, error: io::Error) {
        self.to.send(Err(error)).unwrap();
    }

    pub(crate) fn links(&self) -> Arc<dyn Links> {
        Arc::new(self.clone())
    }
}

impl Links for Wire {
    fn connect<'a>(&'a self, _address: &'a str) -> BoxFuture<'a, io::Result<BoxedStream>> {
        Box::pin(async { Ok(self.raw()) })
    }
}

impl Doorway for WireEnd {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Arrival>> {
        Box::pin(async {
            match self.arrivals.recv().await {
                Some(arrival) => arrival,
                None => std::future::pending().await,
            }
        })
    }
}

/// A CA, and the folder with all files that it made.
pub(crate) struct Ca {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// What a certificate is like.
pub(crate) struct Made {
    pub(crate) names: Vec<String>,
    pub(crate) not_after_year: i32,
    pub(crate) usages: Vec<ExtendedKeyUsagePurpose>,
}

impl Made {
    /// As it should be.
    pub(crate) fn for_node(node_id: u64) -> Self {
        Self {
            names: vec![format!("node-{node_id}.kunci")],
            not_after_year: 4000,
            usages: vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth],
        }
    }
}

impl Ca {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = rcgen::date_time_ymd(4000, 1, 1);
        let key = KeyPair::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Makes a certificate and its key; where they are.
    pub(crate) fn make(&self, made: Made) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let name = made.names.join("+");
        let mut params = CertificateParams::new(made.names).unwrap();
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(made.not_after_year, 1, 1);
        params.extended_key_usages = made.usages;
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let files =
            (self.folder.path().join(format!("{name}.pem")), self.folder.path().join(format!("{name}.key")));
        std::fs::write(&files.0, cert.pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        files
    }

    /// What a node is started with that has this certificate and believes this CA.
    pub(crate) fn load(&self, made: Made) -> Result<PeerTls, TlsError> {
        self.load_believing(&self.file(), made)
    }

    /// The same, believing the CA in another file.
    pub(crate) fn load_believing(&self, ca: &Path, made: Made) -> Result<PeerTls, TlsError> {
        let (cert, key) = self.make(made);
        PeerTls::load(ca, &cert, &key)
    }
}
