//! What is found at the start in the files of a node.

use super::*;
use crate::transport::testing::{Ca, Made};
use rcgen::ExtendedKeyUsagePurpose;

fn words<T>(result: Result<T, TlsError>) -> String {
    result.map(drop).unwrap_err().to_string()
}

#[test]
fn good_files_are_taken_and_show_neither_key_nor_certificate() {
    let ca = Ca::new();
    let tls = ca.load(Made::for_node(1)).unwrap();
    let debug = format!("{tls:?}");
    assert!(debug.starts_with("TLS with /") && debug.ends_with("/ca.pem"), "{debug}");

    let security = PeerSecurity::Tls(tls);
    security.check_is_for(1).unwrap();
    assert!(
        words(security.check_is_for(2))
            .ends_with(".pem: it is for node-1.kunci, and this node needs one for the DNS name node-2.kunci")
    );
}

#[test]
fn a_missing_file_and_one_of_something_else_are_named() {
    let ca = Ca::new();
    let (cert, key) = ca.make(Made::for_node(1));
    let missing = ca.file().with_file_name("none.pem");
    assert_eq!(
        words(PeerTls::load(&missing, &cert, &key)),
        format!("read CA of the peers {}: No such file or directory (os error 2)", missing.display())
    );
    assert_eq!(
        words(PeerTls::load(&key, &cert, &key)),
        format!(
            "CA of the peers {}: it holds no certificate: expected PEM, `-----BEGIN CERTIFICATE-----`",
            key.display()
        )
    );
    assert_eq!(
        words(PeerTls::load(&ca.file(), &cert, &cert)),
        format!(
            "peer key {}: it holds no private key: expected one in PEM, without a passphrase",
            cert.display()
        )
    );
    let garbage = ca.file().with_file_name("garbage.pem");
    std::fs::write(&garbage, "-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----\n").unwrap();
    assert!(words(PeerTls::load(&garbage, &cert, &key)).contains("garbage.pem: it isn't PEM: "));
}

#[test]
fn a_key_of_another_certificate_is_named() {
    let ca = Ca::new();
    let ((cert, _), (_, key)) = (ca.make(Made::for_node(1)), ca.make(Made::for_node(2)));
    assert_eq!(
        words(PeerTls::load(&ca.file(), &cert, &key)),
        format!("peer key {}: it isn't the key of the certificate in {}", key.display(), cert.display())
    );
}

#[test]
fn a_certificate_that_others_would_refuse_is_refused_at_the_start() {
    let (ca, other) = (Ca::new(), Ca::new());
    let expired = words(ca.load(Made { not_after_year: 2001, ..Made::for_node(1) }));
    assert!(
        expired.contains(": it expired ") && expired.ends_with(" days ago by this machine's clock"),
        "{expired}"
    );

    let foreign = words(ca.load_believing(&other.file(), Made::for_node(1)));
    assert!(
        foreign.ends_with(&format!(": it isn't made by the CA in {}", other.file().display())),
        "{foreign}"
    );

    for usage in [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth] {
        let one_sided = words(ca.load(Made { usages: vec![usage], ..Made::for_node(1) }));
        assert!(
            one_sided.ends_with("its extended key usage must be clientAuth and serverAuth"),
            "{one_sided}"
        );
    }
}
