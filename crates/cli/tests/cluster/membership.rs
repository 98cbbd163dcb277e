//! `kunci cluster`, against real nodes.

use crate::node::free_port;
use crate::proxy::Proxy;
use crate::support::{Single, acquire, done, holder, kunci, refused, until, voters};
use serde_json::Value;

/// Three nodes that are one cluster.
fn three(folder: &std::path::Path) -> [Single; 3] {
    let all = ["a", "b", "c"].map(|name| Single::start(folder, name, &["--zone", name]));
    let url = all[0].url();
    done(&format!("cluster init --url {url}"));
    done(&format!("cluster add {} --url {url}", all[1].peer));
    done(&format!("cluster add {} --url {url}", all[2].peer));
    all
}

/// Cases C131 and C140: each verb does what it says, and everybody is told the addresses that each node names.
#[test]
fn a_cluster_is_formed_grown_moved_and_shrunk_by_its_verbs() {
    let folder = tempfile::tempdir().unwrap();
    let a = Single::start(folder.path(), "a", &["--zone", "x", "--advertise-native", "native.example:1"]);
    let b = Single::start(folder.path(), "b", &["--zone", "x"]);
    let c = Single::start(folder.path(), "c", &["--zone", "z"]);
    assert!(done(&format!("cluster status --url {}", a.url())).contains("belongs to no cluster yet"));

    let formed: Value =
        serde_json::from_str(&done(&format!("cluster init --json --url {}", a.url()))).unwrap();
    assert_eq!(formed["clusterId"], a.cluster()["clusterId"]);
    assert_eq!(done(&format!("cluster add {} --url {}", b.peer, a.url())), "node 2 is a voter\n");
    assert_eq!(done(&format!("cluster join {} --url {}", a.url(), c.url())), "node 3 is a voter\n");
    // Repeated, each finds what it wanted.
    assert_eq!(done(&format!("cluster join {} --url {}", a.http(), c.url())), "node 3 is a voter\n");
    assert_eq!(done(&format!("cluster add {} --url {}", b.peer, c.url())), "node 2 is a voter\n");

    let shown = done(&format!("cluster status --url {}", c.url()));
    assert!(shown.contains("native.example:1") && shown.contains(&b.peer), "{shown}");
    assert!(shown.contains("warning: ") && shown.contains('x'), "two voters share a zone: {shown}");
    acquire(c.http(), "r", "w");

    assert_eq!(done(&format!("cluster transfer 2 --url {}", c.url())), "node 2 leads\n");
    assert_eq!(until("who leads is known", || a.cluster()["leader"].as_u64()), 2);
    assert_eq!(done(&format!("cluster remove 3 --url {}", a.url())), "node 3 is removed\n");
    assert_eq!(done(&format!("cluster remove 3 --url {}", a.url())), "node 3 was removed before\n");
    until("c is gone", || (voters(&a.cluster()) == [1, 2]).then_some(()));
    assert_eq!(until("it is known who holds r", || holder(a.http(), "r")).0, "w");
    assert!(refused(1, &format!("cluster transfer 3 --url {} --patience 0s", a.url())).contains("node 3"));
}

/// Cases C40 and C86: a removed node says so, refuses, and can't be taken in again with its data.
#[test]
fn a_removed_node_stays_up_refuses_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let [a, _b, c] = three(folder.path());

    done(&format!("cluster remove 3 --url {}", a.url()));

    until("it says so", || c.node.words().contains("was removed from cluster").then_some(()));
    assert!(c.node.words().contains("empty"), "{}", c.node.words());
    assert_eq!(c.node.call("GET", "/readyz", None).unwrap().0, 503);
    assert_eq!(c.node.call("GET", "/livez", None).unwrap().0, 200);
    let again = refused(1, &format!("cluster add {} --url {}", c.peer, a.url()));
    assert!(again.contains("removed") && again.contains("empty"), "{again}");
}

#[test]
fn tokens_of_a_new_cluster_begin_above_the_floor() {
    let folder = tempfile::tempdir().unwrap();
    let a = Single::start(folder.path(), "a", &[]);

    done(&format!("cluster init --token-floor 1000000 --url {}", a.url()));

    assert!(acquire(a.http(), "r", "w")["fencingToken"].as_u64() > Some(1_000_000));
    let twice = refused(1, &format!("cluster init --url {}", a.url()));
    assert!(twice.contains("belongs to cluster") && twice.contains("kunci cluster status"), "{twice}");
}

/// Two operators, or a script that ran twice: there is one cluster all the same.
#[test]
fn of_two_wishes_to_form_a_cluster_one_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let a = Single::start(folder.path(), "a", &[]);

    let line = format!("cluster init --patience 0s --url {}", a.url());
    let codes = std::thread::scope(|scope| {
        let wishes = [0; 4].map(|_| scope.spawn(|| kunci(&line).status.code()));
        wishes.map(|wish| wish.join().unwrap())
    });

    let granted = codes.iter().filter(|code| **code == Some(0)).count();
    assert_eq!(granted, 1, "{codes:?}");
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 1))), "{codes:?}");
}

/// A leader can be removed like any other member: leadership moves first.
#[test]
fn the_member_that_leads_is_removed_too() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, c] = three(folder.path());
    acquire(a.http(), "r", "w");

    assert_eq!(done(&format!("cluster remove 1 --url {}", b.url())), "node 1 is removed\n");

    until("a is gone", || (voters(&c.cluster()) == [2, 3]).then_some(()));
    until("a says so", || a.node.words().contains("was removed from cluster").then_some(()));
    assert_eq!(until("it is known who holds r", || holder(c.http(), "r")).0, "w");
}

/// Case C131: an address where nobody is costs nothing, and the right one can be added after it.
#[test]
fn adding_a_wrong_address_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let a = Single::start(folder.path(), "a", &[]);
    done(&format!("cluster init --url {}", a.url()));

    let nobody = format!("127.0.0.1:{}", free_port());
    let said = refused(69, &format!("cluster add {nobody} --patience 0s --url {}", a.url()));
    assert!(said.contains(&nobody), "{said}");
    // Its own HTTP door isn't a peer door either.
    refused(69, &format!("cluster add {} --patience 0s --url {}", a.http(), a.url()));
    assert!(refused(2, &format!("cluster add nowhere --url {}", a.url())).contains("host:port"));

    assert_eq!(voters(&a.cluster()), [1]);
    acquire(a.http(), "r", "w");
    let b = Single::start(folder.path(), "b", &[]);
    assert_eq!(done(&format!("cluster add {} --url {}", b.peer, a.url())), "node 2 is a voter\n");
}

/// Case C86: data of another cluster is refused, from either side.
#[test]
fn a_node_of_another_cluster_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (a, other) = (Single::start(folder.path(), "a", &[]), Single::start(folder.path(), "b", &[]));
    done(&format!("cluster init --url {}", a.url()));
    done(&format!("cluster init --url {}", other.url()));

    let added = refused(1, &format!("cluster add {} --url {}", other.peer, a.url()));
    let joined = refused(1, &format!("cluster join {} --url {}", a.url(), other.url()));

    let its_id = other.cluster()["clusterId"].as_str().unwrap().to_owned();
    assert!(added.contains(&its_id) && joined.contains(&its_id), "{added}{joined}");
    assert_eq!(voters(&a.cluster()), [1]);
}

/// Cases C38 and C131: a learner that never catches up holds up other changes, not the locks, and can be removed.
#[test]
fn while_one_change_is_under_way_a_second_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let a = Single::start(folder.path(), "a", &[]);
    done(&format!("cluster init --url {}", a.url()));
    let proxy = Proxy::start();
    let slow = Single::start(folder.path(), "b", &["--advertise-peer", proxy.address()]);
    proxy.leads_to(&slow.peer);
    let c = Single::start(folder.path(), "c", &[]);

    let added = done(&format!("cluster add {} --no-wait --url {}", proxy.address(), a.url()));
    assert!(added.starts_with("node 2 is a learner"), "{added}");
    let second = refused(1, &format!("cluster add {} --url {}", c.peer, a.url()));

    assert!(second.contains("one change of the members at a time"), "{second}");
    assert_eq!(voters(&a.cluster()), [1]);
    acquire(a.http(), "r", "w");
    done(&format!("cluster remove 2 --url {}", a.url()));
    assert_eq!(done(&format!("cluster add {} --url {}", c.peer, a.url())), "node 3 is a voter\n");
}

/// A node that is lost for good is replaced in one step, by one with a new id.
#[test]
fn a_lost_node_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, c] = three(folder.path());
    acquire(b.http(), "r", "w");
    c.node.kill();
    let new = Single::start(folder.path(), "d", &[]);

    let replaced = done(&format!("cluster replace 3 {} --url {}", new.peer, a.url()));

    assert_eq!(replaced, "node 4 is a voter, in the place of node 3\n");
    until("the new one sees it too", || (voters(&new.cluster()) == [1, 2, 4]).then_some(()));
    assert_eq!(until("it is known who holds r", || holder(new.http(), "r")).0, "w");
}
