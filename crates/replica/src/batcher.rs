//! From many callers to few log entries.
//!
//! Owns: which commands go into the next entry: renewals first, then the others in order of arrival; a few
//! entries are on their way at a time, and what arrives meanwhile makes the next. Bounded: beyond that a
//! command is refused at once. What the library puts off is tried again, in its turn. Never: waits for company; a lone
//! command goes at once.

use crate::answered::{Answered, Refusal};
use crate::measures::Measures;
use crate::raft_types::{Applied, EntryBytes, LogId, TypeConfig};
use crate::replica::Raft;
use crate::state_machine::Machine;
use crate::term::Term;
use crate::wall_clock;
use kunci_core::command::{Command, Entry, Provenance};
use kunci_core::reply::{AcquireRefusal, AcquireReply, Reply, Told};
use kunci_process::{sleep, timeout};
use kunci_types::Origin;
use openraft::errors::{ClientWriteError, ForwardReason};
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::Instant;

/// Commands that wait to be proposed, renewals apart. At the design's rate of 6,000 a second, some ten seconds.
const WAITING_MAX: usize = 65_536;
/// Renew commands that wait to be proposed; a command of its own bound so that a flood of acquires can't cost
/// a live holder its lease.
const RENEWALS_WAITING_MAX: usize = 65_536;
/// The weight of one entry's commands, where each lease to renew counts as one.
const ENTRY_WEIGHT_MAX: usize = 2_048;
/// Entries on their way at a time: enough to keep disk and network busy, few enough to gather company.
const ENTRIES_IN_FLIGHT: usize = 4;
/// How long a proposed entry may take before its commands' outcomes count as unknown.
const OUTCOME_WITHIN: Duration = Duration::from_secs(10);
/// From one try to the next of what the library puts off.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// One command and who waits for its reply.
pub(crate) struct Proposal {
    pub(crate) command: Command,
    pub(crate) origin: Origin,
    pub(crate) reply: oneshot::Sender<Result<Answered<Reply>, Refusal>>,
    /// When it is too late to propose it, if ever.
    pub(crate) too_late: Option<Instant>,
}

/// The way in.
#[derive(Clone)]
pub(crate) struct Batcher {
    renewals: mpsc::Sender<Proposal>,
    others: mpsc::Sender<Proposal>,
    time: mpsc::Sender<()>,
    measures: Arc<Measures>,
}

impl Batcher {
    /// Starts the loop that forms entries. It ends when the last handle is gone.
    pub(crate) fn start(raft: Raft, machine: Arc<Machine>, term: Arc<Term>) -> Self {
        let (renewals, renewals_in) = mpsc::channel(RENEWALS_WAITING_MAX);
        let (others, others_in) = mpsc::channel(WAITING_MAX);
        let (time, time_in) = mpsc::channel(1);
        let measures = Arc::clone(&machine.measures);
        let forming = Forming {
            raft,
            machine,
            term,
            renewals: renewals_in,
            others: others_in,
            time: time_in,
            turn: Arc::default(),
        };
        kunci_process::spawn(forming.run());
        Self { renewals, others, time, measures }
    }

    /// Takes a command to be proposed, or refuses it at once and gives it back.
    pub(crate) fn submit(&self, proposal: Proposal) -> Result<(), (Refusal, Box<Proposal>)> {
        let queue = match &proposal.command {
            Command::Renew(_) => &self.renewals,
            _ => &self.others,
        };
        queue.try_send(proposal).map_err(|error| match error {
            mpsc::error::TrySendError::Full(proposal) => {
                self.measures.batcher_full.count();
                (Refusal::Overloaded, Box::new(proposal))
            }
            mpsc::error::TrySendError::Closed(proposal) => (Refusal::NoLeader, Box::new(proposal)),
        })
    }

    /// How many commands wait to be proposed: renewals, and others.
    pub(crate) fn queued(&self) -> (usize, usize) {
        let queued = |queue: &mpsc::Sender<Proposal>| queue.max_capacity() - queue.capacity();
        (queued(&self.renewals), queued(&self.others))
    }

    /// Asks for an entry that carries the time, commands or not.
    pub(crate) fn advance_time(&self) {
        // One that is already asked for is enough.
        let _ = self.time.try_send(());
    }
}

struct Forming {
    raft: Raft,
    machine: Arc<Machine>,
    term: Arc<Term>,
    renewals: mpsc::Receiver<Proposal>,
    others: mpsc::Receiver<Proposal>,
    time: mpsc::Receiver<()>,
    /// Held by the entry that is handed to the library next.
    turn: Arc<Mutex<()>>,
}

impl Forming {
    async fn run(mut self) {
        let in_flight = Arc::new(Semaphore::new(ENTRIES_IN_FLIGHT));
        while let Ok(permit) = Arc::clone(&in_flight).acquire_owned().await {
            let Some(proposals) = self.gather().await else { return };
            self.propose(proposals, permit).await;
        }
    }

    /// Waits for something to propose, then takes what else is there.
    async fn gather(&mut self) -> Option<Vec<Proposal>> {
        let mut gathered = Vec::new();
        tokio::select! {
            biased;
            proposal = self.renewals.recv() => gathered.push(proposal?),
            proposal = self.others.recv() => gathered.push(proposal?),
            asked = self.time.recv() => asked?,
        }
        // Whoever is ready to run may have something too.
        tokio::task::yield_now().await;
        gathered.reserve((self.renewals.len() + self.others.len()).min(ENTRY_WEIGHT_MAX));
        let mut weight: usize = gathered.iter().map(weight_of).sum();
        for queue in [&mut self.renewals, &mut self.others] {
            while weight < ENTRY_WEIGHT_MAX {
                let Ok(proposal) = queue.try_recv() else { break };
                weight += weight_of(&proposal);
                gathered.push(proposal);
            }
        }
        Some(gathered)
    }

    async fn propose(&mut self, proposals: Vec<Proposal>, permit: OwnedSemaphorePermit) {
        let asked_for_time = proposals.is_empty();
        let proposals = self.refuse_late(proposals);
        if proposals.is_empty() && !asked_for_time {
            return;
        }
        // The time is read after the last command arrived, so no lease can end before its renewal came.
        let Some((in_flight, now)) = self.term.propose() else {
            return self.refuse(proposals, self.term.refusal());
        };
        let (began, measures) = (kunci_process::now(), Arc::clone(&self.machine.measures));
        measures.batch_commands.record(proposals.len() as u64);
        let count = proposals.len();
        let (mut commands, mut origins, mut replies) =
            (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
        for Proposal { command, origin, reply, .. } in proposals {
            commands.push(command);
            origins.push(origin);
            replies.push(reply);
        }
        let provenance = Provenance::new(wall_clock::now(), origins);
        let bytes = EntryBytes(Entry { now, commands, provenance }.encode().into());
        let proposed = Proposed {
            raft: self.raft.clone(),
            term: Arc::clone(&self.term),
            turn: Arc::clone(&self.turn),
            bytes,
        };
        // Handing over in this loop, not in a task, keeps the entries in the order of their time.
        let turn = self.turn.lock().await;
        let handed_over = proposed.hand_over().await;
        drop(turn);
        kunci_process::spawn(async move {
            let outcome = proposed.outcome(handed_over).await;
            if let Some(Ok(_)) = outcome {
                measures.commit.record_time(kunci_process::now().saturating_duration_since(began));
            }
            drop((permit, in_flight));
            give_replies(outcome, replies);
        });
    }

    fn refuse(&self, proposals: Vec<Proposal>, refusal: Refusal) {
        for proposal in proposals {
            if let Some(observer) = &self.machine.observer {
                observer.refused(&proposal.command, &proposal.origin, Some(refusal));
            }
            drop(proposal.reply.send(Err(refusal)));
        }
    }

    fn refuse_late(&self, proposals: Vec<Proposal>) -> Vec<Proposal> {
        let now = kunci_process::now();
        let is_late = |proposal: &Proposal| proposal.too_late.is_some_and(|too_late| too_late <= now);
        if !proposals.iter().any(is_late) {
            return proposals;
        }
        let (late, in_time): (Vec<_>, Vec<_>) = proposals.into_iter().partition(is_late);
        for proposal in late {
            if let Some(observer) = &self.machine.observer {
                observer.refused(&proposal.command, &proposal.origin, None);
            }
            let timed_out = Reply::Acquire(AcquireReply::Refused(AcquireRefusal::TimedOut(Told::First)));
            drop(proposal.reply.send(Ok(self.machine.answered(|_| timed_out))));
        }
        in_time
    }
}

/// An entry on its way.
struct Proposed {
    raft: Raft,
    term: Arc<Term>,
    turn: Arc<Mutex<()>>,
    bytes: EntryBytes,
}

/// An entry that the library has.
struct HandedOver {
    /// Nobody asks for it, but the library warns about each one that is gone.
    _committed: oneshot::Receiver<LogId>,
    outcome: oneshot::Receiver<ClientWriteResult<TypeConfig>>,
}

impl Proposed {
    async fn hand_over(&self) -> Option<HandedOver> {
        let (responder, committed, outcome) =
            ProgressResponder::<TypeConfig, ClientWriteResult<TypeConfig>>::new();
        self.raft.client_write_ff(self.bytes.clone(), Some(responder)).await.ok()?;
        Some(HandedOver { _committed: committed, outcome })
    }

    /// What became of it; `None` when nobody can tell any more.
    ///
    /// A leader whose followers were silent for longer than an election would take is told to put entries off. That may be
    /// a disk that is slow for a moment, and is no reason to send anybody away: until this node gives up its term for it,
    /// the entry is tried again, before all that come after it.
    async fn outcome(self, handed_over: Option<HandedOver>) -> Option<ClientWriteResult<TypeConfig>> {
        let mut outcome = self.heard(handed_over?).await;
        let mut turn = None;
        while outcome.as_ref().is_some_and(is_put_off) {
            if turn.is_none() {
                turn = Some(self.turn.lock().await);
            }
            tokio::select! {
                biased;
                () = self.term.over() => return outcome,
                () = sleep(AGAIN_AFTER) => {}
            }
            let mut again = self.hand_over().await?;
            outcome = match timeout(AGAIN_AFTER, &mut again.outcome).await {
                Ok(outcome) => outcome.ok(),
                // It would have been put off at once, so it was taken: the next one's turn.
                Err(_) => {
                    turn = None;
                    self.heard(again).await
                }
            };
        }
        outcome
    }

    async fn heard(&self, handed_over: HandedOver) -> Option<ClientWriteResult<TypeConfig>> {
        tokio::select! {
            biased;
            outcome = timeout(OUTCOME_WITHIN, handed_over.outcome) => outcome.ok().and_then(Result::ok),
            // Whoever lost its quorum or its lead can't tell any more, and says so at once.
            () = self.term.over() => None,
        }
    }
}

fn is_put_off(outcome: &ClientWriteResult<TypeConfig>) -> bool {
    outcome.as_ref().is_err_and(puts_off)
}

/// Whether the library would take a write later, and hasn't now.
pub(crate) fn puts_off(error: &ClientWriteError<TypeConfig>) -> bool {
    matches!(error, ClientWriteError::ForwardToLeader(to) if to.reason == ForwardReason::LeaseExpired)
}

fn weight_of(proposal: &Proposal) -> usize {
    match &proposal.command {
        Command::Renew(renew) => renew.leases.len().max(1),
        _ => 1,
    }
}

type ReplySender = oneshot::Sender<Result<Answered<Reply>, Refusal>>;

fn give_replies(outcome: Option<ClientWriteResult<TypeConfig>>, replies: Vec<ReplySender>) {
    let refusal = match outcome {
        Some(Ok(written)) => {
            let index = written.log_id.index;
            let Applied { now, replies: applied } = written.data;
            for (sender, reply) in replies.into_iter().zip(applied) {
                // Whoever stopped waiting gets nothing; a call that is followed up still waits (see `call`).
                drop(sender.send(Ok(Answered::placed(index, now, reply))));
            }
            return;
        }
        // The library says this one only of what it never appended.
        Some(Err(ClientWriteError::ForwardToLeader(_))) => Refusal::NoLeader,
        Some(Err(_)) | None => Refusal::OutcomeUnknown,
    };
    for sender in replies {
        drop(sender.send(Err(refusal)));
    }
}
