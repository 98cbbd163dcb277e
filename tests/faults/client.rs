//! A small HTTP client with retries, whose every call is recorded.
//!
//! Owns: which node is asked next, and what goes into the history. Like a client of the contract's section 5: one
//! connection to each node, taken in turn, a broken one left out for a while.

mod connection;

use crate::clock::now_us;
use connection::Connection;
use kunci_oracle::{Answer, Call, History, Op, Outcome, Told};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A node that failed isn't asked again for so long, unless all others failed too.
const LEFT_OUT_US: u64 = 1_000_000;
/// An answer takes at most so much longer than the call asks to wait.
const ANSWER_WITHIN: Duration = Duration::from_millis(2_500);

/// One client: one call at a time.
pub(crate) struct Caller {
    name: u64,
    nodes: Vec<Node>,
    next: usize,
    history: History,
    within: Duration,
}

struct Node {
    door: SocketAddr,
    connection: Option<Connection>,
    left_out_until_us: u64,
}

impl Caller {
    /// A client of these nodes. Clients begin at different ones.
    pub(crate) fn new(name: u64, doors: &[SocketAddr], history: &History) -> Self {
        let node = |door: &SocketAddr| Node { door: *door, connection: None, left_out_until_us: 0 };
        Self {
            name,
            nodes: doors.iter().map(node).collect(),
            next: usize::try_from(name).unwrap_or_default() % doors.len(),
            history: history.clone(),
            within: ANSWER_WITHIN,
        }
    }

    /// Gives a silent node up after this time.
    pub(crate) fn patient_for(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// One call outside any history.
    pub(crate) async fn ask(
        door: SocketAddr,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(u16, Value)> {
        let asked = async {
            let mut connection = Connection::open(door).await.ok()?;
            connection.ask(method, path, body).await.ok()
        };
        // Changes of the members and hand-overs may take a while.
        let answer = timeout(Duration::from_secs(8), asked).await.ok()??;
        Some((answer.status, answer.body))
    }

    /// Asks one node, from 1, once.
    pub(crate) async fn at(&mut self, node: usize, op: &Op) -> Outcome {
        self.next = node - 1;
        self.once(op).await
    }

    /// Asks the next node once.
    pub(crate) async fn once(&mut self, op: &Op) -> Outcome {
        let wait_ms = if let Op::Acquire { wait_ms, .. } = op { *wait_ms } else { 0 };
        self.once_within(op, self.within + Duration::from_millis(wait_ms)).await
    }

    /// Asks the next node once, and closes the connection when there is no answer in time.
    pub(crate) async fn once_within(&mut self, op: &Op, within: Duration) -> Outcome {
        let node = self.next;
        let began_us = now_us();
        let outcome = timeout(within, self.nodes[node].ask(op)).await;
        let outcome = outcome.unwrap_or_else(|_| Outcome::Unknown(format!("no answer in {within:?}")));
        self.history.add(Call {
            number: 0,
            client: self.name,
            node: node + 1,
            began_us,
            ended_us: now_us(),
            op: op.clone(),
            outcome: outcome.clone(),
        });
        match &outcome {
            Outcome::Answer(answer) if answer.status < 500 => {}
            // Its connection is good; the node isn't, for now.
            Outcome::Answer(_) => self.leave_out(node),
            Outcome::NotSent(_) | Outcome::Unknown(_) => {
                self.nodes[node].connection = None;
                self.leave_out(node);
            }
        }
        outcome
    }

    /// Asks until the log has decided, with the same request id and at the next node each time, for at most `tries`.
    pub(crate) async fn settle(&mut self, op: &Op, tries: u32) -> Option<(Told, Answer)> {
        let wait_ms = if let Op::Acquire { wait_ms, .. } = op { *wait_ms } else { 0 };
        self.settle_within(op, tries, self.within + Duration::from_millis(wait_ms)).await
    }

    /// The same, with so much patience for each node.
    pub(crate) async fn settle_within(
        &mut self,
        op: &Op,
        tries: u32,
        within: Duration,
    ) -> Option<(Told, Answer)> {
        for turn in 0..tries {
            if let Outcome::Answer(answer) = self.once_within(op, within).await
                && let Ok(told) = Told::read(op, &answer)
                && is_final(&told)
            {
                return Some((told, answer));
            }
            sleep(Duration::from_millis(u64::from(20 + 15 * turn.min(10)))).await;
        }
        None
    }

    fn leave_out(&mut self, node: usize) {
        self.nodes[node].left_out_until_us = now_us() + LEFT_OUT_US;
        self.turn();
    }

    /// Goes on to the next node that isn't left out, or else the one that comes back first.
    pub(crate) fn turn(&mut self) {
        let (count, now) = (self.nodes.len(), now_us());
        let in_turn = (1..=count).map(|step| (self.next + step) % count);
        let mut in_turn: Vec<usize> = in_turn.collect();
        in_turn.sort_by_key(|node| {
            let until = self.nodes[*node].left_out_until_us;
            if until <= now { 0 } else { until }
        });
        self.next = in_turn[0];
    }
}

/// Nothing more will come of asking again.
fn is_final(told: &Told) -> bool {
    match told {
        Told::Queued { .. } => false,
        Told::Refused(refused) => {
            told.is_decided() && refused.code != "superseded" && refused.code != "over_limit"
        }
        _ => true,
    }
}

impl Node {
    async fn ask(&mut self, op: &Op) -> Outcome {
        let (method, path, body) = request(op);
        let mut connection = match self.connection.take() {
            Some(open) if open.is_open() => open,
            _ => match Connection::open(self.door).await {
                Ok(fresh) => fresh,
                Err(error) => return Outcome::NotSent(error.to_string()),
            },
        };
        match connection.ask(method, &path, body.as_ref()).await {
            Ok(answer) => {
                self.connection = Some(connection);
                Outcome::Answer(answer)
            }
            Err(error) => Outcome::Unknown(error),
        }
    }
}

/// The call as HTTP.
fn request(op: &Op) -> (&'static str, String, Option<Value>) {
    let of = |resource: &str, verb: &str| format!("/locks/{}{verb}", resource.replace('/', "%2F"));
    match op {
        Op::Acquire { resource, owner, request, ttl_ms, wait_ms, delay_ms } => {
            let body = json!({ "clientId": owner, "requestId": request, "leaseDurationMs": ttl_ms,
                "waitTimeoutMs": wait_ms, "lockDelayMs": delay_ms });
            ("POST", of(resource, "/acquire"), Some(body))
        }
        Op::Renew { resource, lease } => ("POST", of(resource, "/renew"), Some(json!({ "leaseId": lease }))),
        Op::Release { resource, lease } => ("DELETE", of(resource, ""), Some(json!({ "leaseId": lease }))),
        Op::Cancel { resource, owner, request } => {
            ("POST", of(resource, "/cancel"), Some(json!({ "clientId": owner, "requestId": request })))
        }
        Op::Status { resource } => ("GET", of(resource, ""), None),
        Op::Queue { resource } => ("GET", of(resource, "/queue"), None),
        Op::List { prefix } => {
            ("GET", format!("/locks?prefix={}&limit=1000", prefix.replace('/', "%2F")), None)
        }
        Op::Policy => ("GET", "/policy".to_owned(), None),
        Op::ChangePolicy { replaces, policy } => {
            ("PUT", "/policy".to_owned(), Some(json!({ "replaces": replaces, "policy": policy })))
        }
    }
}
