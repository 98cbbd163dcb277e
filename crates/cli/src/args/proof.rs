//! What proves that a lease is one's own.
//!
//! Owns: the lease id in each of its places, and owner and token in its stead. Never: checks one; the server does.

use crate::door::Needs;
use clap::Args;

/// Which lease, and by what right.
#[derive(Debug, Args)]
pub(crate) struct Proof {
    /// The lease id that the acquire answered; the same as --lease.
    #[arg(value_name = "LEASE", required_unless_present_any = ["lease_option", "token"])]
    lease: Option<String>,
    /// The lease id that the acquire answered.
    #[arg(long = "lease", value_name = "LEASE", allow_hyphen_values = true, conflicts_with = "lease")]
    lease_option: Option<String>,
    /// The fencing token, in place of the lease id, with --owner; only where the policy allows it, and for a renewal only
    /// over HTTP.
    #[arg(long, value_name = "N", requires = "owner", conflicts_with_all = ["lease", "lease_option"])]
    token: Option<u64>,
    /// The owner that acquired, with --token.
    #[arg(long, value_name = "OWNER", requires = "token", allow_hyphen_values = true)]
    owner: Option<String>,
}

impl Proof {
    /// Which doors can carry the proof in a renewal.
    pub(crate) fn needs_in_a_renewal(&self) -> Needs {
        if self.token.is_some() { Needs::Http("a renewal by --token and --owner") } else { Needs::Either }
    }

    /// The proof as the fields that a renew and a release carry.
    pub(crate) fn body(&self) -> serde_json::Value {
        match self.lease.as_ref().or(self.lease_option.as_ref()) {
            Some(lease) => serde_json::json!({ "leaseId": lease }),
            None => serde_json::json!({ "clientId": self.owner, "fencingToken": self.token }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Verb, with_plain_lease_ids};
    use clap::Parser as _;
    use std::ffi::OsString;

    fn proof(words: &str) -> serde_json::Value {
        let words = format!("kunci renew orders/42 {words}");
        let words = with_plain_lease_ids(words.split(' ').map(OsString::from));
        match Cli::try_parse_from(words).unwrap().verb {
            Verb::Renew(args) => args.proof.body(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_lease_id_may_begin_with_a_dash_wherever_it_stands() {
        for lease in ["-hBCDEFGHIJKLMNOPQRSTU", "--json-JKLMNOPQRSTUVWX", "plainCDEFGHIJKLMNOPQRS"] {
            let expected = serde_json::json!({ "leaseId": lease });
            assert_eq!(proof(lease), expected);
            assert_eq!(proof(&format!("--lease {lease}")), expected);
            assert_eq!(proof(&format!("--json --lease={lease}")), expected);
            assert_eq!(proof(&format!("{lease} --json")), expected);
        }
        assert_eq!(proof("--lease -abc"), serde_json::json!({ "leaseId": "-abc" }));
        let (owner, proven) = ("-hBCDEFGHIJKLMNOPQRSTU", proof("--token 7 --owner -hBCDEFGHIJKLMNOPQRSTU"));
        assert_eq!(proven, serde_json::json!({ "clientId": owner, "fencingToken": 7 }));
    }

    #[test]
    fn owner_and_token_stand_in_for_the_lease_id_only_together() {
        assert_eq!(proof("--token 7 --owner w"), serde_json::json!({ "clientId": "w", "fencingToken": 7 }));
        for words in ["", "--token 7", "--owner w", "--token 7 --owner w --lease x"] {
            let all = format!("kunci renew orders/42 {words}");
            assert!(Cli::try_parse_from(all.split_whitespace()).is_err(), "{words}");
        }
    }
}
