//! TLS between nodes: mutual, with a CA of one's own.
//!
//! Owns: the certificate of this node, whom it believes, and which name a node's certificate must have. Never:
//! reads a word of the handshake that goes over it.

mod files;
#[cfg(test)]
mod tests;
mod words;

use super::links::BoxedStream;
use files::Files;
use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, ClientConfig, ServerConfig};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub use files::TlsError;

/// How connections between nodes are protected.
#[derive(Clone, Debug)]
pub enum PeerSecurity {
    /// Not at all: for loopback, and for networks that one trusts as much as the machine.
    Plain,
    /// By TLS, with certificates on both sides.
    Tls(PeerTls),
}

impl PeerSecurity {
    /// Checks that this node can show itself as `node_id`.
    ///
    /// # Errors
    /// When its certificate is for another name.
    pub(crate) fn check_is_for(&self, node_id: u64) -> Result<(), TlsError> {
        match self {
            Self::Plain => Ok(()),
            Self::Tls(tls) => tls.inner.files.check_is_for(&name_of(node_id)),
        }
    }
}

/// The certificate of this node, its key, and the CA that makes the certificates of all. A clone is another handle
/// to the same.
#[derive(Clone)]
pub struct PeerTls {
    inner: Arc<Inner>,
}

struct Inner {
    files: Files,
    connector: TlsConnector,
    acceptor: TlsAcceptor,
}

impl fmt::Debug for PeerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS with {}", self.inner.files)
    }
}

impl PeerTls {
    /// Reads three files of PEM: the CA (one certificate or more), the certificate of this node (then those between
    /// it and the CA, if any) and its key; and checks that they fit together.
    ///
    /// The certificate must be good for clients and servers, and for the DNS name `node-<id>.kunci` of this node. A
    /// renewed one is taken up at the next start.
    ///
    /// # Errors
    /// Says which file, what is wrong with it, and what is expected.
    pub fn load(ca: &Path, cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let (files, secret) = Files::read(ca, cert, key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        files.check(&provider)?;
        Self::over(files, secret, provider)
    }

    fn over(
        files: Files,
        secret: PrivateKeyDer<'static>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        // No session is ever resumed: each connection shows a certificate of now, and there is no cache to fill.
        let versions = &[&rustls::version::TLS13];
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| files.unfit(error))?
            .with_root_certificates(Arc::clone(&files.roots))
            .with_client_auth_cert(files.chain.clone(), secret.clone_key())
            .map_err(|error| files.unfit(error))?;
        client.resumption = Resumption::disabled();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&files.roots), Arc::clone(&provider))
                .build()
                .map_err(|error| files.unfit_ca(&error))?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| files.unfit(error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(files.chain.clone(), secret)
            .map_err(|error| files.unfit(error))?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let (connector, acceptor) = (Arc::new(client).into(), Arc::new(server).into());
        Ok(Self { inner: Arc::new(Inner { files, connector, acceptor }) })
    }

    /// Without the checks, as a node that was started long ago.
    #[cfg(test)]
    pub(super) fn load_unchecked(ca: &Path, cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let (files, secret) = Files::read(ca, cert, key)?;
        Self::over(files, secret, Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
    }

    /// The calling side. The other must show a certificate for node `to`.
    pub(super) async fn connect(&self, stream: BoxedStream, to: u64) -> io::Result<BoxedStream> {
        let name = ServerName::try_from(name_of(to)).map_err(io::Error::other)?;
        let stream = self.inner.connector.connect(name, stream).await?;
        Ok(Box::new(stream))
    }

    /// The side that is called. Gives the stream back when there is no agreement, so that the other side can read
    /// why.
    pub(super) async fn accept(
        &self,
        stream: BoxedStream,
    ) -> Result<(BoxedStream, Shown), (io::Error, BoxedStream)> {
        let stream = self.inner.acceptor.accept(stream).into_fallible().await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
        Ok((Box::new(stream), Shown { certificate }))
    }

    /// What a broken TLS connection that this node made means, if it broke over TLS.
    pub(super) fn explain_as_caller(&self, error: &io::Error) -> Option<String> {
        words::to_caller(tls_error(error)?, &self.inner.files)
    }

    /// The same for one that another node made.
    pub(super) fn explain_as_called(&self, error: &io::Error) -> Option<String> {
        words::to_called(tls_error(error)?, &self.inner.files)
    }
}

/// What a calling node has shown, and its CA has vouched for.
pub(super) struct Shown {
    certificate: Option<CertificateDer<'static>>,
}

impl Shown {
    /// Checks that the other node may say that it is `node_id`.
    ///
    /// # Errors
    /// Says which names its certificate has.
    pub(super) fn check_is(&self, node_id: u64) -> Result<(), String> {
        let name = name_of(node_id);
        let Some(certificate) = &self.certificate else {
            return Err(format!("it shows no certificate, expected one for {name}"));
        };
        check_name(certificate, &name).map_err(|found| {
            format!("its certificate is for {found}, and as node {node_id} it needs one for {name}")
        })
    }
}

/// The DNS name that the certificate of a node has.
fn name_of(node_id: u64) -> String {
    format!("node-{node_id}.kunci")
}

/// Checks a name; otherwise tells those that are there.
fn check_name(certificate: &CertificateDer<'_>, name: &str) -> Result<(), String> {
    let server_name = ServerName::try_from(name).map_err(|error| error.to_string())?;
    let parsed = ParsedCertificate::try_from(certificate).map_err(|error| error.to_string())?;
    verify_server_name(&parsed, &server_name).map_err(|error| match error {
        rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            words::names(&presented)
        }
        other => other.to_string(),
    })
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
