//! Plays one scenario.

use crate::cluster::Cluster;
use crate::step::{Scenario, Step, seconds};
use crate::weather::Weather;
use kunci_client::{
    Client, Ending, Error, ErrorKind, FencingToken, HeldLock, LockRequest, LocksRequest, Loss, State, Status,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// How much later than said something may be.
const ROOM: Duration = Duration::from_millis(500);
/// How long the world may take to be as it should.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);
/// How long an acquire that was begun may take after whatever let it through.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

type Acquired = Result<HeldLock, Error>;

pub(crate) struct Player<'a> {
    cluster: &'a Cluster,
    weather: Weather,
    /// Makes resources new for each scenario.
    prefix: String,
    clients: BTreeMap<String, Client>,
    /// By client and resource.
    held: BTreeMap<(String, String), HeldLock>,
    begun: BTreeMap<(String, String), JoinHandle<Acquired>>,
    largest: Option<FencingToken>,
}

impl<'a> Player<'a> {
    pub(crate) fn new(cluster: &'a Cluster, prefix: String) -> Self {
        let (held, begun) = (BTreeMap::new(), BTreeMap::new());
        Self {
            cluster,
            weather: Weather::fine(),
            prefix,
            clients: BTreeMap::new(),
            held,
            begun,
            largest: None,
        }
    }

    /// Plays every step, until one comes out otherwise than it should.
    pub(crate) async fn play(&mut self, scenario: &Scenario) -> Result<(), String> {
        for step in &scenario.steps {
            let expected = step.expected.as_deref();
            let found = self.step(step, expected.unwrap_or_default()).await;
            if found.as_deref() != expected {
                let found = found.as_deref().unwrap_or("nothing");
                let ended = self.ended().await;
                return Err(format!("line {}, `{}`: found {found}{ended}", step.number, step.line));
            }
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step, expected: &str) -> Option<String> {
        let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
        match words[..] {
            ["pass", time] => sleep(seconds(time)).await,
            ["silent"] => self.weather.silent(),
            ["back"] => self.weather.back(),
            ["cut"] => self.weather.cut(),
            ["lead", "moves"] => self.cluster.lead_moves().await,
            ["policy", limit] => self.cluster.policy(limit).await,
            ["operator", "ends", resource] => self.cluster.force_release(&self.name(resource)).await,
            ["holder", resource] => return Some(self.settled(resource, expected, holder).await),
            ["waiters", resource] => return Some(self.settled(resource, expected, waiters).await),
            [client, verb, ref rest @ ..] => return self.of_client(step, client, verb, rest).await,
            _ => panic!("no step: {}", step.line),
        }
        None
    }

    async fn of_client(&mut self, step: &Step, client: &str, verb: &str, rest: &[&str]) -> Option<String> {
        let object = self.client(client).await;
        if verb == "closes" {
            return Some(
                in_time(Duration::from_secs(5), object.close())
                    .await
                    .map_or("late", |()| "closed")
                    .to_owned(),
            );
        }
        let names = rest[0];
        let key = (client.to_owned(), names.to_owned());
        let resource = self.name(names);
        match (verb, rest) {
            ("acquire" | "try" | "begin", _) => {
                let mut request = object.lock(&resource);
                request = step.time("ttl").into_iter().fold(request, LockRequest::ttl);
                request = step.time("wait").into_iter().fold(request, LockRequest::wait);
                match verb {
                    "begin" => drop(self.begun.insert(key, tokio::spawn(request.acquire()))),
                    "try" => return Some(self.acquired(key, request.try_acquire().await)),
                    _ => {
                        let within = step.time("wait").unwrap_or(ENDS_WITHIN);
                        let acquired = in_time(within, request.acquire()).await;
                        return Some(
                            acquired.map_or("late".to_owned(), |acquired| self.acquired(key, acquired)),
                        );
                    }
                }
            }
            ("all", _) => return Some(self.all(&object, client, step, names).await),
            ("ends", _) => {
                let begun = self.begun.remove(&key).unwrap();
                let ended = in_time(ENDS_WITHIN, begun).await;
                return Some(ended.map_or("late".to_owned(), |ended| self.acquired(key, ended.unwrap())));
            }
            ("abandon", _) => self.begun.remove(&key).unwrap().abort(),
            ("drop", _) => drop(self.held.remove(&key).unwrap()),
            ("release", _) => {
                let lock = self.held.remove(&key).unwrap();
                let released = in_time(Duration::from_secs(5), lock.release()).await;
                return Some(released.map_or("late".to_owned(), |released| outcome(released, "released")));
            }
            ("state", _) => return Some(state(self.held[&key].state()).to_owned()),
            ("keeps", [_, time]) => {
                let lost = timeout(seconds(time), self.held[&key].lost()).await;
                return Some(lost.map_or("held".to_owned(), loss));
            }
            ("loses", [_, time]) => {
                let lost = in_time(seconds(time), self.held[&key].lost()).await;
                return Some(lost.map_or("late".to_owned(), loss));
            }
            ("final", [_, time]) => {
                let lock = &self.held[&key];
                let told = async {
                    while !lock.is_final() {
                        sleep(Duration::from_millis(20)).await;
                    }
                };
                return Some(in_time(seconds(time), told).await.map_or("late", |()| "final").to_owned());
            }
            ("token", _) => {
                let token = self.held[&key].token();
                let is_larger = self.largest.replace(token).is_none_or(|largest| token > largest);
                return Some(if is_larger { "larger" } else { "not larger" }.to_owned());
            }
            _ => panic!("no step: {}", step.line),
        }
        None
    }

    async fn all(&mut self, object: &Client, client: &str, step: &Step, names: &str) -> String {
        let mut request = object.locks(names.split(',').map(|name| self.name(name)));
        request = step.time("ttl").into_iter().fold(request, LocksRequest::ttl);
        request = step.time("wait").into_iter().fold(request, LocksRequest::wait);
        let within = step.time("wait").unwrap_or(ENDS_WITHIN);
        match in_time(within, request.acquire()).await {
            None => "late".to_owned(),
            Some(Err(error)) => outcome(Err(error), ""),
            Some(Ok(locks)) => {
                for lock in locks {
                    let name = lock.resource().as_str().rsplit('/').next().unwrap().to_owned();
                    self.held.insert((client.to_owned(), name), lock);
                }
                "held".to_owned()
            }
        }
    }

    /// What had been begun and is over without having been asked for.
    async fn ended(&mut self) -> String {
        let mut ended = String::new();
        for (key, begun) in std::mem::take(&mut self.begun) {
            if begun.is_finished() {
                ended += &format!("; {key:?} had ended: {:?}", begun.await);
            }
        }
        ended
    }

    fn acquired(&mut self, key: (String, String), acquired: Acquired) -> String {
        match acquired {
            Ok(lock) => {
                self.held.insert(key, lock);
                "held".to_owned()
            }
            Err(error) => outcome(Err(error), ""),
        }
    }

    fn name(&self, resource: &str) -> String {
        format!("{}/{resource}", self.prefix)
    }

    async fn client(&mut self, letter: &str) -> Client {
        if !self.clients.contains_key(letter) {
            self.clients.insert(letter.to_owned(), self.cluster.client(letter, &self.weather).await);
        }
        self.clients[letter].clone()
    }

    /// What the cluster says of a resource, once that is as expected or time is up.
    async fn settled(&self, resource: &str, expected: &str, show: fn(&Status) -> String) -> String {
        let until = Instant::now() + SETTLES_WITHIN;
        loop {
            let found = show(&self.cluster.status(&self.name(resource)).await);
            if found == expected || Instant::now() >= until {
                return found;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The result, or none when it took longer than it may.
async fn in_time<T>(within: Duration, what: impl Future<Output = T>) -> Option<T> {
    timeout(within + ROOM, what).await.ok()
}

fn holder(status: &Status) -> String {
    match status {
        Status::Free { .. } => "nobody".to_owned(),
        Status::Held { holder, .. } => holder.clone(),
    }
}

fn waiters(status: &Status) -> String {
    let (Status::Free { queue_length, .. } | Status::Held { queue_length, .. }) = status;
    queue_length.to_string()
}

fn state(state: State) -> &'static str {
    match state {
        State::Held => "held",
        State::Uncertain => "uncertain",
        State::Lost => "lost",
    }
}

fn loss(loss: Loss) -> String {
    match loss {
        Loss::Deadline => "deadline".to_owned(),
        Loss::HoldLimit => "hold_limit".to_owned(),
        Loss::Ended(Ending::Forced) => "forced".to_owned(),
        Loss::Ended(Ending::Expired) => "expired".to_owned(),
        Loss::Ended(Ending::Unknown) => "unknown".to_owned(),
        other => format!("{other:?}"),
    }
}

fn outcome(result: Result<(), Error>, done: &str) -> String {
    let Err(error) = result else { return done.to_owned() };
    match error.kind() {
        ErrorKind::Held { .. } => "refused".to_owned(),
        ErrorKind::TimedOut => "timed_out".to_owned(),
        ErrorKind::Invalid => "invalid".to_owned(),
        ErrorKind::Lost(_) => "lost".to_owned(),
        ErrorKind::LeaseEnded(_) => "lease_ended".to_owned(),
        ErrorKind::Unreachable | ErrorKind::Unavailable(_) => "unreachable".to_owned(),
        _ => format!("{error:?}"),
    }
}
