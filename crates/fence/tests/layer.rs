//! The layer inside an axum service.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in its helpers too")]

use axum::Router;
use axum::body::Body;
use axum::extract::Extension;
use axum::routing::{get, put};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kunci_fence::claim::Claim;
use kunci_fence::gate::{FileGate, Gate};
use kunci_fence::layer::FenceLayer;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tower::ServiceExt as _;

/// What handlers wrote, by token, and a gate that slow ones wait at.
#[derive(Clone, Default)]
struct Store {
    written: Arc<Mutex<Vec<u64>>>,
    began: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Store {
    fn service(&self, fence: FenceLayer) -> Router {
        let (quick, slow) = (self.clone(), self.clone());
        Router::new()
            .route("/quick", get(async || "read"))
            .route(
                "/quick",
                put(async move |Extension(claim): Extension<Claim>| {
                    quick.written.lock().unwrap().push(claim.token.get());
                    claim.resource.to_string()
                }),
            )
            .route(
                "/slow",
                put(async move |Extension(claim): Extension<Claim>| {
                    slow.began.notify_one();
                    slow.go_on.notified().await;
                    slow.written.lock().unwrap().push(claim.token.get());
                    "written"
                }),
            )
            .layer(fence)
    }

    fn written(&self) -> Vec<u64> {
        self.written.lock().unwrap().clone()
    }
}

fn ask(method: &str, path: &str, token: u64) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("x-kunci-resource", "orders%2F42")
        .header("x-kunci-token", token)
        .body(Body::empty())
        .unwrap()
}

async fn text<B: http_body::Body<Data = bytes::Bytes, Error: std::fmt::Debug>>(
    response: Response<B>,
) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// S9.
#[tokio::test]
async fn a_handler_sees_only_claims_that_were_admitted() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::default();
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let fence = FenceLayer::new(FileGate::open(folder.path()).unwrap());
    let fence =
        fence.on_rejected(move |late| telling.lock().unwrap().push((late.found.get(), late.kept.get())));
    let service = store.service(fence);
    let status = async |request: Request<Body>| service.clone().oneshot(request).await.unwrap().status();
    let answer = service.clone().oneshot(ask("PUT", "/quick", 7)).await.unwrap();
    assert_eq!(text(answer).await, "orders/42");
    assert_eq!(status(ask("PUT", "/quick", 7)).await, StatusCode::OK);
    let late = service.clone().oneshot(ask("PUT", "/quick", 6)).await.unwrap();
    assert_eq!(late.status(), StatusCode::CONFLICT);
    assert_eq!(late.headers()["content-type"], "application/problem+json");
    let problem: serde_json::Value = serde_json::from_str(&text(late).await).unwrap();
    assert_eq!((problem["token"].as_u64(), problem["current"].as_u64()), (Some(6), Some(7)));
    let bare = Request::put("/quick").body(Body::empty()).unwrap();
    assert_eq!(status(bare).await, StatusCode::PRECONDITION_REQUIRED);
    let read = Request::get("/quick").body(Body::empty()).unwrap();
    assert_eq!(status(read).await, StatusCode::OK);
    assert_eq!(store.written(), [7, 7]);
    assert_eq!(*told.lock().unwrap(), [(6, 7)]);
}

#[tokio::test]
async fn a_newer_request_waits_until_the_older_ones_response_is_sent() {
    let store = Store::default();
    let fence = FenceLayer::new(Gate::default());
    let service = store.service(fence.clone());
    let older = tokio::spawn(service.clone().oneshot(ask("PUT", "/slow", 1)));
    store.began.notified().await;
    let mut newer = tokio::spawn(service.clone().oneshot(ask("PUT", "/quick", 2)));
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut newer).await.is_err());
    assert_eq!((fence.passages().on_the_way(), fence.passages().waiting()), (1, 1));
    store.go_on.notify_one();
    let older = older.await.unwrap().unwrap();
    assert!(
        tokio::time::timeout(Duration::from_millis(50), &mut newer).await.is_err(),
        "its body isn't sent yet"
    );
    assert_eq!(text(older).await, "written");
    assert_eq!(newer.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(store.written(), [1, 2]);
}

#[tokio::test]
async fn a_handler_that_was_dropped_has_ended() {
    let store = Store::default();
    let service = store.service(FenceLayer::new(Gate::default()));
    let older = tokio::spawn(service.clone().oneshot(ask("PUT", "/slow", 1)));
    store.began.notified().await;
    older.abort();
    assert!(older.await.is_err());
    let newer = service.clone().oneshot(ask("PUT", "/quick", 2));
    let newer = tokio::time::timeout(Duration::from_secs(10), newer).await.unwrap().unwrap();
    assert_eq!(newer.status(), StatusCode::OK);
    store.go_on.notify_one();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(store.written(), [2]);
}

#[tokio::test]
async fn a_wait_is_bounded() {
    let store = Store::default();
    let service = store.service(FenceLayer::draining_within(Gate::default(), Duration::from_millis(20)));
    let older = tokio::spawn(service.clone().oneshot(ask("PUT", "/slow", 1)));
    store.began.notified().await;
    let put_off = service.clone().oneshot(ask("PUT", "/quick", 2)).await.unwrap();
    assert_eq!(put_off.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(put_off.headers().contains_key("retry-after"));
    store.go_on.notify_one();
    drop(older.await.unwrap().unwrap());
    assert_eq!(service.clone().oneshot(ask("PUT", "/quick", 2)).await.unwrap().status(), StatusCode::OK);
    assert_eq!(store.written(), [1, 2]);
}
