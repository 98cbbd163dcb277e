//! What a simulated process promises about its tasks: when they are polled, when no more, and in which order.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use futures::stream::{FuturesUnordered, StreamExt as _};
use kunci_process::{Killed, Process, blocking, now, sleep, spawn, spawn_into, timeout};
use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

const SHORT: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_secs(10);

/// What happened, in order.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Vec<String>>>);

impl Book {
    fn write(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Says in the book when it is dropped, and in which process.
struct Witness(Book, &'static str);

impl Drop for Witness {
    fn drop(&mut self) {
        let process = Process::current().map_or("nobody".to_owned(), |process| process.name().to_owned());
        self.0.write(format!("{} dropped by {process}", self.1));
    }
}

/// Lets everything run that can, without time passing.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_task_starts_belongs_to_its_process() {
    let process = Process::new("one");
    let names = process.run(async {
        let of_this = || Process::current().map(|process| process.name().to_owned());
        let spawned = spawn(async move { spawn(async move { of_this() }).await.unwrap() }).await.unwrap();
        let mut set = JoinSet::new();
        spawn_into(&mut set, async move { of_this() });
        let in_set = set.join_next().await.unwrap().unwrap();
        let mut together: FuturesUnordered<_> = (0..2).map(|_| async move { of_this() }).collect();
        vec![of_this(), spawned, in_set, together.next().await.unwrap()]
    });
    assert!(names.await.unwrap().iter().all(|name| name.as_deref() == Some("one")));
    assert!(Process::current().is_none());
    assert!(spawn(async { Process::current() }).await.unwrap().is_none());
    assert_eq!(process.task_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_of_many_processes_stays_itself_across_waits() {
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let process = Process::new(number.to_string());
            process.spawn(async move {
                for _ in 0..50 {
                    sleep(SHORT).await;
                    yield_now().await;
                    assert_eq!(Process::current().unwrap().name(), number.to_string());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Case C36: a stopped process does nothing, and time goes on for everybody.
#[tokio::test(start_paused = true)]
async fn a_paused_process_does_nothing_and_sees_at_the_resume_what_became_of_time() {
    let (process, book) = (Process::new("one"), Book::default());
    let (to_it, mut from_outside) = mpsc::unbounded_channel();
    let (start, book_there) = (Instant::now(), book.clone());
    process.spawn(async move {
        loop {
            tokio::select! {
                biased;
                Some(number) = from_outside.recv() => book_there.write(format!("got {number}")),
                () = sleep(SHORT) => book_there.write(format!("slept till {:?}", now() - start)),
            }
        }
    });
    sleep(SHORT + SHORT / 2).await;
    assert_eq!(book.take(), ["slept till 10ms"]);
    process.pause();
    assert!(process.is_paused());
    (0..3).for_each(|number| to_it.send(number).unwrap());
    sleep(LONG).await;
    assert_eq!(book.take(), [""; 0]);
    process.resume();
    settle().await;
    assert_eq!(book.take(), ["got 0", "got 1", "got 2"]);
    sleep(SHORT).await;
    settle().await;
    assert_eq!(book.take(), ["slept till 10.025s"]);
}

#[tokio::test(start_paused = true)]
async fn tasks_run_after_a_pause_in_the_order_in_which_they_were_woken() {
    let (process, book) = (Process::new("one"), Book::default());
    let mut wakers = Vec::new();
    for number in 0..20 {
        let (tell, told) = oneshot::channel::<()>();
        let book = book.clone();
        process.spawn(async move {
            let _ = told.await;
            book.write(number.to_string());
        });
        wakers.push(Some(tell));
    }
    settle().await;
    let order = [7, 3, 19, 0, 11, 5, 18, 1, 2, 4, 6, 8, 9, 10, 12, 13, 14, 15, 16, 17];
    process.pause();
    for number in order {
        drop(wakers[number].take());
        settle().await;
    }
    process.resume();
    settle().await;
    assert_eq!(book.take(), order.map(|number| number.to_string()));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_woken_often_during_a_pause_runs_once() {
    let process = Process::new("one");
    let polls = Arc::new(AtomicUsize::new(0));
    let (change, mut changes) = watch::channel(0);
    let polls_there = Arc::clone(&polls);
    process.spawn(async move {
        loop {
            polls_there.fetch_add(1, Ordering::Relaxed);
            if changes.changed().await.is_err() {
                return;
            }
        }
    });
    settle().await;
    let before = polls.load(Ordering::Relaxed);
    for pause in 1..=3 {
        process.pause();
        for value in 0..100 {
            change.send_replace(value);
            settle().await;
        }
        process.resume();
        settle().await;
        assert_eq!(polls.load(Ordering::Relaxed), before + pause);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_starts_during_a_pause_begins_at_the_resume() {
    let process = Process::new("one");
    process.pause();
    let mut task = process.spawn(async { 7 });
    assert!(timeout(LONG, &mut task).await.is_err());
    process.resume();
    assert_eq!(task.await.unwrap(), 7);
}

/// Case C38: whoever was killed does nothing any more, not even in its destructors.
#[tokio::test(start_paused = true)]
async fn a_killed_process_is_never_polled_again_and_what_it_held_is_dropped_in_its_name() {
    let (process, book) = (Process::new("one"), Book::default());
    for name in ["first", "second", "third"] {
        let witness = Witness(book.clone(), name);
        let book = book.clone();
        process.spawn(async move {
            let _witness = witness;
            loop {
                sleep(SHORT).await;
                book.write("ran");
            }
        });
    }
    sleep(SHORT + SHORT / 2).await;
    assert_eq!(book.take(), ["ran"; 3]);
    process.kill();
    process.ended_all().await;
    assert_eq!(book.take(), ["first dropped by one", "second dropped by one", "third dropped by one"]);
    assert!(process.is_killed());
    assert_eq!(process.task_count(), 0);
    sleep(LONG).await;
    assert_eq!(book.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_destructors_start_at_a_kill_is_dropped_unpolled() {
    struct Starts(Book);
    impl Drop for Starts {
        fn drop(&mut self) {
            let (book, witness) = (self.0.clone(), Witness(self.0.clone(), "late"));
            spawn(async move {
                book.write("a destructor's task ran");
                drop(witness);
            });
        }
    }
    let (process, book) = (Process::new("one"), Book::default());
    let starts = Starts(book.clone());
    process.spawn(async move {
        let _starts = starts;
        pending::<()>().await;
    });
    settle().await;
    process.kill();
    process.ended_all().await;
    settle().await;
    assert_eq!(book.take(), ["late dropped by one"]);
    assert_eq!(process.task_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_kills_its_own_process_gets_to_its_next_wait_and_tells_nobody() {
    let (process, book) = (Process::new("one"), Book::default());
    let book_there = book.clone();
    let ran = process.run(async move {
        Process::current().unwrap().kill();
        book_there.write("killed");
        yield_now().await;
        book_there.write("went on");
    });
    assert_eq!(ran.await, Err(Killed));
    assert_eq!(book.take(), ["killed"]);

    let process = Process::new("two");
    let ran = process.run(async { Process::current().unwrap().kill() });
    assert_eq!(ran.await, Err(Killed), "it ended, but was dead by then");
}

#[tokio::test(start_paused = true)]
async fn a_kill_frees_what_its_tasks_held_of_others() {
    let process = Process::new("one");
    let (semaphore, mutex) = (Arc::new(Semaphore::new(1)), Arc::new(tokio::sync::Mutex::new(0)));
    let (change, mut changes) = watch::channel(0);
    let (semaphore_there, mutex_there) = (Arc::clone(&semaphore), Arc::clone(&mutex));
    process.spawn(async move {
        let _permit = semaphore_there.acquire_owned().await;
        let _guard = mutex_there.lock_owned().await;
        let _change = change;
        pending::<()>().await;
    });
    settle().await;
    // One of its own waits too: it must not be the next to have the lock.
    let mutex_there = Arc::clone(&mutex);
    process.spawn(async move { *mutex_there.lock().await += 1 });
    settle().await;
    let waiting = spawn(async move {
        let _permit = semaphore.acquire().await.unwrap();
        *mutex.lock().await
    });
    settle().await;
    assert!(!waiting.is_finished());
    process.kill();
    assert_eq!(timeout(SHORT, waiting).await.unwrap().unwrap(), 0);
    assert!(changes.changed().await.is_err());
    process.ended_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_kill_during_a_pause_ends_all_and_nothing_runs_at_a_late_resume() {
    let (process, book) = (Process::new("one"), Book::default());
    let mut set = JoinSet::new();
    for _ in 0..3 {
        let book = book.clone();
        process.enter(|| {
            spawn_into(&mut set, async move {
                sleep(SHORT).await;
                book.write("ran");
            });
        });
    }
    settle().await;
    process.pause();
    sleep(LONG).await;
    process.kill();
    process.resume();
    assert!(process.is_killed());
    process.ended_all().await;
    while let Some(ended) = set.join_next().await {
        assert!(ended.unwrap_err().is_cancelled());
    }
    assert_eq!(book.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_dropped_ends_its_tasks_in_a_process_too() {
    let process = Process::new("one");
    process
        .run(async {
            let mut set = JoinSet::new();
            spawn_into(&mut set, pending::<()>());
            yield_now().await;
        })
        .await
        .unwrap();
    process.ended_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_kills_its_process_and_no_other() {
    let (one, other) = (Process::new("one"), Process::new("other"));
    let left = one.spawn(pending::<()>());
    let others = other.spawn(async {
        sleep(SHORT).await;
        7
    });
    assert_eq!(one.run(async { panic!("this is to happen") }).await, Err::<(), _>(Killed));
    assert!(one.is_killed() && one.has_panicked());
    assert!(left.await.unwrap_err().is_cancelled());
    assert_eq!(others.await.unwrap(), 7);
    assert!(!other.has_panicked());
    assert!(Process::current().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_call_into_a_process_that_is_dropped_ends_there() {
    let (process, book) = (Process::new("one"), Book::default());
    let witness = Witness(book.clone(), "call");
    let call = process.run(async move {
        let _witness = witness;
        pending::<()>().await;
    });
    assert!(timeout(SHORT, call).await.is_err());
    process.ended_all().await;
    assert_eq!(book.take(), ["call dropped by one"]);
    assert!(!process.is_killed());
}

#[tokio::test(start_paused = true)]
async fn work_that_blocks_happens_at_once_in_a_simulated_process() {
    let process = Process::new("one");
    let here = std::thread::current().id();
    let there = process.run(async { blocking(|| std::thread::current().id()).await.unwrap() });
    assert_eq!(there.await.unwrap(), here);
    assert_ne!(blocking(|| std::thread::current().id()).await.unwrap(), here);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_kills_leave_nothing_behind() {
    let held = Arc::new(());
    for _ in 0..2_000 {
        let process = Process::new("one");
        for _ in 0..5 {
            let held = Arc::clone(&held);
            process.spawn(async move {
                let nested = spawn({
                    let held = Arc::clone(&held);
                    async move {
                        let _held = held;
                        pending::<()>().await;
                    }
                });
                let _ = nested.await;
                drop(held);
            });
        }
        settle().await;
        assert_eq!(process.task_count(), 10);
        process.kill();
        process.ended_all().await;
    }
    settle().await;
    assert_eq!(Arc::strong_count(&held), 1);
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

/// The same tasks, pauses and kills give the same order of events, whatever the timers of several processes do.
#[test]
fn the_same_world_twice_goes_the_same_way() {
    fn world() -> Vec<String> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let book = Book::default();
        runtime.block_on(async {
            let processes: Vec<_> = (0..5).map(|number| Process::new(number.to_string())).collect();
            for (number, process) in processes.iter().enumerate() {
                for task in 0..4_u64 {
                    let book = book.clone();
                    process.spawn(async move {
                        for round in 0..50 {
                            sleep(Duration::from_millis(1 + (task * 7 + round) % 5)).await;
                            book.write(format!("{number} {task} {round}"));
                            spawn(yield_now());
                        }
                    });
                }
            }
            for round in 0..60_usize {
                sleep(Duration::from_millis(3)).await;
                processes[round % 5].pause();
                processes[(round + 2) % 5].resume();
                if round == 40 {
                    processes[3].kill();
                }
            }
        });
        book.take()
    }
    let first = world();
    assert!(first.len() > 300);
    assert_eq!(first, world());
}

/// A future that never gives way must not keep its own time from ending, as in tokio.
#[tokio::test(start_paused = true)]
async fn a_timeout_ends_a_future_that_always_uses_up_its_turn() {
    struct Greedy(mpsc::UnboundedSender<()>, mpsc::UnboundedReceiver<()>);
    impl Future for Greedy {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
            loop {
                self.0.send(()).unwrap();
                std::task::ready!(self.1.poll_recv(cx));
            }
        }
    }
    let (send, receive) = mpsc::unbounded_channel();
    let ended = spawn(timeout(SHORT, Greedy(send, receive)));
    tokio::time::advance(SHORT * 2).await;
    assert!(tokio::time::timeout(LONG, ended).await.unwrap().unwrap().is_err());
}
