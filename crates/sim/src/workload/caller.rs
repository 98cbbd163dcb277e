//! A client of the HTTP doors, whose every call is recorded.
//!
//! Owns: which node is asked next, and what goes into the history: a call whose client dies in the middle of it, too. Like
//! a client of the contract's section 5: one connection to each node, taken in turn, a broken one left out for a while.

use super::connection::{Asked, Connection};
use crate::network::Plug;
use crate::world::World;
use kunci_oracle::{Answer, Call, History, Op, Outcome, Told};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A node that failed isn't asked again for so long, unless all others failed too.
const LEFT_OUT_US: u64 = 1_000_000;
/// An answer takes at most so much longer than the call asks to wait.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_millis(2_500);

/// One client: one call at a time.
pub(super) struct Caller {
    world: World,
    number: u64,
    plug: Plug,
    history: History,
    connections: BTreeMap<String, Connection>,
    left_out_until_us: BTreeMap<String, u64>,
    at: String,
}

/// A call that is under way; it is written down whatever becomes of it.
struct Open {
    world: World,
    history: History,
    call: Option<Call>,
}

impl Open {
    fn end(mut self, outcome: Outcome) {
        if let Some(call) = self.call.take() {
            self.write(Call { outcome, ..call });
        }
    }

    fn write(&self, call: Call) {
        self.world.counts().operations += 1;
        self.history.add(Call { ended_us: now_us(&self.world), ..call });
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.write(call);
        }
    }
}

/// The world's time, which is the clock of every history.
pub(super) fn now_us(world: &World) -> u64 {
    u64::try_from(world.began().elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl Caller {
    /// A client of all nodes that there are. Clients begin at different ones.
    pub(super) fn new(world: &World, number: u64, plug: Plug, history: &History) -> Self {
        let names = world.names();
        let at = usize::try_from(number).unwrap_or(0) % names.len().max(1);
        Self {
            world: world.clone(),
            number,
            plug,
            history: history.clone(),
            connections: BTreeMap::new(),
            left_out_until_us: BTreeMap::new(),
            at: names.into_iter().nth(at).unwrap_or_default(),
        }
    }

    fn open(&self, op: &Op) -> Open {
        let call = Call {
            number: 0,
            client: self.number,
            node: self.at.get(1..).and_then(|number| number.parse().ok()).unwrap_or(0),
            began_us: now_us(&self.world),
            ended_us: 0,
            op: op.clone(),
            outcome: Outcome::Unknown("its client died".to_owned()),
        };
        Open { world: self.world.clone(), history: self.history.clone(), call: Some(call) }
    }

    /// Asks the next node once, and closes the connection when there is no answer in time.
    pub(super) async fn once_within(&mut self, op: &Op, within: Duration) -> Outcome {
        let open = self.open(op);
        let outcome = self.ask_within(&request(op), within).await;
        open.end(outcome.clone());
        outcome
    }

    /// Renews several leases with one call. Each is a call of its own in the history.
    pub(super) async fn renew_all(&mut self, leases: &[(String, String)]) -> Outcome {
        let ops = leases
            .iter()
            .map(|(resource, lease)| Op::Renew { resource: resource.clone(), lease: lease.clone() });
        let open: Vec<Open> = ops.map(|op| self.open(&op)).collect();
        let each = leases.iter().map(|(resource, lease)| json!({ "resource": resource, "leaseId": lease }));
        let body = json!({ "leases": each.collect::<Vec<_>>() });
        let asked = Asked { method: "POST", path: "/leases/renew".to_owned(), body: Some(body) };
        let outcome = self.ask_within(&asked, ANSWER_WITHIN).await;
        for (index, open) in open.into_iter().enumerate() {
            open.end(one_of_many(&outcome, index));
        }
        outcome
    }

    async fn ask_within(&mut self, asked: &Asked, within: Duration) -> Outcome {
        let outcome = kunci_process::timeout(within, self.ask(asked)).await;
        let outcome = outcome.unwrap_or_else(|_| Outcome::Unknown(format!("no answer in {within:?}")));
        match &outcome {
            Outcome::Answer(answer) if answer.status < 500 => {}
            // Its connection is good; the node isn't, for now.
            Outcome::Answer(_) => self.leave_out(),
            Outcome::NotSent(_) | Outcome::Unknown(_) => {
                self.connections.remove(&self.at);
                self.leave_out();
            }
        }
        outcome
    }

    async fn ask(&mut self, asked: &Asked) -> Outcome {
        let mut connection = match self.connections.remove(&self.at) {
            Some(open) if open.is_open() => open,
            _ => match Connection::open(&self.plug, &self.at).await {
                Ok(fresh) => fresh,
                Err(error) => return Outcome::NotSent(error.to_string()),
            },
        };
        match connection.ask(asked).await {
            Ok(answer) => {
                self.connections.insert(self.at.clone(), connection);
                Outcome::Answer(answer)
            }
            Err(error) => Outcome::Unknown(error),
        }
    }

    /// Asks until the log has decided, with the same request id and at the next node each time, for at most `tries`.
    pub(super) async fn settle(&mut self, op: &Op, tries: u32) -> Option<(Told, Answer)> {
        self.settle_within(op, tries, ANSWER_WITHIN + waits(op)).await
    }

    /// The same, with so much patience for each node.
    pub(super) async fn settle_within(
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
            kunci_process::sleep(Duration::from_millis(u64::from(30 + 40 * turn.min(10)))).await;
        }
        None
    }

    fn leave_out(&mut self) {
        self.left_out_until_us.insert(self.at.clone(), now_us(&self.world) + LEFT_OUT_US);
        self.turn();
    }

    /// Goes on to the next node that isn't left out, or else the one that comes back first.
    pub(super) fn turn(&mut self) {
        let now = now_us(&self.world);
        let mut in_turn = self.world.names();
        let first = in_turn.iter().position(|name| *name > self.at).unwrap_or(0);
        in_turn.rotate_left(first);
        in_turn.sort_by_key(|name| {
            self.left_out_until_us.get(name).copied().filter(|until| *until > now).unwrap_or(0)
        });
        if let Some(next) = in_turn.into_iter().next() {
            self.at = next;
        }
    }
}

fn waits(op: &Op) -> Duration {
    if let Op::Acquire { wait_ms, .. } = op { Duration::from_millis(*wait_ms) } else { Duration::ZERO }
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

/// What a batch's answer says of one of its leases, as if that had been asked alone.
fn one_of_many(outcome: &Outcome, index: usize) -> Outcome {
    let Outcome::Answer(answer) = outcome else { return outcome.clone() };
    if answer.status != 200 {
        return outcome.clone();
    }
    let one = answer.body["results"].get(index).cloned().unwrap_or(Value::Null);
    let is_renewed = one["renewed"] == true;
    let mut body = if is_renewed { one } else { one["problem"].clone() };
    if body.get("revision").is_none() {
        body["revision"] = answer.body["revision"].clone();
    }
    let status = if is_renewed { 200 } else { 409 };
    Outcome::Answer(Answer { status, body, ..answer.clone() })
}

/// The call as HTTP.
fn request(op: &Op) -> Asked {
    let of = |resource: &str, verb: &str| format!("/locks/{}{verb}", resource.replace('/', "%2F"));
    let (method, path, body) = match op {
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
    };
    Asked { method, path, body }
}
