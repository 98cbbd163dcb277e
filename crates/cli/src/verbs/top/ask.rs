//! Asking nodes, again and again.
//!
//! Owns: which calls are made, how often, and of whom. Never: what the answers mean together.

use super::model::News;
use super::scrape::Scrape;
use super::told::{self, Cluster, Detail, LOCKS_MAX, Lock};
use crate::answer::{Answer, text};
use crate::client::{Call, CallError, Client};
use crate::sse::Cutter;
use crate::url::{lock_path, with_query};
use http_body_util::BodyExt as _;
use kunci_client::{BootClock, Clock as _, Moment};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// A node that doesn't answer within this isn't one to rely on now.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// A stream has a sign of life every ten seconds.
const SILENCE_MAX: Duration = Duration::from_secs(25);
/// From one attempt at a stream to the next.
const PAUSE: Duration = Duration::from_millis(500);
/// So many nodes are tried for an answer about locks, each time.
const WAYS_MAX: usize = 3;
/// A new stream begins with about so many events from before.
const EVENTS_BEFORE: u64 = 50;
/// The longest queues that are shown.
const HOT_MAX: usize = 50;
/// What ends next.
const EXPIRING_MAX: usize = 100;
/// How much of a lock's past is shown.
const HISTORY_MAX: usize = 100;

/// What there is to ask about locks, and of whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The prefix.
    pub(super) prefix: String,
    /// The lock that is looked at.
    pub(super) opened: Option<String>,
    /// Nodes, best first.
    pub(super) ways: Vec<String>,
    /// Those of them that don't answer now.
    pub(super) dead: Vec<String>,
    /// The revision, when one is known.
    pub(super) revision: u64,
}

/// Kept connections, one client for each node.
#[derive(Debug, Default)]
pub(super) struct Clients(BTreeMap<String, Client>);

impl Clients {
    /// The client for a node, if that is an address at all.
    fn of(&mut self, url: &str) -> Result<Client, String> {
        if let Some(client) = self.0.get(url) {
            return Ok(client.clone());
        }
        let client = Client::new(url).map_err(|failure| failure.text)?;
        self.0.insert(url.to_owned(), client.clone());
        Ok(client)
    }

    /// Those of the nodes that are tried for a read.
    fn ways(&mut self, wanted: &Wanted) -> Result<Vec<Client>, String> {
        self.0.retain(|url, _| wanted.ways.contains(url));
        wanted.ways.iter().take(WAYS_MAX).map(|way| self.of(way)).collect()
    }
}

/// Something that was learned, and when it was asked for.
pub(super) type Learned = (Moment, News);

/// Asks one node about itself until nobody wants to know.
pub(super) async fn about_node(url: String, every: Duration, learned: mpsc::Sender<Learned>) {
    let mut clients = Clients::default();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if learned.send(node_once(&mut clients, &url).await).await.is_err() {
            return;
        }
    }
}

/// Asks one node about itself.
pub(super) async fn node_once(clients: &mut Clients, url: &str) -> Learned {
    let asked_at = BootClock.now();
    let told = match clients.of(url) {
        Ok(client) => node(&client).await,
        Err(why) => Err(why),
    };
    (asked_at, News::Node { url: url.to_owned(), told })
}

async fn node(client: &Client) -> Result<(Cluster, Scrape), String> {
    let cluster = get(client, "/cluster".to_owned()).await?;
    let metrics = timeout(ANSWER_WITHIN, client.text("/metrics".to_owned())).await;
    let metrics = metrics.map_err(|_| "no numbers within 2s".to_owned())?.map_err(|error| plain(&error))?;
    Ok((told::cluster(&cluster), Scrape::read(&metrics)))
}

/// Asks about locks until nobody wants to know; at once when something else is wanted.
pub(super) async fn about_locks(
    mut wanted: watch::Receiver<Wanted>,
    every: Duration,
    learned: mpsc::Sender<Learned>,
) {
    let mut clients = Clients::default();
    loop {
        let now = wanted.borrow_and_update().clone();
        if !now.ways.is_empty() {
            for news in locks_once(&mut clients, &now).await {
                if learned.send(news).await.is_err() {
                    return;
                }
            }
        }
        let changed = async {
            // Another way alone is no reason to ask again.
            while wanted.changed().await.is_ok() {
                let next = wanted.borrow_and_update();
                if next.prefix != now.prefix || next.opened != now.opened || now.ways.is_empty() {
                    return;
                }
            }
            std::future::pending::<()>().await;
        };
        let _ = timeout(every, changed).await;
    }
}

/// Asks once about all that is wanted of the locks.
pub(super) async fn locks_once(clients: &mut Clients, wanted: &Wanted) -> Vec<Learned> {
    let asked_at = BootClock.now();
    let ways = clients.ways(wanted);
    let ways = &ways;
    let prefix = Some(wanted.prefix.clone()).filter(|prefix| !prefix.is_empty());
    let path = with_query("/locks", &[("prefix", prefix), ("limit", Some(LOCKS_MAX.to_string()))]);
    let hot = with_query("/hot", &[("limit", Some(HOT_MAX.to_string()))]);
    let next = with_query("/expiring", &[("limit", Some(EXPIRING_MAX.to_string()))]);
    let detail = async {
        match &wanted.opened {
            Some(resource) => Some((resource.clone(), detail(ways, resource).await)),
            None => None,
        }
    };
    let (page, hot, next, detail) = tokio::join!(any(ways, path), any(ways, hot), any(ways, next), detail);
    let page = page.map(|body| (told::locks(&body), text(&body, "next").is_some()));
    let hot = hot.map(|body| told::locks(&body).into_iter().filter(|lock: &Lock| lock.waiting > 0).collect());
    let mut news = vec![
        (asked_at, News::Locks { prefix: wanted.prefix.clone(), told: page }),
        (asked_at, News::Hot(hot)),
        (asked_at, News::Expiring(next.map(|body| told::locks(&body)))),
    ];
    news.extend(detail.map(|(resource, told)| (asked_at, News::Detail { resource, told })));
    news
}

async fn detail(ways: &Ways, resource: &str) -> Result<Detail, String> {
    let (lock, queue, history) = tokio::try_join!(
        any(ways, lock_path(resource, "")),
        any(ways, lock_path(resource, "/queue")),
        any(ways, lock_path(resource, "/history")),
    )?;
    let events = told::history(&history, HISTORY_MAX);
    Ok(Detail { lock: told::lock(&lock), waiters: told::waiters(&queue), events })
}

/// Follows events until nobody wants to know; begins anew with another prefix.
pub(super) async fn about_events(mut wanted: watch::Receiver<Wanted>, learned: mpsc::Sender<Learned>) {
    let mut clients = Clients::default();
    let mut turn = 0;
    let mut place = Place { last_seen: None, looks_back: true };
    loop {
        let now = wanted.borrow_and_update().clone();
        let way = now.ways.get(turn % now.ways.len().max(1)).cloned();
        // As long as nobody has told of a revision it isn't known where to begin.
        let Some(way) = way.filter(|_| now.revision > 0) else {
            if wanted.changed().await.is_err() {
                return;
            }
            continue;
        };
        let is_over = async {
            while wanted.changed().await.is_ok() {
                let next = wanted.borrow_and_update();
                if next.prefix != now.prefix || next.dead.contains(&way) {
                    return next.prefix != now.prefix;
                }
            }
            std::future::pending().await
        };
        let why = tokio::select! {
            why = follow(clients.of(&way), &now, &mut place, &learned) => why,
            is_another = is_over => {
                if is_another {
                    place = Place { last_seen: None, looks_back: true };
                }
                turn += usize::from(!is_another);
                continue;
            }
        };
        let Some(why) = why else { return };
        turn += 1;
        if learned.send((BootClock.now(), News::Stream(Err(why)))).await.is_err() {
            return;
        }
        sleep(PAUSE).await;
    }
}

/// Where a stream goes on.
struct Place {
    last_seen: Option<u64>,
    /// Whether it begins with some events from before.
    looks_back: bool,
}

impl Place {
    /// What was to be read isn't kept: from now on, then.
    fn lose(&mut self) {
        *self = Self { last_seen: None, looks_back: false };
    }
}

/// Follows one stream, and says how it ended; nothing when nobody wants to know any more.
async fn follow(
    client: Result<Client, String>,
    wanted: &Wanted,
    place: &mut Place,
    learned: &mpsc::Sender<Learned>,
) -> Option<String> {
    let client = match client {
        Ok(client) => client,
        Err(why) => return Some(why),
    };
    let before = place.looks_back.then(|| wanted.revision.saturating_sub(EVENTS_BEFORE));
    let after = place.last_seen.or(before);
    let prefix = Some(wanted.prefix.clone()).filter(|prefix| !prefix.is_empty());
    let path = with_query("/events", &[("prefix", prefix), ("after", after.map(|after| after.to_string()))]);
    let mut stream = match timeout(ANSWER_WITHIN, client.stream(path, None)).await {
        Ok(Ok(Ok(stream))) => stream,
        Ok(Ok(Err(answer))) => {
            if answer.status == http::StatusCode::GONE {
                place.lose();
            }
            return Some(answer.refusal_text());
        }
        Ok(Err(error)) => return Some(plain(&error)),
        Err(_) => return Some("no stream of events within 2s".to_owned()),
    };
    learned.send((BootClock.now(), News::Stream(Ok(())))).await.ok()?;
    let mut cutter = Cutter::default();
    loop {
        let frame = match timeout(SILENCE_MAX, stream.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_)) | None) => return Some("the stream of events ended".to_owned()),
            Err(_) => return Some("the stream of events is silent".to_owned()),
        };
        let Some(bytes) = frame.data_ref() else { continue };
        let Ok(events) = cutter.push(bytes) else {
            return Some("that is no stream of events".to_owned());
        };
        for event in events {
            place.last_seen = event.id.or(place.last_seen);
            if event.kind.as_deref() == Some("compacted") {
                place.lose();
                return Some("events were missed".to_owned());
            }
            let Ok(body) = serde_json::from_str::<Value>(&event.data) else { continue };
            learned.send((BootClock.now(), News::Event(told::event(&body)))).await.ok()?;
        }
    }
}

/// Who is asked, best first; or why nobody is.
type Ways = Result<Vec<Client>, String>;

/// A read that any node answers, by the first of them that does.
async fn any(ways: &Ways, path: String) -> Result<Value, String> {
    let mut why = "no node is known".to_owned();
    for client in ways.as_ref().map_err(String::clone)? {
        match get(client, path.clone()).await {
            Ok(body) => return Ok(body),
            Err(error) => why = error,
        }
    }
    Err(why)
}

async fn get(client: &Client, path: String) -> Result<Value, String> {
    let call = Call { answer_within: ANSWER_WITHIN, ..Call::get(path) };
    match client.call(&call).await {
        Ok(answer) if answer.is_success() => Ok(answer.body),
        Ok(answer) => Err(refusal(&answer)),
        Err(error) => Err(plain(&error)),
    }
}

fn refusal(answer: &Answer) -> String {
    super::clean::clean(&answer.refusal_text())
}

/// Without the address, which stands beside it.
fn plain(error: &CallError) -> String {
    let (CallError::NotSent { cause, .. } | CallError::NoAnswer { cause, .. }) = error;
    super::clean::clean(cause)
}
