//! Which request a log line or a span is about: through the doors, from node to node, to the log and back.
//!
//! Owns: trace ids as W3C's `traceparent` carries them, which requests are followed, and their spans. Never: a request id
//! or a lease id of a client, which are secret; never more than a few additions for a request that isn't followed.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use kunci_process::now;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::Instant;
use tracing::{Instrument as _, Span, debug, field, info_span};

/// `traceparent`: <https://www.w3.org/TR/trace-context/>.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What followed requests say has this target, so that it can be turned on by itself. Macros want it as a literal.
macro_rules! requests {
    () => {
        "kunci::request"
    };
}

/// The bit of `traceparent` that asks for a trace to be kept.
const SAMPLED: u8 = 1;

/// Makes ids, and says which requests are followed.
#[derive(Debug)]
pub(crate) struct Traces {
    seeds: [u64; 2],
    drawn: AtomicU64,
    /// Of so many requests that nobody asks to follow, one is followed; 0 is none.
    one_in: u64,
}

/// What a client, or another node, says of the trace that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The trace; never 0.
    pub(crate) id: u128,
    /// The span that sent the request; never 0.
    pub(crate) span_id: u64,
    /// Whether the trace is to be kept.
    pub(crate) is_sampled: bool,
}

/// One request's place in its trace.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    told: Told,
    /// None for a request that isn't followed.
    span: Span,
}

impl Traces {
    /// Ids that no other process has; none of them is a secret.
    pub(crate) fn new(one_in: u64) -> Self {
        // Without randomness ids may be those of another node's traces: a nuisance, and no more.
        let seed = || getrandom::u64().unwrap_or_default();
        Self { seeds: [seed(), seed()], drawn: AtomicU64::new(0), one_in }
    }

    /// The trace of a request over HTTP: the one that it brings, or else a new one.
    pub(crate) fn of_http(&self, headers: &HeaderMap, method: &Method, path: &str) -> Trace {
        self.begin(read(headers), |told| {
            info_span!(target: requests!(), "request", request = field::Empty, %method, path, told = told.is_some())
        })
    }

    /// The trace of a request that brings none, when it is to be followed.
    pub(crate) fn picked(&self, op: &str, resource: &dyn fmt::Display) -> Option<Trace> {
        (self.one_in > 0).then(|| {
            self.begin(
                None,
                |_| info_span!(target: requests!(), "request", request = field::Empty, op, %resource),
            )
        })
    }

    fn begin(&self, told: Option<Told>, span: impl FnOnce(Option<Told>) -> Span) -> Trace {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        let is_followed =
            told.map_or(self.one_in > 0 && number.is_multiple_of(self.one_in.max(1)), |told| told.is_sampled);
        let [high, low] = self.seeds.map(|seed| mixed(seed, number));
        let id = told.map_or(u128::from(high) << 64 | u128::from(low), |told| told.id);
        // Never 0, which would be no id.
        let own = Told { id: id.max(1), span_id: (high ^ low).max(1), is_sampled: is_followed };
        if !is_followed {
            return Trace { told: own, span: Span::none() };
        }
        let span = span(told);
        #[cfg(feature = "otlp")]
        let own = crate::otlp::adopt(&span, told).map_or(own, |(id, span_id)| Told { id, span_id, ..own });
        span.record("request", field::display(format_args!("{:032x}", own.id)));
        Trace { told: own, span }
    }
}

impl Trace {
    /// What goes on to another node, and back to the client.
    pub(crate) fn traceparent(&self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.told.to_string()).ok()
    }

    /// Does the work of this request; when it is followed, what is said meanwhile is said of it.
    pub(crate) async fn follow<T>(&self, began: &'static str, work: impl Future<Output = T>) -> T {
        if self.span.is_none() {
            return work.await;
        }
        let followed = async {
            let since: Instant = now();
            debug!(target: requests!(), "{began}");
            let done = work.await;
            let ms = u64::try_from(now().duration_since(since).as_millis()).unwrap_or(u64::MAX);
            debug!(target: requests!(), ms, "the request is answered");
            done
        };
        followed.instrument(self.span.clone()).await
    }
}

/// Passes a followed request on to another node.
pub(crate) async fn pass_on<T>(node_id: u64, work: impl Future<Output = T>) -> T {
    if Span::current().is_none() {
        return work.await;
    }
    debug!(target: requests!(), node_id, "the request is passed on to the leader");
    work.instrument(info_span!(target: requests!(), "pass_on", node_id)).await
}

/// Puts a followed request into the log, and waits until a quorum has it and it is applied.
pub(crate) async fn commit<T>(
    work: impl Future<Output = T>,
    position: impl FnOnce(&T) -> Option<String>,
) -> T {
    if Span::current().is_none() {
        return work.await;
    }
    let done = work.instrument(info_span!(target: requests!(), "commit")).await;
    match position(&done) {
        Some(position) => debug!(target: requests!(), position, "the log has the request"),
        None => debug!(target: requests!(), "the log hasn't answered for the request"),
    }
    done
}

/// Waits in the queue with a followed request.
pub(crate) async fn wait<T>(work: impl Future<Output = T>) -> T {
    if Span::current().is_none() {
        return work.await;
    }
    debug!(target: requests!(), "the request waits in the queue");
    work.instrument(info_span!(target: requests!(), "wait")).await
}

/// SplitMix64: ids that differ from each other, and not more.
fn mixed(seed: u64, number: u64) -> u64 {
    let mut bits = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = if self.is_sampled { SAMPLED } else { 0 };
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.id, self.span_id)
    }
}

/// The one `traceparent` of a request; what can't be read is taken for none, as the standard wants it.
fn read(headers: &HeaderMap) -> Option<Told> {
    let mut all = headers.get_all(&TRACEPARENT).into_iter();
    let (one, None) = (all.next()?, all.next()) else { return None };
    parse(one.to_str().ok()?)
}

fn parse(text: &str) -> Option<Told> {
    let mut parts = text.split('-');
    let (version, id, span_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // A later version may say more, after another dash.
    let is_over = parts.next().is_none();
    let version = hex(version, 2)?;
    if version == 0xff || (version == 0 && !is_over) {
        return None;
    }
    let told = Told {
        id: hex(id, 32)?,
        span_id: u64::try_from(hex(span_id, 16)?).ok()?,
        is_sampled: hex(flags, 2)? & u128::from(SAMPLED) != 0,
    };
    (told.id != 0 && told.span_id != 0).then_some(told)
}

/// So many digits, in lower case.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (text.len() == digits && text.bytes().all(is_digit)).then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ONE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (TRACEPARENT, HeaderValue::from_static(value))).collect()
    }

    fn followed(traces: &Traces, values: &[&'static str]) -> Trace {
        traces.of_http(&headers(values), &Method::GET, "/locks")
    }

    #[test]
    fn a_trace_that_a_client_brings_goes_on_under_its_id() {
        let told = parse(ONE).unwrap();
        assert_eq!(told.to_string(), ONE);
        let own = followed(&Traces::new(0), &[ONE]).told;
        assert_eq!((own.id, own.is_sampled), (told.id, true));
        assert_ne!(own.span_id, told.span_id, "what is done here is a span of its own");
    }

    #[test]
    fn what_is_no_traceparent_is_taken_for_none() {
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e47+6-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(read(&headers(&[ONE, ONE])), None, "two are none");
        assert!(
            parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more").is_some(),
            "of a later version"
        );
    }

    #[test]
    fn a_request_without_a_trace_gets_an_id_and_is_followed_only_when_it_is_its_turn() {
        let none = Traces::new(0);
        let ids: HashSet<u128> = (0..1_000).map(|_| followed(&none, &[]).told.id).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(!followed(&none, &[]).told.is_sampled && none.picked("acquire", &"r").is_none());

        let some = Traces::new(10);
        let count = (0..1_000).filter(|_| followed(&some, &[]).told.is_sampled).count();
        assert_eq!(count, 100);
        let quiet = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        assert!((0..10).all(|_| !followed(&some, &[quiet]).told.is_sampled), "its client doesn't want it");
    }
}
