//! The fence inside a Rust service: a layer for axum, and whatever else stands on tower.
//!
//! Owns: which requests are asked for a token, and until when one is on the way. Never: the decision; proxy and layer share
//! it.

use crate::claim::{Claim, Problem, is_safe, log};
use crate::gate::{AdmitError, Rejected};
use crate::passage::{AnyGate, Pass, PassError, Passages, Times};
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

/// How long a newer request waits for older ones by default.
const DRAIN: Duration = Duration::from_secs(30);

/// Asks every request that isn't by GET, HEAD, OPTIONS or TRACE for `X-Kunci-Resource` and `X-Kunci-Token`, refuses late
/// ones, and lets a newer one wait until every older one for the same resource has ended. The handler finds the
/// [`Claim`] in the request's extensions.
///
/// A request has ended once its response's body is sent or dropped, or its handler was dropped: when the client goes away,
/// axum drops the handler at its next `await`. What a handler has given away to a task or thread of its own isn't seen
/// here; let the handler wait for it in a task of its own that it awaits.
///
/// With several instances of a service each layer knows only its own requests: then let the store compare tokens too.
///
/// # Example
/// ```
/// use axum::{Router, routing::put};
/// use kunci_fence::gate::FileGate;
/// use kunci_fence::layer::FenceLayer;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// let fence = FenceLayer::new(FileGate::open(folder).unwrap());
/// let app: Router = Router::new().route("/orders/{id}", put(async || "written")).layer(fence);
/// ```
#[derive(Clone)]
pub struct FenceLayer {
    passages: Passages,
    on_rejected: OnRejected,
}

/// What is told of each rejection.
type OnRejected = Option<Arc<dyn Fn(&Rejected) + Send + Sync>>;

impl FenceLayer {
    /// A fence that this gate keeps. A newer request waits at most 30 s.
    pub fn new(gate: impl Into<AnyGate>) -> Self {
        Self::draining_within(gate, DRAIN)
    }

    /// As [`FenceLayer::new`]; a newer request waits at most this long for older ones, then it is refused with 503.
    pub fn draining_within(gate: impl Into<AnyGate>, drain: Duration) -> Self {
        // A handler that was dropped does nothing any more: there is nothing to lose sight of.
        let times = Times { drain, settle: Duration::ZERO };
        Self { passages: Passages::new(gate, times), on_rejected: None }
    }

    /// Calls this for each late request that is refused, besides the line in the log: to count it, or to report it with
    /// `kunci_fence::report`. It mustn't wait.
    #[must_use]
    pub fn on_rejected(mut self, told: impl Fn(&Rejected) + Send + Sync + 'static) -> Self {
        self.on_rejected = Some(Arc::new(told));
        self
    }

    /// What is on the way, for metrics.
    pub fn passages(&self) -> &Passages {
        &self.passages
    }
}

impl<S> Layer<S> for FenceLayer {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { inner, fence: self.clone() }
    }
}

/// A service behind a [`FenceLayer`].
#[derive(Clone)]
pub struct Fenced<S> {
    inner: S,
    fence: FenceLayer,
}

impl<S, Q, B> Service<Request<Q>> for Fenced<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    Q: Send + 'static,
{
    type Response = Response<FencedBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        // The clone isn't known to be ready; this one is.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let fence = self.fence.clone();
        Box::pin(async move {
            if is_safe(request.method()) {
                return Ok(inner.call(request).await?.map(|inner| FencedBody::of_service(inner, None)));
            }
            match fence.admitted(request.headers()).await {
                Ok((claim, pass)) => {
                    request.extensions_mut().insert(claim);
                    let response = inner.call(request).await?;
                    Ok(response.map(|inner| FencedBody::of_service(inner, Some(pass))))
                }
                Err(problem) => Ok(problem.response().map(FencedBody::of_fence)),
            }
        })
    }
}

impl FenceLayer {
    /// Lets a request with these headers through, or says why not.
    async fn admitted(&self, headers: &http::HeaderMap) -> Result<(Claim, Pass), Problem> {
        let claim = Claim::of(headers)?;
        match self.passages.enter(&claim.resource, claim.token).await {
            Ok(pass) => Ok((claim, pass)),
            Err(error) => {
                log(&error);
                if let (PassError::Gate(AdmitError::Rejected(rejected)), Some(told)) =
                    (&error, &self.on_rejected)
                {
                    told(rejected);
                }
                Err(Problem::from(&error))
            }
        }
    }
}

pin_project! {
    /// The body of a response; the request has ended when it is sent or dropped.
    #[derive(Debug)]
    pub struct FencedBody<B> {
        #[pin]
        of: Of<B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = OfProjected]
    enum Of<B> {
        // The pass is held until the body ends.
        Service { #[pin] inner: B, pass: Option<Pass> },
        Fence { refusal: Full<Bytes> },
    }
}

impl<B> FencedBody<B> {
    fn of_service(inner: B, pass: Option<Pass>) -> Self {
        Self { of: Of::Service { inner, pass } }
    }

    fn of_fence(refusal: Full<Bytes>) -> Self {
        Self { of: Of::Fence { refusal } }
    }
}

impl<B: Body<Data = Bytes>> Body for FencedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().of.project() {
            OfProjected::Service { inner, pass } => {
                let frame = ready!(inner.poll_frame(context));
                if !matches!(frame, Some(Ok(_))) {
                    pass.take();
                }
                Poll::Ready(frame)
            }
            OfProjected::Fence { refusal } => {
                let frame = ready!(Pin::new(refusal).poll_frame(context));
                Poll::Ready(frame.map(|frame| frame.map_err(|never| match never {})))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.of {
            Of::Service { inner, .. } => inner.is_end_stream(),
            Of::Fence { refusal } => refusal.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.of {
            Of::Service { inner, .. } => inner.size_hint(),
            Of::Fence { refusal } => refusal.size_hint(),
        }
    }
}
