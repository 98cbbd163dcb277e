//! A cluster at work: what most cases begin with and end with.

use crate::checks;
use crate::clock::now_us;
use crate::run::Run;
use crate::workload::{Plan, Prober, Tally, Workload};
use crate::world::World;
use kunci_oracle::{Op, Summary, Told};

/// Nodes, clients and the record, in the order in which they must go.
pub(super) struct Scene {
    load: Option<Workload>,
    prober: Option<Prober>,
    pub(super) world: World,
    pub(super) run: Run,
}

impl Scene {
    /// A cluster with nothing to do.
    pub(super) fn quiet(name: &'static str, nodes: usize) -> Self {
        let run = Run::begin(name);
        let world = World::start(&run, nodes);
        Self::of(run, world)
    }

    /// A cluster that was made in another way.
    pub(super) fn of(run: Run, world: World) -> Self {
        Self { load: None, prober: None, world, run }
    }

    /// Three nodes, each with a disk of 192 MiB in memory: for what a full disk does, and where times are measured that
    /// whoever else uses this machine's disk would spoil.
    pub(super) fn on_small_disks(name: &'static str) -> Self {
        let run = Run::begin(name);
        let mut world = World::prepare(&run, 3);
        for number in 1..=3 {
            world.give_disk(number, 192);
            world.node(number).start();
        }
        world.form(3);
        Self::of(run, world)
    }

    /// A cluster under load.
    pub(super) fn busy(name: &'static str, nodes: usize) -> Self {
        let mut scene = Self::quiet(name, nodes);
        scene.load();
        scene
    }

    /// Lets the clients begin.
    pub(super) fn load(&mut self) {
        self.load_with(&Plan::usual(self.run.seed()));
    }

    /// Lets few clients begin, where times are measured.
    pub(super) fn load_lightly(&mut self) {
        self.load_with(&Plan::light(self.run.seed()));
    }

    fn load_with(&mut self, plan: &Plan) {
        self.load = Some(Workload::start(&self.world, plan, &self.run.history));
        self.prober = Some(Prober::start(&self.world, &self.run.history));
    }

    /// Lets the clients end.
    pub(super) fn rest(&mut self) -> Tally {
        self.prober = None;
        self.load.take().map(Workload::finish).unwrap_or_default()
    }

    /// Ends the load, and checks everything that was seen.
    pub(super) fn close(&mut self) -> (Tally, Summary) {
        let tally = self.rest();
        println!("{tally:?}");
        (1..=self.world.count()).for_each(|number| self.world.node(number).must_not_have_ended());
        let summary = checks::expect_clean(&self.run.history.calls(), self.run.seed());
        (tally, summary)
    }

    /// From an instant to the first grant to anybody who asked after it, in ms.
    pub(super) fn next_grant_ms(&self, after_us: u64) -> Option<u64> {
        let calls = self.run.history.calls();
        let grants = calls.iter().filter(|call| {
            call.began_us > after_us
                && matches!(call.op, Op::Acquire { .. })
                && call
                    .answer()
                    .is_some_and(|answer| matches!(Told::read(&call.op, answer), Ok(Told::Granted { .. })))
        });
        grants.map(|call| (call.ended_us - after_us) / 1_000).min()
    }

    /// The longest time without any grant since an instant, in ms.
    pub(super) fn longest_gap_ms(&self, since_us: u64) -> u64 {
        self.longest_gap_ms_between(since_us, now_us())
    }

    /// The longest time without any grant between two instants, in ms.
    pub(super) fn longest_gap_ms_between(&self, since_us: u64, until_us: u64) -> u64 {
        let calls = self.run.history.calls();
        let granted = calls.iter().filter(|call| {
            matches!(call.op, Op::Acquire { .. }) && call.answer().is_some_and(|answer| answer.status == 200)
        });
        let between = |at: &u64| (since_us..until_us).contains(at);
        let mut at: Vec<u64> = granted.map(|call| call.ended_us).filter(between).collect();
        at.extend([since_us, until_us]);
        at.sort_unstable();
        at.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).max().unwrap_or_default()
    }

    /// How often any node said that it took over as leader.
    pub(super) fn takeovers(&mut self) -> usize {
        let count = self.world.count();
        (1..=count).map(|number| self.world.node(number).words().matches("took over as leader").count()).sum()
    }
}
