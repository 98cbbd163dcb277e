//! The three files that a node's TLS comes from.
//!
//! Owns: reading them, and finding at the start what would otherwise show as refused connections on all sides.
//! Never: keeps the key in a form that can be printed.

use super::{check_name, words};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertificateError, Error, RootCertStore};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the TLS of this node can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read.
    #[error("read {what} {}: {error}", file.display())]
    Read {
        /// What it should be.
        what: &'static str,
        /// Where it is.
        file: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file isn't what it should be.
    #[error("{what} {}: {found}", file.display())]
    Unfit {
        /// What it should be.
        what: &'static str,
        /// Where it is.
        file: PathBuf,
        /// What is wrong with it, what is expected, and what to do.
        found: String,
    },
}

const CA: &str = "CA of the peers";
const CERT: &str = "peer certificate";
const KEY: &str = "peer key";

/// What the files hold, but for the key.
pub(super) struct Files {
    pub(super) ca: PathBuf,
    pub(super) cert: PathBuf,
    key: PathBuf,
    pub(super) roots: Arc<RootCertStore>,
    /// Of this node, then those between it and the CA. Never empty.
    pub(super) chain: Vec<CertificateDer<'static>>,
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of CA {}", self.cert.display(), self.ca.display())
    }
}

impl Files {
    pub(super) fn read(
        ca: &Path,
        cert: &Path,
        key: &Path,
    ) -> Result<(Self, PrivateKeyDer<'static>), TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(CA, ca)? {
            let unusable =
                |error: Error| unfit(CA, ca, format!("a certificate in it can't be used: {error}"));
            roots.add(certificate).map_err(unusable)?;
        }
        let chain = certificates(CERT, cert)?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
            pem::Error::NoItemsFound => unfit(
                KEY,
                key,
                "it holds no private key: expected one in PEM, without a passphrase".to_owned(),
            ),
            other => not_pem(KEY, key, other),
        })?;
        let (ca, cert, key) = (ca.to_owned(), cert.to_owned(), key.to_owned());
        Ok((Self { ca, cert, key, roots: Arc::new(roots), chain }, secret))
    }

    /// Checks this node's certificate as the other nodes will.
    pub(super) fn check(&self, provider: &Arc<CryptoProvider>) -> Result<(), TlsError> {
        let Some((own, between)) = self.chain.split_first() else {
            return Err(no_certificate(CERT, &self.cert));
        };
        let now = UnixTime::now();
        let parsed = ParsedCertificate::try_from(own).map_err(|error| self.unfit(error))?;
        let algorithms = provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, between, now, algorithms)
            .map_err(|error| self.unfit(error))?;
        let roots = Arc::clone(&self.roots);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
            .build()
            .map_err(|error| self.unfit_ca(&error))?;
        verifier.verify_client_cert(own, between, now).map_err(|error| self.unfit(error))?;
        Ok(())
    }

    /// Checks that this node's certificate has a name.
    pub(super) fn check_is_for(&self, name: &str) -> Result<(), TlsError> {
        let Some(own) = self.chain.first() else {
            return Err(no_certificate(CERT, &self.cert));
        };
        check_name(own, name).map_err(|found| {
            let found = format!("it is for {found}, and this node needs one for the DNS name {name}");
            unfit(CERT, &self.cert, found)
        })
    }

    /// What the library says against the certificate or its key.
    pub(super) fn unfit(&self, error: Error) -> TlsError {
        match error {
            Error::InconsistentKeys(_) => {
                let found = format!("it isn't the key of the certificate in {}", self.cert.display());
                unfit(KEY, &self.key, found)
            }
            Error::InvalidCertificate(error) if words::is_of_other_ca(&error) => {
                let found = format!("it isn't made by the CA in {}", self.ca.display());
                unfit(CERT, &self.cert, found)
            }
            Error::InvalidCertificate(error) => self.faulty(&error),
            other => unfit(CERT, &self.cert, format!("it can't be used with this key: {other}")),
        }
    }

    pub(super) fn unfit_ca(&self, error: &VerifierBuilderError) -> TlsError {
        unfit(CA, &self.ca, format!("it can't be used: {error}"))
    }

    fn faulty(&self, error: &CertificateError) -> TlsError {
        unfit(CERT, &self.cert, format!("it {}", words::fault(error)))
    }
}

fn certificates(what: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| not_pem(what, file, error))?;
    if found.is_empty() {
        return Err(no_certificate(what, file));
    }
    Ok(found)
}

fn no_certificate(what: &'static str, file: &Path) -> TlsError {
    unfit(what, file, "it holds no certificate: expected PEM, `-----BEGIN CERTIFICATE-----`".to_owned())
}

fn not_pem(what: &'static str, file: &Path, error: pem::Error) -> TlsError {
    match error {
        pem::Error::Io(error) => TlsError::Read { what, file: file.to_owned(), error },
        other => unfit(what, file, format!("it isn't PEM: {other}")),
    }
}

fn unfit(what: &'static str, file: &Path, found: String) -> TlsError {
    TlsError::Unfit { what, file: file.to_owned(), found }
}
