//! Spans of followed requests, sent to a collector over OTLP: with the cargo feature `otlp` only.
//!
//! Owns: the way there, bounded in memory and time, and ids that the spans and `traceparent` have in common. Never: holds
//! a request up; what the collector doesn't take in time is dropped.

use crate::trace::Told;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use std::pin::Pin;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::Span;
use tracing::subscriber::Subscriber;
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::registry::LookupSpan;

/// What a collector may take for its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// An answer has a few bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// What a node that stops waits for its last spans to be taken.
const LAST_WITHIN: Duration = Duration::from_secs(2);

/// Where spans go.
#[derive(Debug)]
pub(crate) struct Exporting(SdkTracerProvider);

/// What collects them. `collector` is the host and port of its OTLP over HTTP.
pub(crate) fn layer<S>(
    collector: &str,
    node: &str,
) -> Result<(OpenTelemetryLayer<S, Tracer>, Exporting), String>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(OnRuntime::here())
        .with_endpoint(format!("http://{collector}/v1/traces"))
        .with_timeout(ANSWER_WITHIN)
        .build()
        .map_err(|error| error.to_string())?;
    let resource = Resource::builder_empty()
        .with_service_name("kunci")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("service.instance.id", node.to_owned()))
        .build();
    let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("kunci"));
    // Where in the source something was said, and in which thread, is of no use to an operator.
    Ok((layer.with_location(false).with_threads(false), Exporting(provider)))
}

impl Exporting {
    /// Sends what is left.
    pub(crate) async fn end(self) {
        let last = kunci_process::blocking(move || self.0.shutdown_with_timeout(LAST_WITHIN));
        if let Ok(Err(error)) = last.await {
            tracing::debug!(%error, "the last spans weren't taken");
        }
    }
}

/// Makes the span a part of the trace that was told, and says which ids it has; nothing when no spans are collected.
pub(crate) fn adopt(span: &Span, told: Option<Told>) -> Option<(u128, u64)> {
    if let Some(told) = told {
        let (id, parent) = (TraceId::from(told.id), SpanId::from(told.span_id));
        let remote = SpanContext::new(id, parent, TraceFlags::SAMPLED, true, TraceState::NONE);
        // It fails where no layer collects.
        let _ = span.set_parent(Context::new().with_remote_span_context(remote));
    }
    let context = span.context();
    let own = context.span().span_context().clone();
    own.is_valid().then(|| {
        (u128::from_be_bytes(own.trace_id().to_bytes()), u64::from_be_bytes(own.span_id().to_bytes()))
    })
}

/// HTTP on this process's runtime, for the exporter, whose thread has none.
#[derive(Debug)]
struct OnRuntime {
    runtime: Handle,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl OnRuntime {
    fn here() -> Self {
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build_http();
        Self { runtime: Handle::current(), client }
    }
}

/// What the exporter's trait wants, written out.
type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

#[expect(
    clippy::disallowed_methods,
    reason = "the exporter is of a real process: its thread is none of a simulated one"
)]
impl HttpClient for OnRuntime {
    fn send_bytes<'life0, 'async_trait>(&'life0 self, request: Request<Bytes>) -> Sent<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let (answered, answer) = oneshot::channel();
        let client = self.client.clone();
        self.runtime.spawn(async move {
            let exchange = async {
                let (parts, body) = client.request(request.map(Full::new)).await?.into_parts();
                let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
                Ok::<_, HttpError>(Response::from_parts(parts, body))
            };
            let done = match tokio::time::timeout(ANSWER_WITHIN, exchange).await {
                Ok(done) => done,
                Err(_) => Err(HttpError::from("the collector didn't answer in time")),
            };
            // Nobody waits any more when the node stops.
            let _ = answered.send(done);
        });
        Box::pin(async move { answer.await? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{TRACEPARENT, Traces, commit};
    use http::{HeaderMap, HeaderValue, Method};
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use std::convert::Infallible;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use tracing_subscriber::layer::SubscriberExt as _;

    /// The smallest collector: path and body of whatever comes.
    async fn collector() -> (String, mpsc::UnboundedReceiver<(String, Vec<u8>)>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (taken, collected) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let taken = taken.clone();
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    let taken = taken.clone();
                    async move {
                        let path = request.uri().path().to_owned();
                        let body = request.into_body().collect().await.unwrap().to_bytes().to_vec();
                        taken.send((path, body)).unwrap();
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        (address, collected)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_followed_request_reaches_the_collector_under_the_id_that_its_client_gave() {
        let (address, mut collected) = collector().await;
        let (layer, exporting) = layer(&address, "node-1").unwrap();
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        let traces = Traces::new(0);
        let one = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let headers = HeaderMap::from_iter([(TRACEPARENT, HeaderValue::from_static(one))]);

        let trace = traces.of_http(&headers, &Method::POST, "/locks/r/acquire");
        trace.follow("it came", commit(async {}, |()| Some("7.0".to_owned()))).await;
        let onward = trace.traceparent().unwrap();
        drop((trace, guard));
        exporting.end().await;

        let (path, body) = collected.recv().await.unwrap();
        assert_eq!(path, "/v1/traces");
        let has = |wanted: &[u8]| body.windows(wanted.len()).any(|window| window == wanted);
        assert!(has(&0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes()), "the trace");
        assert!(has(&0x00f0_67aa_0ba9_02b7_u64.to_be_bytes()), "its client's span");
        assert!(has(b"request") && has(b"commit") && has(b"node-1"));
        let span_id = u64::from_str_radix(&onward.to_str().unwrap()[36..52], 16).unwrap();
        assert!(has(&span_id.to_be_bytes()), "what goes on names the span that was collected");
    }
}
