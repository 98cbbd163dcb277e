//! The last trial of a world in which nothing else is at fault: its leader dies.
//!
//! Owns: the death, and asking all others until one serves. Never: a verdict; that is `invariants/l4_new_leader.rs`'.

use crate::http;
use crate::invariants::l4_new_leader;
use crate::network::{HTTP, Plug};
use crate::world::{Death, World};
use ::http::Method;
use kunci_server::node::Founding;
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// From one question to the next.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How long one answer may take.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// When asking is given up, at so many times what is allowed.
const GIVE_UP_AFTER: u32 = 4;
/// The others serve for a while before the dead one comes back.
const DEAD_FOR: Duration = Duration::from_millis(1_500);

/// Kills the leader, judges how long nobody was served, and starts it again.
pub(super) async fn kill_the_leader(world: &World) {
    let Some((leader, ..)) = world.leader() else { return };
    let Some(grip) = world.grip_named(&leader) else { return };
    world.trace().tell(&leader, || "leads, and is killed to see who serves then".to_owned());
    let plug = world.network().plug("probe");
    let began = Instant::now();
    world.kill(&leader, Death::Process);
    let mut asking = JoinSet::new();
    for name in world.names().into_iter().filter(|name| *name != leader) {
        asking.spawn(ask(plug.clone(), name));
    }
    let served = timeout(l4_new_leader::within(world) * GIVE_UP_AFTER, asking.join_next()).await;
    let took = served.is_ok().then(|| began.elapsed());
    world.tell(|| format!("served again after {took:?}"));
    l4_new_leader::check(world, &leader, took);
    drop(asking);
    sleep(DEAD_FOR).await;
    world.start(&leader, Founding::WhenAsked);
    drop(grip);
}

/// Asks a node until it serves.
async fn ask(plug: Plug, name: String) {
    let address = format!("{name}:{HTTP}");
    let body = json!({ "clientId": "probe", "leaseDurationMs": 1_000, "waitTimeoutMs": 0 });
    loop {
        let call = http::call(&plug, &address, Method::POST, "/locks/probe/acquire", Some(&body));
        let answer = timeout(ANSWER_WITHIN, call).await;
        // Granted, held by an earlier question, or not allowed by the policy of this world: each is the log's word.
        if matches!(answer, Ok(Ok(answer)) if [200, 409, 422, 429].contains(&answer.status)) {
            return;
        }
        sleep(ASK_EVERY).await;
    }
}
