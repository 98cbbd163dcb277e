//! The command while it runs.
//!
//! Owns: bringing signals, what becomes of the lock and the keeper's decisions together until the last process of the
//! group is gone. Never: decides when to stop; see `keeper`.

use super::group::{Change, Ended, Group};
use super::keeper::{Facts, Keeper, Settings, Step, Why};
use super::lock::{Lock, News};
use super::terminal::Terminal;
use crate::output::Output;
use crate::signals::{Signals, stop_self};
use kunci_client::{BootClock, Clock as _, Moment};
use rustix::process::Signal;
use std::time::Duration;

/// Only the end of our own children and orphans is told to us; for the rest we look this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Who isn't gone this long after KILL hangs in the kernel.
const KILL_MAX: Duration = Duration::from_secs(5);

/// What a command needs around it.
pub(super) struct Supervisor<'a> {
    /// The command.
    pub(super) group: Group,
    /// When to stop it.
    pub(super) keeper: Keeper,
    /// The times' settings.
    pub(super) settings: Settings,
    /// The lock that it runs under.
    pub(super) lock: Lock,
    /// The terminal that was lent to it.
    pub(super) terminal: Option<Terminal>,
    /// The signals that we get.
    pub(super) signals: Signals,
    /// Where to talk.
    pub(super) output: &'a Output,
}

/// How it ended.
pub(super) struct Outcome {
    /// The lock, to be given back.
    pub(super) lock: Lock,
    /// How the command ended; `None` when KILL didn't end it.
    pub(super) ended: Option<Ended>,
    /// Why the lock was lost, when it was.
    pub(super) lost: Option<Why>,
    /// Whether every process of the group is gone.
    pub(super) gone: Gone,
}

/// Whether anything of the group is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// Nothing.
    All,
    /// Something that KILL didn't end.
    NotAll,
}

/// What has been done about the command's end so far.
#[derive(Debug, Default)]
struct Progress {
    lost: Option<Why>,
    killed_at: Option<Moment>,
    leftovers_since: Option<Moment>,
    is_stopped_with_us: bool,
}

impl Supervisor<'_> {
    /// Keeps the lock and the command together until the group is gone.
    pub(super) async fn run(mut self) -> Outcome {
        let mut alarm = BootClock.alarm();
        let mut progress = Progress::default();
        loop {
            if self.group.look() == Change::Stopped && self.terminal.is_some() {
                self.stop_with_group(&mut progress);
            }
            let now = BootClock.now();
            let facts = self.lock.facts();
            if self.is_over(&mut progress, &facts, now) {
                break;
            }
            let wake = match self.keeper.next(now, &facts) {
                Step::Wait(until) => self.see_to_the_end(&mut progress, now).min(until),
                step => {
                    self.end(step, &mut progress, now);
                    continue;
                }
            };
            self.go_on(&mut progress);
            tokio::select! {
                biased;
                signal = self.signals.next() => self.pass_on(signal, &mut progress),
                news = self.lock.changed() => if let Some(news) = news {
                    self.talk_about(&news);
                },
                () = alarm.ring_at(wake) => {}
            }
        }
        if let Some(terminal) = &self.terminal {
            terminal.take_back_from(self.group.id());
        }
        let gone = if self.group.is_empty() { Gone::All } else { Gone::NotAll };
        Outcome { ended: self.group.ended(), lost: progress.lost, gone, lock: self.lock }
    }

    /// Whether nothing is left to supervise.
    fn is_over(&self, progress: &mut Progress, facts: &Facts, now: Moment) -> bool {
        let is_empty = self.group.is_empty();
        if is_empty && progress.lost.is_none() && now >= facts.deadline {
            // It ended while we didn't run; whether in time, nobody can say.
            progress.lost = Some(Why::Paused);
        }
        is_empty || progress.killed_at.is_some_and(|killed_at| now.since(killed_at) > KILL_MAX)
    }

    /// Carries out TERM or KILL.
    fn end(&self, step: Step, progress: &mut Progress, now: Moment) {
        let (signal, why) = match step {
            Step::Terminate(why) => (Signal::TERM, why),
            Step::Kill(why) => (Signal::KILL, why),
            Step::Wait(_) => return,
        };
        self.group.signal(signal);
        if signal == Signal::TERM {
            // A stopped process hears TERM only when it goes on.
            self.group.signal(Signal::CONT);
        } else {
            progress.killed_at = Some(now);
        }
        let name = if signal == Signal::TERM { "TERM" } else { "KILL" };
        self.output.say(&format!("{}: sent {name} to the command", describe(&why, self.lock.resource())));
        progress.lost = Some(why);
    }

    /// Ends what the command left behind; returns when to look again.
    fn see_to_the_end(&self, progress: &mut Progress, now: Moment) -> Moment {
        if self.group.ended().is_some() && progress.lost.is_none() {
            let since = match progress.leftovers_since {
                Some(since) => since,
                None => {
                    self.group.signal(Signal::TERM);
                    self.group.signal(Signal::CONT);
                    progress.leftovers_since = Some(now);
                    now
                }
            };
            if progress.killed_at.is_none() && now.since(since) >= self.settings.grace() {
                self.group.signal(Signal::KILL);
                progress.killed_at = Some(now);
            }
        }
        let is_ending = self.group.ended().is_some() || progress.killed_at.is_some();
        now.plus(if is_ending { LOOK_EVERY } else { Duration::from_secs(3600) })
    }

    /// Passes a signal on to the group.
    fn pass_on(&mut self, signal: Signal, progress: &mut Progress) {
        match signal {
            // The loop looks after each turn.
            Signal::CHILD => {}
            // Ctrl-Z on a terminal that wasn't lent. STOP, since a command may ignore TSTP and would work on.
            Signal::TSTP => self.stop_with_group(progress),
            // The loop has asked the keeper first whether the lock outlived the pause.
            Signal::CONT => progress.is_stopped_with_us = true,
            other => self.group.signal(other),
        }
    }

    /// Stops the group and then this process, as the shell expects of one job; returns when it goes on.
    fn stop_with_group(&self, progress: &mut Progress) {
        self.group.signal(Signal::STOP);
        if let Some(terminal) = &self.terminal {
            terminal.take_back_from(self.group.id());
        }
        progress.is_stopped_with_us = true;
        stop_self();
    }

    /// Lets a group go on that was stopped with us. The keeper was asked before: the lock is still held.
    fn go_on(&self, progress: &mut Progress) {
        if !progress.is_stopped_with_us {
            return;
        }
        progress.is_stopped_with_us = false;
        if let Some(terminal) = &self.terminal {
            terminal.lend_to(self.group.id());
        }
        self.group.signal(Signal::CONT);
    }

    /// Says how renewals fare. Once the command is being stopped, that is no comfort any more.
    fn talk_about(&mut self, news: &News) {
        let deadline = self.lock.facts().deadline;
        let resource = self.lock.resource();
        match news {
            News::Failing(why) => {
                let left = self.settings.terminate_at(deadline).since(BootClock.now());
                self.output.say(&format!(
                    "renew {resource}: {why}; trying again, the command may run on for {left:.1?}"
                ));
            }
            News::Safe if self.keeper.is_held() => {
                self.output.say(&format!("renew {resource}: done, the lock is safe"));
            }
            News::Safe => {}
        }
    }
}

/// Why the lock on `resource` is lost, in a sentence.
pub(super) fn describe(why: &Why, resource: &str) -> String {
    match why {
        Why::NotRenewed => format!("the lock on {resource} is lost, no renewal got through"),
        Why::Paused => {
            format!("the lock on {resource} is lost, this process didn't run until its deadline had passed")
        }
        Why::Ended(text) => format!("the lock on {resource} is lost, the server says: {text}"),
        Why::HoldLimit => format!("the lock on {resource} is lost, it was held as long as the policy allows"),
    }
}
