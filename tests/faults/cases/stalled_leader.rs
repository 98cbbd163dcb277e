//! The leader stands still for longer than leases last, and then goes on as if nothing had happened.

use super::scene::Scene;
use crate::clock::{now_us, pause};

/// S3, S4, S7, S8: a paused leader is replaced; when it wakes up it neither acknowledges nor shows anything of the
/// time when it was the only one that believed in itself.
#[test]
fn a_leader_that_was_stopped_for_longer_than_a_lease_comes_back_as_a_follower() {
    let name = "a_leader_that_was_stopped_for_longer_than_a_lease_comes_back_as_a_follower";
    let mut scene = Scene::busy(name, 3);
    for _ in 0..3 {
        pause(500);
        let leader = scene.world.leader();
        let paused_us = now_us();
        scene.world.node(leader).pause();
        pause(3_500);
        let served =
            scene.next_grant_ms(paused_us).expect("the others don't serve while the leader stands still");
        println!("from the stall to the next grant: {served} ms");
        assert!(served < 1_500, "{served} ms");
        assert_ne!(scene.world.leader(), leader);
        scene.world.node(leader).go_on();
        pause(1_000);
    }
    let (tally, _) = scene.close();
    assert_eq!(tally.unsettled, 0, "{tally:?}");
}
