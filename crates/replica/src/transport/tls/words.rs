//! What goes wrong in TLS, in words for people.
//!
//! Owns: from an error of the library to what it means here and what to do. Never: decides anything.

use super::files::Files;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// The most names of a certificate that are told; a certificate may have thousands.
const NAMES_MAX: usize = 4;

/// To the side that called.
pub(super) fn to_caller(error: &Error, files: &Files) -> Option<String> {
    Some(match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "this node talks TLS to its peers and what answers there doesn't: give that node --peer-ca, \
             --peer-cert and --peer-key too, or check the address"
                .to_owned()
        }
        Error::InvalidCertificate(error) => of_certificate(error, files),
        Error::AlertReceived(alert) => of_alert(*alert, files)?,
        other => format!("TLS fails: {other}"),
    })
}

/// To the side that was called.
pub(super) fn to_called(error: &Error, files: &Files) -> Option<String> {
    Some(match error {
        Error::InvalidMessage(_) => format!("what it sends isn't TLS: {error}"),
        Error::NoCertificatesPresented => {
            "it shows no certificate: a peer needs one of the cluster's CA".to_owned()
        }
        Error::InvalidCertificate(error) => of_certificate(error, files),
        Error::AlertReceived(alert) => of_alert(*alert, files)?,
        other => format!("TLS fails: {other}"),
    })
}

/// The names of a certificate, as the library gives them.
pub(super) fn names(presented: &[String]) -> String {
    // `DnsName("node-1.kunci")`: the name alone says it.
    let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
    let mut told: Vec<String> = presented.iter().take(NAMES_MAX).map(bare).collect();
    if presented.len() > NAMES_MAX {
        told.push(format!("{} more", presented.len() - NAMES_MAX));
    }
    if told.is_empty() { "no name".to_owned() } else { told.join(", ") }
}

/// What is wrong with a certificate, without whose it is.
pub(super) fn fault(error: &CertificateError) -> String {
    match error {
        CertificateError::ExpiredContext { time, not_after } => {
            let seconds = time.as_secs().saturating_sub(not_after.as_secs());
            format!("expired {} ago by this machine's clock", lasting(seconds))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let seconds = not_before.as_secs().saturating_sub(time.as_secs());
            format!("is valid only in {} by this machine's clock", lasting(seconds))
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "isn't good for both sides: its extended key usage must be clientAuth and serverAuth".to_owned()
        }
        CertificateError::BadEncoding => "can't be read".to_owned(),
        other => format!("isn't accepted: {other}"),
    }
}

/// Whether it isn't of this CA. A CA of the same name shows in the signature only.
pub(super) fn is_of_other_ca(error: &CertificateError) -> bool {
    matches!(error, CertificateError::UnknownIssuer | CertificateError::BadSignature)
}

fn of_certificate(error: &CertificateError, files: &Files) -> String {
    match error {
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "its certificate is for {}, expected {}: check the address, or give that node the certificate of its \
             own id",
            names(presented),
            expected.to_str()
        ),
        error if is_of_other_ca(error) => format!(
            "its certificate isn't made by the CA in {}: all nodes of a cluster need certificates of one CA",
            files.ca.display()
        ),
        error => format!("its certificate {}: renew it and start that node again", fault(error)),
    }
}

/// `None` when the other side only closes.
fn of_alert(alert: AlertDescription, files: &Files) -> Option<String> {
    let cert = files.cert.display();
    Some(match alert {
        AlertDescription::CloseNotify | AlertDescription::UserCanceled => return None,
        AlertDescription::UnknownCA | AlertDescription::DecryptError => format!(
            "it doesn't accept this node's certificate in {cert}: it was made by another CA than that node's --peer-ca"
        ),
        AlertDescription::CertificateExpired => format!(
            "it doesn't accept this node's certificate in {cert}: by its clock it has expired or isn't valid yet; \
             renew it, or set the clock"
        ),
        AlertDescription::BadCertificate => format!(
            "it doesn't accept this node's certificate in {cert}: it isn't for the node that it expects"
        ),
        AlertDescription::UnsupportedCertificate => format!(
            "it doesn't accept this node's certificate in {cert}: its extended key usage must be clientAuth and \
             serverAuth"
        ),
        AlertDescription::CertificateRequired => {
            "it wants a certificate and this node has shown none".to_owned()
        }
        other => format!("it ends the TLS handshake: {other:?}"),
    })
}

/// A time in its largest unit: nobody renews a certificate by the second.
fn lasting(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
