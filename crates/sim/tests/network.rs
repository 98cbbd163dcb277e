//! The simulated network does what TCP does, and nothing that TCP doesn't.
#![expect(clippy::unwrap_used, reason = "a test that can't go on should fail on the spot")]

use kunci_server::Listener as _;
use kunci_sim::network::{Door, Leaving, NATIVE, Network, PEER, Plug, Quality, SimStream};
use kunci_sim::randomness::Seeded;
use kunci_sim::trace::{Lines, Trace};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

/// Two hosts and a connection between them.
struct Pair {
    network: Network,
    caller: Plug,
    door: Door,
    near: SimStream,
    far: SimStream,
}

impl Pair {
    async fn connected(port: u16) -> Self {
        let quality =
            Quality { delay: Duration::from_millis(2), jitter: Duration::from_millis(5), loss_ppm: 0 };
        let network = Network::new(7, quality, Trace::new(Lines::Dropped));
        tokio::spawn(network.clone().run());
        let (caller, mut door) = (network.plug("a"), network.plug("b").listen(port));
        let address = format!("b:{port}");
        let (near, far) = tokio::join!(caller.connect(&address), door.accept());
        Self { network, caller, door, near: near.unwrap(), far: far.unwrap() }
    }

    /// Sends from the caller's end and gives what the other reads within a minute.
    async fn carried(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        self.near.write_all(text).await.unwrap();
        let mut read = vec![0; text.len()];
        timeout(Duration::from_secs(60), self.far.read_exact(&mut read)).await.ok()?.ok()?;
        Some(read)
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_come_in_order_and_take_their_time() {
    let mut pair = Pair::connected(NATIVE).await;
    let began = Instant::now();
    let sent: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let far = &mut pair.far;
    let read = async {
        let mut read = vec![0; sent.len()];
        far.read_exact(&mut read).await.unwrap();
        read
    };
    let (written, read) = tokio::join!(pair.near.write_all(&sent), read);
    written.unwrap();
    assert!(read == sent);
    // More than the window has to wait for the reader.
    assert!(began.elapsed() >= Duration::from_millis(8), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_into_a_cut_comes_after_it() {
    let mut pair = Pair::connected(NATIVE).await;
    pair.network.cut("a", "b");
    pair.near.write_all(b"held up").await.unwrap();
    let mut read = [0; 7];
    assert!(timeout(Duration::from_secs(3), pair.far.read_exact(&mut read)).await.is_err());
    // The other way is open.
    pair.far.write_all(b"back").await.unwrap();
    pair.near.read_exact(&mut read[..4]).await.unwrap();
    pair.network.mend("a", "b");
    pair.far.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"held up");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_hears_nothing_gives_up_and_the_other_learns_it_later() {
    let mut pair = Pair::connected(PEER).await;
    pair.network.cut("b", "a");
    let began = Instant::now();
    let error = pair.near.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let took = began.elapsed();
    assert!((Duration::from_secs(5)..Duration::from_secs(6)).contains(&took), "{took:?}");
    pair.network.mend("b", "a");
    assert!(pair.far.read_u8().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_killed_process_resets_and_a_dead_machine_says_nothing() {
    let mut pair = Pair::connected(PEER).await;
    pair.network.unplug("b", Leaving::Process);
    assert_eq!(pair.near.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    // Nobody listens, and the system says so.
    let refused = pair.caller.connect(&format!("b:{PEER}")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    let mut pair = Pair::connected(PEER).await;
    let began = Instant::now();
    pair.network.unplug("b", Leaving::Machine);
    assert_eq!(pair.near.read_u8().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(began.elapsed() >= Duration::from_secs(5));
    // Nobody answers at all.
    let address = format!("b:{PEER}");
    let asked = pair.caller.connect(&address);
    assert!(timeout(Duration::from_secs(30), asked).await.is_err());
    // The destructors of the dead reach nobody.
    let Pair { network, caller, door, far, .. } = pair;
    drop((far, door));
    let mut door = network.plug("b").listen(PEER);
    let (near, far) = tokio::join!(caller.connect(&address), door.accept());
    near.unwrap().write_u8(7).await.unwrap();
    assert_eq!(far.unwrap().read_u8().await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_back_resets_what_its_dead_process_had() {
    let mut pair = Pair::connected(NATIVE).await;
    pair.network.unplug("b", Leaving::Machine);
    let _door = pair.network.plug("b").listen(NATIVE);
    pair.near.write_all(b"hello?").await.unwrap();
    assert_eq!(pair.near.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn an_old_connections_bytes_may_come_after_a_newer_ones() {
    let mut pair = Pair::connected(NATIVE).await;
    assert!(pair.network.slow_one("a", Duration::from_secs(5), &mut Seeded::new(1)).is_some());
    pair.near.write_all(b"old").await.unwrap();
    // The client gives it up; what it said is still on its way.
    let old = std::mem::replace(&mut pair.near, {
        let address = format!("b:{NATIVE}");
        let (near, _) = tokio::join!(pair.caller.connect(&address), sleep(Duration::ZERO));
        near.unwrap()
    });
    drop(old);
    let mut newer = pair.door.accept().await.unwrap();
    pair.near.write_all(b"new").await.unwrap();
    let mut read = [0; 3];
    newer.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"new");
    pair.far.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"old");
    assert_eq!(pair.far.read(&mut read).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_break_in_the_middle_of_a_message() {
    let mut broken_in_the_middle = false;
    for seed in 0..40 {
        let mut pair = Pair::connected(NATIVE).await;
        pair.near.write_all(b"a whole message").await.unwrap();
        assert!(pair.network.break_one("a", &mut Seeded::new(seed)).is_some());
        let mut read = Vec::new();
        let error = loop {
            match pair.far.read_u8().await {
                Ok(byte) => read.push(byte),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(b"a whole message".starts_with(&read));
        broken_in_the_middle |= (1..15).contains(&read.len());
        assert!(pair.near.read_u8().await.is_err());
    }
    assert!(broken_in_the_middle);
}

#[tokio::test(start_paused = true)]
async fn what_a_client_said_is_kept_once_its_connection_is_over() {
    let mut pair = Pair::connected(NATIVE).await;
    assert!(pair.carried(b"A job 30 0\n").await.is_some());
    assert!(pair.network.recorded(&mut Seeded::new(1)).is_none());
    let Pair { network, near, far, .. } = pair;
    drop((near, far));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(&network.recorded(&mut Seeded::new(1)).unwrap()[..], b"A job 30 0\n");
    assert_eq!(network.connection_count(), 0);
}
