//! Signals that this process gets.
//!
//! Owns: which are caught, and taking them one at a time. Never: what is done about one.

use rustix::process::{Signal, getpid, kill_process};
use std::io;
use std::task::{Context, Poll, Waker};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Those that ask a process to end.
const ENDING: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
/// Those that `exec` deals with besides.
const OTHERS: [Signal; 6] =
    [Signal::USR1, Signal::USR2, Signal::WINCH, Signal::CONT, Signal::TSTP, Signal::CHILD];

/// The signals that are caught.
#[derive(Debug)]
pub(crate) struct Signals {
    streams: Vec<(Signal, Stream)>,
}

impl Signals {
    /// Catches the signals that ask a process to end.
    pub(crate) fn catch_ending() -> io::Result<Self> {
        Self::catch(&ENDING)
    }

    /// Catches all that a wrapper passes on or acts on.
    pub(crate) fn catch_all() -> io::Result<Self> {
        Self::catch(&[&ENDING[..], &OTHERS[..]].concat())
    }

    fn catch(all: &[Signal]) -> io::Result<Self> {
        // Under `nohup` HUP is ignored, and a command below has to find it ignored too.
        let caught = all.iter().filter(|signal| **signal != Signal::HUP || !is_ignored(Signal::HUP));
        let stream = |wanted: &Signal| Ok((*wanted, signal(SignalKind::from_raw(wanted.as_raw()))?));
        Ok(Self { streams: caught.map(stream).collect::<io::Result<_>>()? })
    }

    /// The next signal. May be dropped and called again without losing one.
    pub(crate) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (signal, stream) in &mut self.streams {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// A signal that asked the process to end and wasn't taken yet.
    pub(crate) fn ending_by_now(&mut self) -> Option<Signal> {
        let mut context = Context::from_waker(Waker::noop());
        let mut ending = self.streams.iter_mut().filter(|(signal, _)| ENDING.contains(signal));
        ending.find_map(|(signal, stream)| stream.poll_recv(&mut context).is_ready().then_some(*signal))
    }

    /// The next signal that asks the process to end.
    pub(crate) async fn next_ending(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if signal == Signal::TSTP {
                stop_self();
            }
            if ENDING.contains(&signal) {
                return signal;
            }
        }
    }
}

/// Stops this process until it is told to go on, as Ctrl-Z would have done had it not been caught.
pub(crate) fn stop_self() {
    // STOP can't fail to reach oneself.
    let _ = kill_process(getpid(), Signal::STOP);
}

#[expect(unsafe_code, reason = "there is no safe way to ask how a signal is handled now")]
fn is_ignored(signal: Signal) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with no new action `sigaction` only writes the current one to `now`, which has room for it.
    let asked = unsafe { libc::sigaction(signal.as_raw(), std::ptr::null(), now.as_mut_ptr()) };
    // SAFETY: the call succeeded, so it has filled `now` in.
    asked == 0 && unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN
}
