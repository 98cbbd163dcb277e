//! One round: A holds the lock and is stopped in the middle of its work, B takes over and writes, A wakes up and writes late.
//!
//! Owns: the order of these things, and what is to be found afterwards. Never: a target's protocol.

use crate::cluster::Cluster;
use crate::target::{Fence, Rejected, Target};
use crate::worker::{Order, TTL, Worker};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// What happened in a round, as far as it says whether the fence held.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) item: String,
    /// A's token, and B's.
    pub(crate) older: u64,
    pub(crate) newer: u64,
    /// For how long A was stopped.
    pub(crate) stopped: Duration,
    /// What A was told about its late write.
    pub(crate) late: Result<(), Rejected>,
    /// The value after it.
    pub(crate) found: Option<String>,
    /// What B was told when it went on with its work afterwards, and the value at the end.
    pub(crate) last: Result<(), Rejected>,
    pub(crate) left: Option<String>,
}

/// B's first value, which A's late write would destroy.
fn first_of_b(token: u64) -> String {
    format!("B's work under token {token}")
}

fn last_of_b(token: u64) -> String {
    format!("the rest of B's work under token {token}")
}

/// Plays one round over an item that nobody has used.
pub(crate) fn play<T: Target>(cluster: &Cluster, target: &T, item: &str, fence: Fence) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let value = || runtime.block_on(target.value(item));
    let order = |owner: &str| Order {
        doors: cluster.doors(),
        target: T::NAME.to_owned(),
        address: target.address(),
        resource: item.to_owned(),
        owner: owner.to_owned(),
        fence,
    };

    let mut a = Worker::start(&order("A"));
    let older = a.granted();
    assert_ne!(a.looked(), "Lost", "{item}: A looks at its lock");
    a.tell(&format!("A's work under token {older}"));
    assert_eq!(a.wrote(), Ok(()), "{item}: A writes while it holds the lock");
    // From here on A is convinced that it may write.
    assert_ne!(a.looked(), "Lost", "{item}: A looks at its lock");
    a.stop();
    let stopped_at = Instant::now();

    let mut b = Worker::start(&order("B"));
    let newer = b.granted();
    assert_ne!(b.looked(), "Lost", "{item}: B looks at its lock");
    b.tell(&first_of_b(newer));
    assert_eq!(b.wrote(), Ok(()), "{item}: B, the newest holder, writes");
    assert_ne!(b.looked(), "Lost", "{item}: B looks at its lock");
    assert_eq!(value(), Some(first_of_b(newer)), "{item}: B's write is there");

    a.tell(&format!("A's late work under token {older}"));
    a.go_on();
    let stopped = stopped_at.elapsed();
    let late = a.wrote();
    let found = value();

    b.tell(&last_of_b(newer));
    let last = b.wrote();
    let left = value();
    a.end();
    b.end();
    Outcome { item: item.to_owned(), older, newer, stopped, late, found, last, left }
}

impl Outcome {
    /// Checks S9 and that A was stopped past its lease: the late write was refused with both numbers, and what B wrote is
    /// there.
    pub(crate) fn check(&self) {
        let Self { item, older, newer, .. } = self;
        assert!(older < newer, "{item}: B's token {newer} is larger than A's {older}");
        assert!(self.stopped >= TTL / 2, "{item}: B was granted after {:?}", self.stopped);
        let rejected = Rejected { found: *older, kept: *newer };
        assert_eq!(self.late, Err(rejected), "{item}: A's late write\n{self}");
        assert_eq!(self.found, Some(first_of_b(*newer)), "{item}: after A's late write\n{self}");
        assert_eq!(self.last, Ok(()), "{item}: an equal token passes");
        assert_eq!(self.left, Some(last_of_b(*newer)), "{item}: at the end");
    }

    /// Whether B's value was destroyed by A's late write.
    pub(crate) fn is_lost(&self) -> bool {
        self.late.is_ok() && self.found != Some(first_of_b(self.newer))
    }
}

/// The story, for people.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { item, older, newer, stopped, .. } = self;
        let found = self.found.as_deref().unwrap_or("nothing");
        writeln!(f, "  {item}")?;
        let seconds = stopped.as_secs_f64();
        writeln!(
            f,
            "    A was granted token {older}, and stopped for {seconds:.1} s, in which its lease ended"
        )?;
        writeln!(f, "    B was granted token {newer} and wrote \"{}\"", first_of_b(*newer))?;
        match self.late {
            Ok(()) => writeln!(f, "    A woke up and wrote late under token {older}: accepted")?,
            Err(Rejected { found, kept }) => {
                writeln!(
                    f,
                    "    A woke up and wrote late under token {older}: refused, {found} is older than {kept}"
                )?;
            }
        }
        writeln!(f, "    found \"{found}\"")?;
        if self.is_lost() {
            writeln!(
                f,
                "    LOST \"{}\", written under token {newer}, by a write under the older token {older}",
                first_of_b(*newer)
            )?;
        }
        Ok(())
    }
}
