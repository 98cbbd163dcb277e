//! `kunci exec`: interrupted before the command runs.

use crate::fake::Fake;
use crate::support::{exec, finish, signal, until};
use std::time::Duration;

/// C93
#[test]
fn an_interrupt_in_the_queue_cancels_the_wait_and_starts_nothing() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129), ("QUIT", 131)] {
        let fake = Fake::start();
        fake.take();
        let waiting = exec(&fake, "", "echo started").spawn().unwrap();
        until("it waits", || !fake.state().queue.is_empty());
        signal(waiting.id(), name);
        let ran = finish(waiting);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{name}: {ran:?}");
        assert!(fake.state().queue.is_empty(), "{name}");
        assert_eq!(fake.requests("cancel").len(), 1);
    }
}

/// C93: whichever comes first, nothing is left behind that would keep the next run waiting.
#[test]
fn an_interrupt_around_the_grant_leaves_no_lease_behind() {
    let fake = Fake::start();
    let mut granted = 0;
    for round in 0..60_u64 {
        fake.take();
        let waiting = exec(&fake, "", "exec sleep 1000").spawn().unwrap();
        until("it waits", || !fake.state().queue.is_empty());
        // The signal comes between 5 ms before and 5 ms after the grant.
        let id = waiting.id();
        let interrupt = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(round * 10_000 / 60));
            signal(id, "INT");
        });
        std::thread::sleep(Duration::from_millis(5));
        fake.end_lease("released");
        let ran = finish(waiting);
        interrupt.join().unwrap();
        assert_eq!(ran.code, Some(130), "round {round}: {ran:?}");
        assert!(fake.is_free(), "round {round}: {ran:?} {:?}", fake.state().log);
        granted += fake.requests("release").len();
        fake.state().log.clear();
    }
    assert!(granted > 0, "no signal came after a grant");
}
