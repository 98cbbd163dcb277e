//! Members that prove to each other who they are.

use crate::support::{Single, acquire, done, refused, until, voters};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};

/// An authority of a test's own.
struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder: folder.to_owned(), issuer: Issuer::new(params, key) }
    }

    /// Starts a node whose certificate is made out to this id.
    fn start(&self, name: &str, node_id: u64) -> Single {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![format!("node-{node_id}.kunci")]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let cert = params.signed_by(&key, &self.issuer).unwrap().pem();
        let file = |end: &str, text: &str| {
            let path = self.folder.join(format!("{name}.{end}"));
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let (cert, key) = (file("pem", &cert), file("key", &key.serialize_pem()));
        let ca = self.folder.join("ca.pem").display().to_string();
        Single::start(&self.folder, name, &["--peer-ca", &ca, "--peer-cert", &cert, "--peer-key", &key])
    }
}

/// A member's certificate says which one it is; who has none, or another's, isn't let in.
#[test]
fn only_a_node_whose_certificate_names_its_id_joins() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    let a = authority.start("a", 1);
    done(&format!("cluster init --url {}", a.url()));

    let plain = Single::start(folder.path(), "plain", &[]);
    refused(69, &format!("cluster add {} --patience 0s --url {}", plain.peer, a.url()));
    let other = authority.start("other", 7);
    let said = refused(69, &format!("cluster add {} --patience 0s --url {}", other.peer, a.url()));
    assert!(said.contains("node-2.kunci"), "{said}");
    assert_eq!(voters(&a.cluster()), [1]);

    let b = authority.start("b", 2);
    assert_eq!(done(&format!("cluster add {} --url {}", b.peer, a.url())), "node 2 is a voter\n");
    acquire(b.http(), "r", "w");
}

#[test]
fn a_founder_whose_certificate_is_anothers_says_so_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Authority::new(folder.path()).start("a", 5);

    let said = refused(69, &format!("cluster init --patience 0s --url {}", node.url()));

    assert!(said.contains("node-1.kunci"), "{said}");
    let ended = until("it ends", || node.node.ended());
    assert_eq!(ended.code(), Some(1), "{}", node.node.words());
}
