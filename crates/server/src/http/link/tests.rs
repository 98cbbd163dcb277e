//! Both ends of a link over streams in memory, before routes of the test's own.

use super::*;
use crate::http::calls::serve;
use crate::http::front::Front;
use axum::Router;
use axum::routing::get;
use futures::future::join_all;
use http_body_util::BodyExt as _;
use kunci_replica::Member;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::time::{sleep, timeout};

/// A leader that can be called, and the link to it.
struct Leader {
    front: Front,
    routes: Router,
    link: KeptLink,
    /// Connections that were made.
    made: AtomicUsize,
    is_cut: Arc<AtomicBool>,
    /// Calls that are being served.
    open: Arc<AtomicUsize>,
}

/// One more open call, until it is dropped.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Leader {
    fn new(limits: HttpLimits) -> Self {
        let open = Arc::new(AtomicUsize::new(0));
        let waits = Arc::clone(&open);
        let wait = move || async move {
            let _open = Open::new(&waits);
            sleep(Duration::from_secs(3_600)).await;
        };
        let routes = Router::new()
            .route("/quick", get(async || "quick"))
            .route("/slow", get(async || sleep(Duration::from_secs(5)).await))
            .route("/wait", get(wait))
            .route("/large", get(async || vec![0_u8; 1 << 20]));
        let link = KeptLink::new(&limits);
        let front = Front::new(limits, Member::default()).0;
        let made = AtomicUsize::new(0);
        Self { front, routes, link, made, is_cut: Arc::default(), open }
    }

    async fn connect(&self) -> io::Result<BoxedStream> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let (here, there) = duplex(64 << 10);
        let there = Box::new(Wire { stream: there, is_cut: Arc::clone(&self.is_cut) });
        tokio::spawn(serve(there, self.front.clone(), self.routes.clone()));
        Ok(Box::new(Wire { stream: here, is_cut: Arc::clone(&self.is_cut) }))
    }

    async fn call(&self, path: &str) -> Result<Response<Incoming>, Unanswered> {
        let call = Request::get(format!("http://leader{path}")).body(Full::default()).unwrap();
        self.link.call(1, call, self.connect(), Instant::now() + Duration::from_secs(1)).await
    }

    async fn text(&self, path: &str) -> Bytes {
        self.call(path).await.unwrap().into_body().collect().await.unwrap().to_bytes()
    }

    async fn open_calls(&self, wanted: usize) {
        while self.open.load(Ordering::Relaxed) != wanted {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// While it is cut, nothing comes through, and nobody is told.
struct Wire {
    stream: DuplexStream,
    is_cut: Arc<AtomicBool>,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_cut.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn one_connection_carries_all_calls_also_after_long_idleness() {
    let leader = Leader::new(HttpLimits::default());
    let all = join_all((0..200).map(|_| leader.text("/quick"))).await;
    assert!(all.iter().all(|text| &text[..] == b"quick"));
    sleep(Duration::from_secs(600)).await;
    leader.text("/quick").await;
    assert_eq!(leader.made.load(Ordering::Relaxed), 1);
}

/// Section 3: a link is dead after a second of silence, and its calls end with it, at both ends.
#[tokio::test(start_paused = true)]
async fn a_link_that_is_silent_for_a_second_ends_its_calls_at_both_ends() {
    let leader = Leader::new(HttpLimits::default());
    let waiting = async {
        let lost = leader.call("/wait").await.unwrap_err();
        assert!(matches!(lost, Unanswered::Lost(_)), "{lost}");
    };
    let cutting = async {
        leader.open_calls(1).await;
        sleep(Duration::from_secs(60)).await;
        leader.is_cut.store(true, Ordering::Relaxed);
        let began = Instant::now();
        leader.open_calls(0).await;
        began.elapsed()
    };
    let both = timeout(Duration::from_secs(120), async { tokio::join!(waiting, cutting) }).await;
    let (_, silent) = both.unwrap();
    assert!(silent <= Duration::from_secs(1), "{silent:?}");
}

/// Clients that don't read their answers hold up nobody: each call has a window of its own.
#[tokio::test(start_paused = true)]
async fn answers_that_nobody_reads_hold_up_no_other() {
    let leader = Leader::new(HttpLimits { connections_max: 200, ..HttpLimits::default() });
    let unread = join_all((0..199).map(|_| leader.call("/large"))).await;
    assert!(unread.iter().all(Result::is_ok));
    sleep(Duration::from_secs(1)).await;
    let quick = timeout(Duration::from_secs(1), leader.text("/quick")).await.unwrap();
    assert_eq!(&quick[..], b"quick");
    for answer in unread.into_iter().flatten() {
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 1 << 20);
    }
    assert_eq!(leader.made.load(Ordering::Relaxed), 1);
}

/// L3: a client that goes away ends its call at the leader, and thousands at once are no attack.
#[tokio::test(start_paused = true)]
async fn calls_that_are_dropped_end_at_the_leader_and_the_link_lives() {
    let leader = Leader::new(HttpLimits::default());
    for _ in 0..3 {
        let dropped = timeout(Duration::from_secs(2), join_all((0..2_000).map(|_| leader.call("/wait"))));
        let opened = async {
            leader.open_calls(2_000).await;
            sleep(Duration::from_secs(3)).await;
        };
        let (dropped, ()) = tokio::join!(dropped, opened);
        assert!(dropped.is_err());
        timeout(Duration::from_secs(1), leader.open_calls(0)).await.unwrap();
    }
    // Also when the leader hears of calls and of their end at the same time, after a short silence.
    leader.is_cut.store(true, Ordering::Relaxed);
    drop(timeout(Duration::from_millis(50), join_all((0..200).map(|_| leader.call("/wait")))).await);
    sleep(Duration::from_millis(50)).await;
    leader.is_cut.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(1)).await;
    leader.text("/quick").await;
    assert_eq!(leader.made.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_answers_what_it_has_and_is_sent_nothing_more() {
    let leader = Leader::new(HttpLimits::default());
    leader.text("/quick").await;
    let stop = async {
        sleep(Duration::from_millis(100)).await;
        leader.front.stop.cancel();
        sleep(Duration::from_millis(100)).await;
        // Whoever finds that out knows that nothing was sent, and the next one connects anew.
        let unsent = leader.call("/quick").await.unwrap_err();
        assert!(matches!(unsent, Unanswered::NotSent(_)), "{unsent}");
        drop(leader.call("/quick").await);
        assert_eq!(leader.made.load(Ordering::Relaxed), 2);
    };
    let (slow, ()) = tokio::join!(leader.call("/slow"), stop);
    assert_eq!(slow.unwrap().status(), 200);
}

/// A dead leader is connected to once for all calls that find it dead, and they know that nothing was sent.
#[tokio::test(start_paused = true)]
async fn a_connection_that_cant_be_made_is_tried_once_for_all_that_wait_for_it() {
    let link = KeptLink::new(&HttpLimits::default());
    let tries = AtomicUsize::new(0);
    let call = || async {
        let connect = async {
            tries.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(300)).await;
            Err(io::ErrorKind::ConnectionRefused.into())
        };
        let call = Request::get("http://leader/quick").body(Full::default()).unwrap();
        link.call(1, call, connect, Instant::now() + Duration::from_secs(1)).await
    };
    let all = join_all((0..1_000).map(|_| call())).await;
    assert!(all.iter().all(|answer| matches!(answer, Err(Unanswered::NotSent(_)))));
    assert_eq!(tries.load(Ordering::Relaxed), 1);
    assert!(call().await.is_err());
    assert_eq!(tries.load(Ordering::Relaxed), 2);
}
