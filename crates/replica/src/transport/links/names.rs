//! From the name of a host to its addresses.
//!
//! Owns: that a name server that is gone, or answers late, neither cuts members off that were reached before nor
//! takes up a thread for each try. Never: keeps an address for longer than until the next good answer.

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use kunci_process::timeout;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::lookup_host;

/// After so long the addresses of last time will do: a part of the second that a whole connect has.
const ANSWER_WITHIN: Duration = Duration::from_millis(300);
/// The most names that are remembered or looked up at a time; each look-up may hold a thread for many seconds.
const NAMES_MAX: usize = 64;

type Found = Result<Vec<SocketAddr>, Arc<io::Error>>;
type LookUp = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// The names. A clone is another handle to the same.
#[derive(Clone)]
pub(super) struct Names {
    look_up: LookUp,
    known: Arc<Mutex<BTreeMap<String, Name>>>,
}

#[derive(Default)]
struct Name {
    /// Of the last good answer.
    addresses: Vec<SocketAddr>,
    /// A look-up that goes on: a second one would only wait for the same.
    asked: Option<Shared<BoxFuture<'static, Found>>>,
}

impl Default for Names {
    fn default() -> Self {
        Self::new(Arc::new(|name| async move { Ok(lookup_host(name).await?.collect()) }.boxed()))
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} names", self.known().len())
    }
}

impl Names {
    fn new(look_up: LookUp) -> Self {
        Self { look_up, known: Arc::default() }
    }

    /// The addresses of a `host:port`; at least one. The caller bounds the time.
    ///
    /// # Errors
    /// When the name has none, now and before.
    pub(super) async fn addresses(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = name.parse() {
            return Ok(vec![address]);
        }
        let asked = self.ask(name)?;
        let found = match timeout(ANSWER_WITHIN, asked.clone()).await {
            Ok(Ok(found)) => return Ok(found),
            late_or_bad => late_or_bad.ok(),
        };
        let before = self.known().get(name).map(|known| known.addresses.clone()).unwrap_or_default();
        if !before.is_empty() {
            return Ok(before);
        }
        let found = match found {
            Some(found) => found,
            None => asked.await,
        };
        found.map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    fn ask(&self, name: &str) -> io::Result<Shared<BoxFuture<'static, Found>>> {
        let mut known = self.known();
        if let Some(asked) = known.get(name).and_then(|name| name.asked.clone()) {
            return Ok(asked);
        }
        if !known.contains_key(name) && known.len() >= NAMES_MAX {
            let forgettable =
                known.iter().find(|(_, name)| name.asked.is_none()).map(|(name, _)| name.clone());
            let Some(forgettable) = forgettable else {
                return Err(io::Error::other(format!(
                    "{NAMES_MAX} names of hosts are being looked up already"
                )));
            };
            known.remove(&forgettable);
        }
        // A task of its own: the system's call goes on even if nobody waits for it any more.
        let task = kunci_process::spawn(self.clone().find(name.to_owned()));
        let asked = async { task.await.map_err(|error| Arc::new(io::Error::other(error)))? }.boxed().shared();
        known.entry(name.to_owned()).or_default().asked = Some(asked.clone());
        Ok(asked)
    }

    async fn find(self, name: String) -> Found {
        let found = match (self.look_up)(name.clone()).await {
            Ok(addresses) if addresses.is_empty() => {
                Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"))
            }
            found => found,
        };
        if let Some(known) = self.known().get_mut(&name) {
            known.asked = None;
            if let Ok(addresses) = &found {
                known.addresses.clone_from(addresses);
            }
        }
        found.map_err(Arc::new)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Name>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::{Instant, sleep};

    const ADDRESS: &str = "10.0.0.7:7402";

    /// What the name server does at each of its questions, in turn; the last for ever.
    #[derive(Clone, Copy)]
    enum Server {
        Answers,
        Denies,
        IsSilent,
    }

    fn names(turns: Vec<Server>) -> (Names, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let look_up = move |_| {
            let at = count.fetch_add(1, Ordering::Relaxed).min(turns.len() - 1);
            let server = turns[at];
            async move {
                match server {
                    Server::Answers => Ok(vec![ADDRESS.parse().unwrap()]),
                    Server::Denies => Err(io::Error::other("no such name")),
                    Server::IsSilent => {
                        sleep(Duration::from_secs(30)).await;
                        Err(io::Error::other("the name server doesn't answer"))
                    }
                }
            }
            .boxed()
        };
        (Names::new(Arc::new(look_up)), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_not_looked_up_and_a_name_each_time() {
        let (names, asked) = names(vec![Server::Answers]);
        assert_eq!(names.addresses("[::1]:7402").await.unwrap(), ["[::1]:7402".parse().unwrap()]);
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        for _ in 0..2 {
            assert_eq!(names.addresses("two:7402").await.unwrap(), [ADDRESS.parse().unwrap()]);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_name_server_members_are_reached_where_they_were() {
        let (names, asked) = names(vec![Server::Answers, Server::Denies, Server::IsSilent]);
        for _ in 0..10 {
            let began = Instant::now();
            assert_eq!(names.addresses("two:7402").await.unwrap(), [ADDRESS.parse().unwrap()]);
            assert!(began.elapsed() <= ANSWER_WITHIN + Duration::from_millis(1));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3, "the silent one is asked once at a time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_never_was_is_an_error_in_the_words_of_the_system() {
        let (names, _) = names(vec![Server::Denies]);
        assert_eq!(names.addresses("tow:7402").await.unwrap_err().to_string(), "no such name");
    }

    #[tokio::test(start_paused = true)]
    async fn a_bounded_number_of_names_is_looked_up_at_a_time() {
        let (names, asked) = names(vec![Server::IsSilent]);
        for at in 0..NAMES_MAX {
            drop(timeout(Duration::from_millis(1), names.addresses(&format!("host-{at}:7402"))).await);
        }
        let error = names.addresses("one-more:7402").await.unwrap_err();
        assert_eq!(error.to_string(), "64 names of hosts are being looked up already");
        assert_eq!(asked.load(Ordering::Relaxed), NAMES_MAX);
    }
}
