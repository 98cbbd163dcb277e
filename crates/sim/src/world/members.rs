//! Who belongs to the cluster.
//!
//! Owns: forming it, and asking its leader for changes, as an operator does. Never: a change that the product doesn't make
//! itself.

use super::{Death, World};
use crate::node::{Life, member};
use kunci_replica::{ChangeRefused, Lead, MemberStatus, Replica};
use kunci_server::node::Founding;
use std::fmt;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// From one try to the next.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How long an operator waits for an answer.
const ASKED_WITHIN: Duration = Duration::from_secs(15);

/// What came of asking for a new member.
enum Asked {
    TakenIn,
    /// It has an id that was given up meanwhile.
    MustBeEmptied,
}

impl World {
    /// The node that leads and knows it.
    pub fn leader(&self) -> Option<(String, Life, Replica)> {
        self.lives().into_iter().find_map(|(name, life)| {
            let replica = life.replica()?;
            let leads = !life.process.is_paused() && replica.lead() == Lead::Here;
            leads.then_some((name, life, replica))
        })
    }

    /// Forms the cluster.
    pub(super) async fn form(&self) {
        let founder = self.add_machine();
        self.start(&founder, Founding::AtOnce);
        let others: Vec<String> = (1..self.plan().nodes).map(|_| self.add_machine()).collect();
        for name in &others {
            self.start(name, Founding::WhenAsked);
        }
        for name in &others {
            self.admit(name, None).await;
        }
    }

    /// Takes a new node in, in place of `instead` if that is given, and waits until it votes. Tries again and again.
    pub async fn admit(&self, name: &str, instead: Option<u64>) {
        let peer = member(name).peer;
        loop {
            let (peer_asked, instead_now) = (peer.clone(), instead.filter(|id| self.is_member(*id)));
            let asked = self.ask_leader(move |replica| async move {
                let added = match instead_now {
                    Some(instead) => replica.replace_member(instead, &peer_asked).await,
                    None => replica.add_member(&peer_asked).await,
                };
                match added {
                    Ok(_) => Ok(Asked::TakenIn),
                    Err(ChangeRefused::WasRemoved { .. }) => Ok(Asked::MustBeEmptied),
                    Err(refused) => Err(refused),
                }
            });
            let waits = match asked.await {
                Some(Asked::TakenIn) => 20,
                Some(Asked::MustBeEmptied) => {
                    self.empty(name);
                    1
                }
                None => 1,
            };
            for _ in 0..waits {
                if self.votes(&peer, instead) {
                    return;
                }
                sleep(AGAIN_AFTER).await;
            }
        }
    }

    /// Does what the refusal asks for: the answer to the invitation was lost, and so the node's id is used up.
    fn empty(&self, name: &str) {
        self.kill(name, Death::Process);
        self.with_machine(name, |machine| machine.disk.wipe());
        self.trace().tell(name, || "is emptied, since its id was given up".to_owned());
        self.start(name, Founding::WhenAsked);
    }

    /// Removes a member, and waits until it is none. Tries again and again.
    pub async fn expel(&self, id: u64) {
        while self.is_member(id) {
            self.ask_leader(move |replica| async move { replica.remove_member(id, false).await.map(|_| ()) })
                .await;
            sleep(AGAIN_AFTER).await;
        }
    }

    /// Whether the leader says that the node at this address votes, and isn't the one that it is to replace.
    fn votes(&self, peer: &str, instead: Option<u64>) -> bool {
        self.members().is_some_and(|members| {
            members.iter().any(|member| {
                member.peer == peer
                    && member.role != kunci_replica::Role::Learner
                    && Some(member.id) != instead
            })
        })
    }

    fn is_member(&self, id: u64) -> bool {
        self.members().is_none_or(|members| members.iter().any(|member| member.id == id))
    }

    /// The members, as the leader sees them; `None` without a leader.
    pub fn members(&self) -> Option<Vec<MemberStatus>> {
        let (_, life, replica) = self.leader()?;
        // By its own clock: after a suspend, the world's would find everything that it knows of the others outdated.
        Some(life.process.enter(|| replica.status()).members)
    }

    /// Asks the leader, as an operator does. `None` when there is none or it refuses, or the answer doesn't come.
    pub async fn ask_leader<T, E, A>(&self, ask: impl FnOnce(Replica) -> A) -> Option<T>
    where
        T: Send + 'static,
        E: fmt::Display + Send + 'static,
        A: Future<Output = Result<T, E>> + Send + 'static,
    {
        let Some((name, life, replica)) = self.leader() else {
            sleep(AGAIN_AFTER).await;
            return None;
        };
        match timeout(ASKED_WITHIN, life.process.run(ask(replica))).await {
            Ok(Ok(Ok(done))) => Some(done),
            Ok(Ok(Err(refused))) => {
                self.trace().tell(&name, || format!("refuses a change: {refused}"));
                sleep(AGAIN_AFTER).await;
                None
            }
            Ok(Err(_)) | Err(_) => None,
        }
    }
}
