//! The cluster: who leads, who belongs to it, and what an operator should look at.
//!
//! Owns: the words of membership and leadership for callers. Never: decides a change; the replica does.

use super::{Outcome, Refused, Service, Stamped, refusal};
use kunci_api::{AddBody, ClusterBody, Code, NodeBody, Problem, RemoveBody, ReplaceBody, TransferBody};
use kunci_replica::{
    BoxedStream, CallsFrom, ChangeRefused, DiskState, Lead, MemberStatus, NoLead, NodeStatus, Role,
};
use std::collections::BTreeMap;
use std::io;
use tokio::sync::{mpsc, watch};

/// With fewer voters than this, the loss of one is the loss of the quorum.
const VOTERS_MIN: usize = 3;

impl Service {
    /// Who leads, as far as this node can tell now.
    pub fn lead(&self) -> Lead {
        self.replica.lead()
    }

    /// The same, with word of every change.
    pub fn lead_changes(&self) -> watch::Receiver<Lead> {
        self.replica.lead_changes()
    }

    /// A new connection to another member, for calls that are passed on to it.
    ///
    /// # Errors
    /// When it can't be reached.
    pub async fn open_calls(&self, node_id: u64) -> io::Result<BoxedStream> {
        self.replica.open_calls(node_id).await
    }

    /// Connections that other members make to pass calls on. There for whoever asks first.
    pub fn take_calls(&self) -> Option<mpsc::Receiver<CallsFrom>> {
        self.replica.take_calls()
    }

    /// Why a call is refused while nobody leads.
    pub fn without_leader(why: NoLead) -> Problem {
        let (code, detail) = match why {
            NoLead::NoQuorum => {
                (Code::NoQuorum, "this node reaches no leader with a quorum; nothing was proposed")
            }
            NoLead::Electing => (Code::NoLeader, "a leader is being elected; nothing was proposed"),
            NoLead::HandingOver => (Code::NoLeader, "leadership is being handed over; nothing was proposed"),
            NoLead::Removed => (
                Code::NoLeader,
                "this node was removed from its cluster; ask another one. Nothing was proposed",
            ),
        };
        Problem::new(code, detail)
    }

    /// The cluster and its members, as this node knows them; no quorum is asked.
    pub fn cluster(&self) -> Stamped<ClusterBody> {
        let status = self.status_of_node();
        let body = ClusterBody {
            cluster_id: Some(status.cluster_id.to_string()),
            leader: status.leader,
            nodes: status.members.iter().map(node).collect(),
            node_id: Some(status.node_id),
            next_node_id: Some(status.ids_used.saturating_add(1)),
            warnings: warnings(&status),
            revision: status.revision.get(),
            cluster_time_ms: status.cluster_time.as_ms(),
        };
        Stamped { body, position: self.position() }
    }

    /// Takes in the node of no cluster at `peer`.
    ///
    /// # Errors
    /// When this node doesn't lead, or the change can't be made; so for every change here.
    pub async fn add_member(&self, peer: &str) -> Outcome<AddBody> {
        let added = self.changed(self.replica.add_member(peer).await)?;
        let (node_id, already) = (added.node_id, added.already);
        Ok(self.here(|revision| AddBody { node_id, already, revision }))
    }

    /// Lets the node of no cluster at `peer` take the place of a member, once it has caught up.
    ///
    /// # Errors
    /// See [`Self::add_member`].
    pub async fn replace_member(&self, replaces: u64, peer: &str) -> Outcome<ReplaceBody> {
        let added = self.changed(self.replica.replace_member(replaces, peer).await)?;
        Ok(self.here(|revision| ReplaceBody { node_id: added.node_id, replaces, revision }))
    }

    /// Takes a member out; with `force` also when the rest may have no quorum.
    ///
    /// # Errors
    /// See [`Self::add_member`].
    pub async fn remove_member(&self, node_id: u64, force: bool) -> Outcome<RemoveBody> {
        let removed = self.changed(self.replica.remove_member(node_id, force).await)?;
        Ok(self.here(|revision| RemoveBody { removed: true, already: removed.already, revision }))
    }

    /// Lets another member lead: `to`, or the one that is best suited.
    ///
    /// # Errors
    /// See [`Self::add_member`].
    pub async fn transfer_lead(&self, to: Option<u64>) -> Outcome<TransferBody> {
        let leader = self.changed(self.replica.transfer_lead(to).await)?;
        Ok(self.here(|revision| TransferBody { leader, revision }))
    }

    fn changed<T>(&self, change: Result<T, ChangeRefused>) -> Result<T, Box<Refused>> {
        change.map_err(|refused| self.refuse(not_changed(&refused)))
    }

    /// An answer about the members, stamped with this node's state.
    fn here<T>(&self, body: impl FnOnce(u64) -> T) -> Stamped<T> {
        let local = self.replica.local_view(|_| ());
        Stamped { body: body(local.revision.get()), position: local.position }
    }
}

fn not_changed(refused: &ChangeRefused) -> Problem {
    let code = match refused {
        ChangeRefused::Undecided(refusal) => return refusal::undecided(*refusal),
        ChangeRefused::InProgress(_) => Code::ChangeInProgress,
        ChangeRefused::Unreachable { .. } => Code::PeerUnreachable,
        ChangeRefused::OtherCluster { .. } => Code::OtherCluster,
        ChangeRefused::NotAMember { .. } => Code::UnknownNode,
        ChangeRefused::Unsafe { .. } | ChangeRefused::LastVoter { .. } => Code::UnsafeChange,
        ChangeRefused::WasRemoved { .. }
        | ChangeRefused::Emptied { .. }
        | ChangeRefused::NotReady { .. }
        | ChangeRefused::NobodyReady => Code::NotReady,
    };
    Problem::new(code, refused.to_string())
}

fn node(member: &MemberStatus) -> NodeBody {
    NodeBody {
        id: member.id,
        role: role(member.role),
        peer: member.peer.clone(),
        http: member.http.clone(),
        native: member.native.clone(),
        zone: member.zone.clone(),
        priority: member.priority,
        healthy: member.healthy,
        disk: member.disk.map(|disk| match disk {
            DiskState::Ok => "ok",
            DiskState::Low => "low",
            DiskState::Stuck => "stuck",
        }),
        applied_index: member.applied_index,
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Learner => "learner",
    }
}

/// What an operator should look at.
fn warnings(status: &NodeStatus) -> Vec<String> {
    let (learners, voters): (Vec<_>, Vec<_>) =
        status.members.iter().partition(|member| member.role == Role::Learner);
    let mut warnings = Vec::new();
    if status.leader.is_none() {
        warnings.push("this node knows no leader".to_owned());
    }
    for member in status.members.iter().filter(|member| !member.healthy) {
        warnings.push(format!("node {} isn't heard of, or its disk doesn't answer", member.id));
    }
    let count = voters.len();
    if count < VOTERS_MIN {
        let voters = if count == 1 { "1 voter".to_owned() } else { format!("{count} voters") };
        warnings.push(format!("{voters}: when one is down nothing is served; 3 go on without one"));
    } else if count.is_multiple_of(2) {
        let (spare, fewer) = ((count - 1) / 2, count - 1);
        warnings
            .push(format!("{count} voters go on without {spare}, as {fewer} would: an odd number is better"));
    }
    let mut zones: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for voter in &voters {
        if let Some(zone) = voter.zone.as_deref() {
            zones.entry(zone).or_default().push(voter.id.to_string());
        }
    }
    for (zone, ids) in zones.iter().filter(|(_, ids)| ids.len() > 1) {
        warnings.push(format!(
            "nodes {} are voters in one zone, {zone}: it takes them down together",
            ids.join(" and ")
        ));
    }
    for learner in learners {
        let (id, applied, last) = (learner.id, learner.applied_index, status.applied_index);
        warnings.push(format!(
            "node {id} is a learner and still catching up: it has {applied} of {last} entries"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use kunci_replica::ClusterId;
    use kunci_types::{ClusterTime, Revision};

    fn member(id: u64, role: Role, zone: Option<&str>) -> MemberStatus {
        MemberStatus {
            id,
            role,
            peer: String::new(),
            http: String::new(),
            native: String::new(),
            zone: zone.map(str::to_owned),
            priority: 0,
            healthy: true,
            disk: Some(DiskState::Ok),
            applied_index: 7,
        }
    }

    fn of(members: Vec<MemberStatus>) -> Vec<String> {
        warnings(&NodeStatus {
            node_id: 1,
            cluster_id: ClusterId::random().unwrap(),
            role: Role::Leader,
            leader: Some(1),
            serving: true,
            applied_index: 9,
            revision: Revision::ZERO,
            cluster_time: ClusterTime::START,
            ids_used: 4,
            counts: Default::default(),
            members,
        })
    }

    fn three() -> Vec<MemberStatus> {
        [(1, Role::Leader, "a"), (2, Role::Follower, "b"), (3, Role::Follower, "c")]
            .map(|(id, role, zone)| member(id, role, Some(zone)))
            .into()
    }

    #[test]
    fn three_healthy_voters_in_three_zones_need_no_word() {
        assert_eq!(of(three()), [""; 0]);
    }

    #[test]
    fn what_an_operator_should_look_at_is_named() {
        let mut shared = three();
        shared[2].zone = Some("a".to_owned());
        assert_eq!(of(shared), ["nodes 1 and 3 are voters in one zone, a: it takes them down together"]);

        let mut down = three();
        down[1].healthy = false;
        assert_eq!(of(down), ["node 2 isn't heard of, or its disk doesn't answer"]);

        let mut four = three();
        four.push(member(4, Role::Follower, None));
        assert_eq!(of(four), ["4 voters go on without 1, as 3 would: an odd number is better"]);

        let mut learning = three();
        learning.push(member(4, Role::Learner, Some("a")));
        assert_eq!(of(learning), ["node 4 is a learner and still catching up: it has 7 of 9 entries"]);

        let alone = of(vec![member(1, Role::Leader, None)]);
        assert_eq!(alone, ["1 voter: when one is down nothing is served; 3 go on without one"]);
    }
}
