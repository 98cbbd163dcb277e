//! Plays docs/conformance.txt against three nodes with real sockets.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cluster;
mod crowd;
mod player;
mod step;
mod weather;

use cluster::Cluster;
use player::Player;
use std::time::Duration;
use step::Scenario;
use tokio::time::{Instant, timeout};
use weather::Weather;

const SCRIPT: &str = include_str!("../../../../docs/conformance.txt");

/// Cases C01, C57, C63, C67, C68, C81, C85, C98, C99 and their kin, against the product and not a fake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_passes_the_conformance_script() {
    let cluster = Cluster::start().await;
    let scenarios = Scenario::read_all(SCRIPT);
    assert!(scenarios.len() >= 15, "{} scenarios", scenarios.len());
    // One scenario alone, by a part of its name.
    let only = std::env::var("KUNCI_SCENARIO").unwrap_or_default();
    let mut failures = Vec::new();
    for (number, scenario) in scenarios.iter().enumerate().filter(|(_, one)| one.name.contains(&only)) {
        let mut player = Player::new(&cluster, format!("s{number}"));
        if let Err(failure) = player.play(scenario).await {
            failures.push(format!("{}: {failure}", scenario.name));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// K11, S1: by one clock, no two clients believed in one lock at one time; afterwards nothing is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_two_clients_believe_in_one_lock_at_one_time() {
    const MEMBERS: usize = 40;
    const RESOURCES: usize = 6;
    let cluster = Cluster::start().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let end = Instant::now() + Duration::from_secs(12);
    let (stormy, calm) = (Weather::fine(), Weather::fine());
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let weather = if number % 2 == 0 { &stormy } else { &calm };
        let client = cluster.client(&format!("member-{number}"), weather).await;
        members.push((client.clone(), tokio::spawn(crowd::member(client, number, RESOURCES, end))));
    }
    crowd::storm(&cluster, &stormy, end).await;
    let mut beliefs = Vec::new();
    for (client, member) in members {
        beliefs.extend(timeout(Duration::from_secs(30), member).await.unwrap().unwrap());
        client.close().await;
    }
    assert!(beliefs.len() > 60, "only {} locks were had", beliefs.len());
    let overlaps = crowd::overlaps(beliefs);
    assert!(overlaps.is_empty(), "{overlaps:#?}");
    for resource in 0..RESOURCES {
        cluster.nobody_has_or_wants(&format!("crowd/{resource}")).await;
    }
    // The nodes have a few that come and go; 40 clients with three connections and a keeper each would be 160 and more.
    cluster::until("the clients' tasks are gone", async || tasks() < before + MEMBERS).await;
}
