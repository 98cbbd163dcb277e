//! Plays docs/conformance.txt against three nodes with real sockets.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cluster;
mod player;
mod proxy;
mod step;

use cluster::Cluster;
use player::Player;
use step::Scenario;

const SCRIPT: &str = include_str!("../../../../docs/conformance.txt");

/// Cases C01, C57, C63, C67, C68, C81, C85, C98, C99 and their kin, against the product and not a fake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_passes_the_conformance_script() {
    let cluster = Cluster::start().await;
    let scenarios = Scenario::read_all(SCRIPT);
    assert!(scenarios.len() >= 15, "{} scenarios", scenarios.len());
    let mut failures = Vec::new();
    for (number, scenario) in scenarios.iter().enumerate() {
        let mut player = Player::new(&cluster, format!("s{number}"));
        if let Err(failure) = player.play(scenario).await {
            failures.push(format!("{}: {failure}", scenario.name));
        }
        cluster.back();
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
