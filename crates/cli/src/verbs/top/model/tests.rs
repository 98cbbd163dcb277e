//! What is made of nodes that answer, don't, or disagree.

use super::*;
use crate::verbs::top::told;
use serde_json::json;

fn at(ms: u64) -> Moment {
    Moment::at(Duration::from_millis(ms))
}

/// Three nodes as node `id` sees them; `leader` 0 is none.
pub(in crate::verbs::top) fn said_by(id: u64, leader: u64) -> Cluster {
    let member = |member: u64| Member {
        id: member,
        role: if member == leader { "leader" } else { "follower" }.to_owned(),
        http: format!("n{member}:7400"),
        zone: "a".to_owned(),
        healthy: true,
        disk: "ok".to_owned(),
        applied_index: 100 - member,
    };
    Cluster {
        id: Some("c1".to_owned()),
        node_id: Some(id),
        leader: Some(leader).filter(|leader| *leader > 0),
        members: (1..=3).map(member).collect(),
        warnings: Vec::new(),
        revision: 7,
    }
}

pub(in crate::verbs::top) fn answers(model: &mut Model, ms: u64, id: u64, leader: u64, term: u64) {
    let scrape = Scrape::read(&format!("kunci_term {term}\nkunci_disk_free_bytes 1e9\nkunci_leases {id}"));
    let told = Ok((said_by(id, leader), scrape));
    model.take(at(ms), at(ms), News::Node { url: format!("http://n{id}:7400"), told });
}

fn fails(model: &mut Model, ms: u64, id: u64) {
    let told = Err("connection refused".to_owned());
    model.take(at(ms), at(ms), News::Node { url: format!("http://n{id}:7400"), told });
}

/// Asks the first node; it tells of the others.
pub(in crate::verbs::top) fn three(ms: u64) -> Model {
    let mut model = Model::new(&["http://n1:7400".to_owned()], "", Duration::from_secs(1));
    for id in 1..=3 {
        answers(&mut model, ms, id, 1, 5);
    }
    model
}

pub(in crate::verbs::top) fn lock(name: &str, remaining: u64) -> Lock {
    told::lock(&json!({
        "resource": name, "held": true, "holder": "w", "fencingToken": 4, "remainingMs": remaining, "ttlMs": 30_000,
        "heldMs": 61_000, "queueLength": 2,
    }))
}

fn roles(model: &Model, ms: u64) -> Vec<(u64, String, bool)> {
    let rows = model.rows(at(ms)).into_iter();
    rows.map(|row| (row.id.unwrap(), row.role, row.reach == Reach::Yes)).collect()
}

#[test]
fn the_other_nodes_are_found_from_one() {
    let model = three(0);
    assert_eq!(model.urls(), ["http://n1:7400", "http://n2:7400", "http://n3:7400"]);
    assert_eq!(model.leader(at(0)), Some(1));
    assert_eq!(model.alarms(at(0)), [""; 0]);
    let lags: Vec<_> = model.rows(at(0)).iter().map(|row| row.lag).collect();
    assert_eq!(lags, [Some(0), Some(1), Some(2)]);
}

#[test]
fn a_node_that_was_named_by_another_address_is_asked_once() {
    let mut model = Model::new(&["http://localhost:1".to_owned()], "", Duration::from_secs(1));
    let told = Ok((said_by(1, 1), Scrape::default()));
    model.take(at(0), at(0), News::Node { url: "http://localhost:1".to_owned(), told });
    assert_eq!(model.urls(), ["http://localhost:1", "http://n2:7400", "http://n3:7400"]);
}

#[test]
fn just_those_are_asked_that_were_named_when_there_are_several() {
    let urls = ["http://n1:7400", "http://n2:7400"].map(str::to_owned);
    let mut model = Model::new(&urls, "", Duration::from_secs(1));
    answers(&mut model, 0, 1, 1, 5);
    assert_eq!(model.urls(), urls);
    assert_eq!(model.rows(at(0)).len(), 3, "the third is shown, as the others tell of it");
}

#[test]
fn a_leader_that_is_gone_is_seen_with_its_successor() {
    let mut model = three(0);
    fails(&mut model, 1_000, 1);
    answers(&mut model, 1_000, 2, 0, 5);
    answers(&mut model, 1_000, 3, 0, 5);
    let alarms = model.alarms(at(1_000));
    assert_eq!(alarms[0], "NO LEADER: nothing is granted, renewed or released");
    assert_eq!(alarms[1], "node 1 (n1:7400) is unreachable for 0ms: connection refused");

    answers(&mut model, 2_000, 2, 2, 6);
    answers(&mut model, 2_000, 3, 2, 6);
    let expected = [(1, "follower", false), (2, "leader", true), (3, "follower", true)];
    let expected = expected.map(|(id, role, reached)| (id, role.to_owned(), reached));
    assert_eq!(roles(&model, 2_000), expected);
    assert_eq!(model.change, Some(Change { at: at(2_000), from: 1, to: 2 }));
    let alarms = model.alarms(at(4_000)).join("\n");
    assert!(alarms.contains("node 2 leads since 2s ago; before it node 1"), "{alarms}");
    assert!(alarms.contains("unreachable for 3s"), "{alarms}");
    assert_eq!(model.ways(at(2_000))[0], "http://n2:7400");
    assert_eq!(model.dead(), ["http://n1:7400"]);
}

#[test]
fn a_deposed_leader_that_still_answers_is_not_believed() {
    let mut model = three(0);
    answers(&mut model, 1_000, 1, 1, 5);
    answers(&mut model, 1_000, 2, 2, 6);
    answers(&mut model, 1_000, 3, 2, 6);
    assert_eq!(model.leader(at(1_000)), Some(2));
    let alarms = model.alarms(at(1_000)).join("\n");
    let said = "the nodes disagree on who leads: node 1 says node 1, node 2 says node 2, node 3 says node 2";
    assert!(alarms.contains(said), "{alarms}");
    assert_eq!(roles(&model, 1_000)[0].1, "follower");
}

#[test]
fn old_data_is_called_old() {
    let mut model = three(0);
    model.take(
        at(0),
        at(0),
        News::Locks { prefix: String::new(), told: Ok((vec![lock("a", 30_000)], false)) },
    );
    let later = model.alarms(at(10_000));
    assert_eq!(later[0], "NO NODE ANSWERS: what is shown is old");
    assert!(later[1].contains("node 1 (n1:7400) hasn't answered for 10s"), "{later:?}");

    for id in 1..=3 {
        answers(&mut model, 10_000, id, 1, 5);
    }
    model.take(
        at(9_000),
        at(10_000),
        News::Locks { prefix: String::new(), told: Err("no quorum".to_owned()) },
    );
    assert_eq!(model.alarms(at(10_000)), ["the locks are as of 10s ago: no quorum"]);
    assert_eq!(model.locks.value.len(), 1, "what was read last is still shown");
}

#[test]
fn a_remaining_time_counts_down_from_the_question() {
    let mut model = three(0);
    let locks = vec![lock("late", 30_000), lock("soon", 9_000), lock("sooner", 5_000)];
    model.take(at(1_000), at(1_400), News::Expiring(Ok(locks)));
    let soon: Vec<_> =
        model.expiring(at(3_000)).iter().map(|(lock, left)| (lock.resource.clone(), *left)).collect();
    assert_eq!(soon, [("sooner".to_owned(), 3_000), ("soon".to_owned(), 7_000)]);
    assert_eq!(model.expiring(at(60_000)).first().map(|(_, left)| *left), Some(0));
}

#[test]
fn a_short_lease_that_was_just_renewed_is_not_called_expiring() {
    let mut model = three(0);
    let short = |name: &str, left| Lock { ttl_ms: Some(5_000), ..lock(name, left) };
    model.take(at(0), at(0), News::Expiring(Ok(vec![short("fresh", 4_900), short("late", 1_500)])));
    let soon: Vec<_> = model.expiring(at(0)).iter().map(|(lock, _)| lock.resource.clone()).collect();
    assert_eq!(soon, ["late"]);
}

#[test]
fn an_answer_to_an_earlier_search_is_not_shown() {
    let mut model = three(0);
    model.search("b/");
    model.take(
        at(0),
        at(1),
        News::Locks { prefix: "a/".to_owned(), told: Ok((vec![lock("a/1", 1)], false)) },
    );
    assert!(model.locks.value.is_empty());
    model.open(Some("x".to_owned()));
    let other = News::Detail { resource: "y".to_owned(), told: Ok(Detail::default()) };
    model.take(at(0), at(1), other);
    assert_eq!(model.detail.as_ref().and_then(|(_, read)| read.asked_at), None);
}

#[test]
fn events_are_kept_newest_first_and_once_and_not_without_bound() {
    let mut model = three(0);
    let event = |revision| News::Event(Event { revision, ..Event::default() });
    for revision in (1..=2_000).chain(1_990..=2_000) {
        model.take(at(0), at(0), event(revision));
    }
    assert_eq!((model.events.len(), model.events[0].revision, model.events[1].revision), (500, 2_000, 1_999));
}

#[test]
fn a_node_of_no_cluster_is_told_apart_from_one_without_a_leader() {
    let mut model = Model::new(&["http://n1:7400".to_owned()], "", Duration::from_secs(1));
    let new = told::cluster(
        &json!({"clusterId": null, "leader": null, "nodeId": null, "nodes": [{"id": 0, "role": "new"}]}),
    );
    model.take(
        at(0),
        at(0),
        News::Node { url: "http://n1:7400".to_owned(), told: Ok((new, Scrape::default())) },
    );
    assert!(model.alarms(at(0))[0].starts_with("NO CLUSTER"));
    assert_eq!(model.urls(), ["http://n1:7400"]);
}

#[test]
fn a_removed_member_is_asked_no_more() {
    let mut model = three(0);
    let mut two = said_by(1, 1);
    two.members.pop();
    model.take(
        at(1),
        at(1),
        News::Node { url: "http://n1:7400".to_owned(), told: Ok((two, Scrape::default())) },
    );
    assert_eq!(model.urls(), ["http://n1:7400", "http://n2:7400"]);
}

#[test]
fn numbers_of_the_nodes_are_put_together_as_the_page_on_metrics_says() {
    let mut model = three(0);
    for (ms, count) in [(1_000, 0), (3_000, 20)] {
        for id in 1..=3 {
            let series = |outcome, count| {
                let of = format!("door=\"http\",op=\"acquire\",outcome=\"{outcome}\"");
                format!(
                    "kunci_request_duration_seconds_bucket{{{of},le=\"0.01\"}} {count}\n\
                     kunci_request_duration_seconds_bucket{{{of},le=\"+Inf\"}} {count}\n\
                     kunci_request_duration_seconds_count{{{of}}} {count}\n"
                )
            };
            let text =
                format!("{}{}kunci_leases 9\n", series("granted", count), series("unavailable", count / 10));
            let told = Ok((said_by(id, 1), Scrape::read(&text)));
            model.take(at(ms), at(ms), News::Node { url: format!("http://n{id}:7400"), told });
        }
    }
    let totals = model.totals(at(3_000));
    // From nothing at 0 s.
    assert_eq!(totals.acquire.per_second, Some(22.0));
    assert_eq!(totals.failing, Some(2.0));
    assert_eq!(totals.held, Some(9.0), "every node counts the same leases");
    assert!(totals.acquire.p99_ms.is_some_and(|ms| ms > 9.0 && ms <= 10.0));
}
