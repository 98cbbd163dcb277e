//! What it is all for: a holder that was stopped for longer than its lease writes late, and is refused.

use super::asking::{Ask, acquire, client, release};
use super::scene::Scene;
use crate::client::Caller;
use crate::clock::{now_us, pause, since, wait_for};
use crate::store::{Store, Writer};
use kunci_oracle::{History, Told};
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const ROUNDS: u64 = 20;
const TTL_MS: u64 = 1_000;
/// Where the worker process finds everything: nodes, store, resource and its own name.
const WORK: &str = "FAULTS_WORK";

/// The design's critical sentence, C03, C31, S9: A holds token n and is stopped for longer than its lease, the leader is
/// killed, B gets a larger token and writes, A wakes up and writes late: refused, in each of 20 rounds. A is a
/// process of its own and really stopped; the store knows nothing but tokens.
#[test]
fn a_stopped_holder_that_writes_late_is_refused_in_every_round() {
    let mut scene = Scene::quiet("a_stopped_holder_that_writes_late_is_refused_in_every_round", 3);
    let store = Store::default();
    let at: SocketAddr = ([10, 77, 0, 200], 9_000).into();
    let serving = store.clone();
    let (_end, ended) = tokio::sync::oneshot::channel();
    drop(scene.world.begin_inside(move || serving.serve(at, ended)));
    pause(100);
    for round in 0..ROUNDS {
        let resource = format!("sentence/{round}");
        let mut a = Worker::start(&scene, at, &resource);
        let held = a.token();
        wait_accepted(&store, held);
        a.signal(Signal::STOP);
        let stopped_us = now_us();

        let leader = scene.world.leader();
        scene.world.node(leader).kill();
        let (doors, history) = (scene.world.doors(), scene.run.history.clone());
        let larger = scene.world.inside(move || async move {
            let mut b = client(2, &doors, &history);
            let mine =
                acquire(&mut b, Ask { resource: &resource, owner: "b", ttl_ms: 10_000, wait_ms: 30_000 })
                    .await;
            let written = Writer::open(at).await.write(mine.token, "b").await;
            assert_eq!(written, Ok(()), "round {round}: the newest holder is refused");
            release(&mut b, &mine).await;
            mine.token
        });
        assert!(larger > held, "round {round}: token {larger} after {held}");
        let stopped = since(stopped_us);
        assert!(stopped >= Duration::from_millis(TTL_MS), "round {round}: B was granted after {stopped:?}");

        a.signal(Signal::CONT);
        assert_eq!(a.end(), format!("refused {held} by {larger}"), "round {round}");
        scene.world.revive(leader);
    }
    let journal = store.journal();
    assert_eq!(journal.refused.len() as u64, ROUNDS, "{:?}", journal.refused);
    assert!(journal.accepted.is_sorted_by_key(|(token, _)| *token), "{:?}", journal.accepted);
    scene.close();
}

fn wait_accepted(store: &Store, token: u64) {
    let accepted = || store.journal().accepted.iter().any(|(accepted, _)| *accepted == token).then_some(());
    wait_for(Duration::from_secs(5), accepted).expect("A writes under its token");
}

/// A as a process.
struct Worker {
    process: Child,
    words: std::path::PathBuf,
}

impl Worker {
    fn start(scene: &Scene, store: SocketAddr, resource: &str) -> Self {
        let words = scene.run.folder().join(format!("{}.words", resource.replace('/', "-")));
        let doors: Vec<String> = scene.world.doors().iter().map(SocketAddr::to_string).collect();
        let mut command = scene.world.command_inside(&std::env::current_exe().unwrap());
        command.args(["--exact", "cases::late_writer::the_worker_process", "--nocapture"]);
        command.env(WORK, format!("{} {store} {resource} {}", doors.join(","), words.display()));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self { process: command.spawn().unwrap(), words }
    }

    /// The token that it was granted.
    fn token(&self) -> u64 {
        let said = wait_for(Duration::from_secs(10), || said(&self.words, "granted ")).expect("A is granted");
        said.parse().unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Its last words.
    fn end(&mut self) -> String {
        let ended = wait_for(Duration::from_secs(10), || self.process.try_wait().unwrap());
        assert!(ended.is_some(), "A goes on writing");
        let said = said(&self.words, "refused ").expect("A was refused before it ended");
        format!("refused {said}")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn said(words: &Path, prefix: &str) -> Option<String> {
    let words = std::fs::read_to_string(words).ok()?;
    // Whole lines only: the last one may be half written.
    let mut lines = words.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    lines.find_map(|line| line.strip_prefix(prefix)).map(str::to_owned)
}

/// Not a test of its own: it is A, when the test above starts it as a process, and passes at once otherwise. A acquires
/// and writes to the store in a loop until it is refused, and never looks at a clock: the worst client there is.
#[test]
fn the_worker_process() {
    let Ok(work) = std::env::var(WORK) else { return };
    let parts: Vec<&str> = work.split(' ').collect();
    let doors: Vec<SocketAddr> = parts[0].split(',').map(|door| door.parse().unwrap()).collect();
    let (store, resource, words) = (parts[1].parse().unwrap(), parts[2], Path::new(parts[3]));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut caller = Caller::new(1, &doors, &History::default());
        let ask = Ask { resource, owner: "a", ttl_ms: TTL_MS, wait_ms: 0 };
        let Some((Told::Granted { token, .. }, _)) = caller.settle(&ask.op(), 100).await else { return };
        let mut writer = Writer::open(store).await;
        std::fs::write(words, format!("granted {token}\n")).unwrap();
        loop {
            if let Err(larger) = writer.write(token, "a").await {
                std::fs::write(words, format!("granted {token}\nrefused {token} by {larger}\n")).unwrap();
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
