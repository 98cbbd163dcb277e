//! Lease ids, and other names, that begin with a dash.

use crate::support::{Server, kunci, run};

/// Ids of leases that nobody has: refused by the server, so it got them.
const LEASES: [&str; 3] = ["-hBCDEFGHIJKLMNOPQRSTQ", "--json-JKLMNOPQRSTUVWA", "_-CDEFGHIJKLMNOPQRSTUA"];

#[test]
fn a_lease_id_may_begin_with_a_dash_in_every_place_of_every_verb_through_either_door() {
    let server = Server::start();
    for door in ["--endpoints", "--url"] {
        for verb in ["renew", "release"] {
            for lease in LEASES {
                for place in [format!("--lease={lease}"), format!("--lease {lease}"), lease.to_owned()] {
                    let ran = run(kunci(&format!("{verb} r --json {place}")).args(server.option(door)));
                    assert_eq!(ran.code, Some(1), "{door} {verb} {place}: {ran:?}");
                    assert_eq!(ran.json()["reason"], "unknown_lease", "{door} {verb} {place}");
                }
            }
        }
    }
}

#[test]
fn an_owner_and_a_request_id_may_begin_with_a_dash_and_are_no_lease_id() {
    let server = Server::start();
    let owner = "-wBCDEFGHIJKLMNOPQRSTQ";
    for door in ["--endpoints", "--url"] {
        let words = format!("acquire r --owner {owner} --request-id -q{} --json", &door[2..3]);
        let ran = run(kunci(&words).args(server.option(door)));
        assert_eq!(ran.code, Some(0), "{door}: {ran:?}");
        let token = ran.json()["fencingToken"].clone();
        let words = format!("release r --token {token} --owner {owner}");
        let ran = run(kunci(&words).args(server.option(door)));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "r released\n"), "{door}: {ran:?}");
        let words = format!("cancel r --owner {owner} --request-id -another");
        let ran = run(kunci(&words).args(server.option(door)));
        assert_eq!(ran.code, Some(0), "{door}: {ran:?}");
    }
}
