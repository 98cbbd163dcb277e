//! What a client said is said again, on a connection of its own, perhaps to another node, while or after the client itself
//! does other things.

use super::last;
use crate::network::{Leaving, NATIVE};
use crate::randomness::Seeded;
use crate::world::World;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

/// How long the duplicate's connection lives.
const LIVES_MS: (u64, u64) = (50, 3_000);
/// How long the duplicate tries to connect.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);

/// Says a whole conversation again.
pub(super) async fn duplicate(world: World, mut random: Seeded) -> bool {
    let Some(said) = world.network().recorded(&mut random) else { return false };
    let Some(name) = random.pick(&world.names()).cloned() else { return false };
    last(&world, &mut random, 0, 2_000).await;
    let ghost = format!("g{}", random.below(1_000_000));
    let plug = world.network().plug(&ghost);
    let address = format!("{name}:{NATIVE}");
    let is_said = match timeout(CONNECTS_WITHIN, plug.connect(&address)).await {
        Ok(Ok(mut stream)) => {
            world.tell(|| format!("{} bytes of a conversation are said again to {name}", said.len()));
            let is_said = stream.write_all(&said).await.is_ok();
            let mut unread = [0; 1_024];
            let read = async { while stream.read(&mut unread).await.is_ok_and(|count| count > 0) {} };
            let lives = Duration::from_millis(random.between(LIVES_MS.0, LIVES_MS.1));
            let _ = timeout(lives, read).await;
            is_said
        }
        Ok(Err(_)) | Err(_) => false,
    };
    sleep(Duration::from_millis(1)).await;
    world.network().unplug(&ghost, Leaving::Process);
    is_said
}
