//! Telling kunci which late writers were turned away: `POST /fencing-rejections`.
//!
//! Owns: a bounded queue of reports, and their way to any node. Never: holds up whoever rejects, or matters to the
//! rejection: a report that is lost is counted, and that is all.

use crate::gate::Rejected;
use bytes::Bytes;
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// How many reports wait to be sent; what comes when so many wait is dropped.
pub const WAITING_MAX: usize = 1_024;

/// How long one node has for one report.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How long an idle connection is kept: less than nodes do, so that a report doesn't meet one that is being closed.
const IDLE_WITHIN: Duration = Duration::from_secs(30);

/// Takes reports. A clone is another handle to the same queue.
#[derive(Clone, Debug)]
pub struct Reporter {
    queue: mpsc::Sender<Rejected>,
    counted: Arc<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    told: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// What became of the reports so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// A node has taken them.
    pub told: u64,
    /// Too many waited already.
    pub dropped: u64,
    /// No node could be told.
    pub failed: u64,
}

/// An address that no report can be sent to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url:?} can't be reported to: expected http://host:port of a kunci node")]
pub struct InvalidUrl {
    /// What was given.
    pub url: String,
}

/// A reporter to the HTTP doors of a cluster's nodes, `http://host:port` each, and what has to be spawned for its reports to be
/// sent. That ends, after what waits was sent, once every handle is dropped.
///
/// One report is sent at a time, to the node that took the last one and then to the others in turn.
///
/// # Errors
/// When there is no address, or one isn't of this form.
pub fn reporter<U: AsRef<str>>(
    urls: &[U],
) -> Result<(Reporter, impl Future<Output = ()> + Send + use<U>), InvalidUrl> {
    let doors: Vec<Uri> = urls.iter().map(|url| door(url.as_ref())).collect::<Result<_, _>>()?;
    if doors.is_empty() {
        return Err(InvalidUrl { url: String::new() });
    }
    let (queue, waiting) = mpsc::channel(WAITING_MAX);
    let counted = Arc::<Counted>::default();
    Ok((Reporter { queue, counted: Arc::clone(&counted) }, send(doors, waiting, counted)))
}

impl Reporter {
    /// Puts a report into the queue, or drops it when the queue is full. Never waits.
    pub fn report(&self, rejected: Rejected) {
        if self.queue.try_send(rejected).is_err() {
            self.counted.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What became of the reports so far; those that wait aren't in it.
    pub fn counts(&self) -> Counts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counted { told, dropped, failed } = &*self.counted;
        Counts { told: count(told), dropped: count(dropped), failed: count(failed) }
    }
}

fn door(url: &str) -> Result<Uri, InvalidUrl> {
    let invalid = || InvalidUrl { url: url.to_owned() };
    let uri: Uri = url.parse().map_err(|_| invalid())?;
    let is_door = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/") && uri.query().is_none();
    let authority = uri.authority().filter(|authority| is_door && !authority.host().is_empty());
    let authority = authority.ok_or_else(invalid)?.clone();
    let door = Uri::builder().scheme("http").authority(authority).path_and_query("/fencing-rejections");
    door.build().map_err(|_| invalid())
}

async fn send(doors: Vec<Uri>, mut waiting: mpsc::Receiver<Rejected>, counted: Arc<Counted>) {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(ANSWER_WITHIN));
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_WITHIN)
        .pool_max_idle_per_host(1)
        .build(connector);
    let mut first = 0;
    while let Some(rejected) = waiting.recv().await {
        let mut taken_by = None;
        for turn in 0..doors.len() {
            let number = (first + turn) % doors.len();
            let Some(door) = doors.get(number) else { continue };
            if tell(&client, door, &rejected).await {
                taken_by = Some(number);
                break;
            }
        }
        match taken_by {
            Some(number) => {
                first = number;
                counted.told.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                counted.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Whether a node has taken it.
async fn tell(client: &Client<HttpConnector, Full<Bytes>>, door: &Uri, rejected: &Rejected) -> bool {
    let body = serde_json::json!({
        "resource": rejected.resource.as_str(),
        "token": rejected.found.get(),
        "current": rejected.kept.get(),
    });
    let request = Request::builder()
        .method(Method::POST)
        .uri(door)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.to_string())));
    let Ok(request) = request else { return false };
    let asked = async {
        let answer = client.request(request).await.ok()?;
        let is_taken = answer.status().is_success();
        // Read to its end, or the connection can't be used again; a node's answer is short.
        http_body_util::Limited::new(answer.into_body(), 64 << 10).collect().await.ok()?;
        Some(is_taken)
    };
    matches!(tokio::time::timeout(ANSWER_WITHIN, asked).await, Ok(Some(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_goes_to_the_http_door_of_a_node() {
        for url in ["http://10.0.0.1:7400", "http://10.0.0.1:7400/", "http://kunci.local"] {
            let door = door(url).unwrap().to_string();
            assert!(door.ends_with("/fencing-rejections") && !door.contains("//fencing"), "{door}");
        }
        for url in [
            "",
            "10.0.0.1:7400",
            "https://10.0.0.1:7400",
            "http://",
            "http://a/locks",
            "http://a?b",
            "nonsense",
        ] {
            assert_eq!(door(url), Err(InvalidUrl { url: url.to_owned() }));
        }
        assert!(reporter::<&str>(&[]).is_err());
    }
}
