//! A server that speaks S3, in this process: `s3s-fs` over a temporary folder, behind a door that can go wrong on purpose.
//!
//! Owns: the server, and a client of it over our own HTTP. Never: a condition of its own: those are the server's.
//!
//! The server looks at a condition and writes in two steps, which a store has to do in one; so the door hands it one request
//! at a time.

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientOptions, ObjectStore};
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

const BUCKET: &str = "bucket";
const KEY: &str = "key";
const SECRET: &str = "secret";

/// What goes wrong at the door.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// A header that the server never gets to see.
    pub(crate) ignores: Option<&'static str>,
    /// So many writes are done and answered 500.
    pub(crate) loses_answers_of_puts: u32,
}

struct Door {
    s3: Mutex<S3Service>,
    faults: Faults,
    lost: AtomicU32,
}

/// A running server; it ends when it is dropped.
pub(crate) struct S3Server {
    at: SocketAddr,
    door: Arc<Door>,
    serving: AbortHandle,
    _folder: TempDir,
}

impl S3Server {
    pub(crate) async fn start(faults: Faults) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).unwrap());
        // A signature covers the headers, so it goes where one of them is taken away.
        if faults.ignores.is_none() {
            builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        }
        let door = Arc::new(Door { s3: Mutex::new(builder.build()), faults, lost: AtomicU32::new(0) });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, Arc::clone(&door))).abort_handle();
        Self { at, door, serving, _folder: folder }
    }

    /// The store, as a program has it.
    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        let builder = AmazonS3Builder::new()
            .with_endpoint(format!("http://{}", self.at))
            .with_allow_http(true)
            .with_region("eu-central-1")
            .with_bucket_name(BUCKET)
            .with_access_key_id(KEY)
            .with_secret_access_key(SECRET)
            .with_skip_signature(self.door.faults.ignores.is_some())
            .with_http_connector(Connector);
        Arc::new(builder.build().unwrap())
    }

    /// How many answers were lost so far.
    pub(crate) fn lost_answers(&self) -> u32 {
        self.door.lost.load(Ordering::Relaxed)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, door: Arc<Door>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(talk(stream, Arc::clone(&door)));
    }
}

async fn talk(stream: TcpStream, door: Arc<Door>) {
    let service = service_fn(move |request| pass(Arc::clone(&door), request));
    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

async fn pass(
    door: Arc<Door>,
    mut request: Request<Incoming>,
) -> Result<Response<s3s::Body>, s3s::HttpError> {
    if let Some(header) = door.faults.ignores {
        request.headers_mut().remove(header);
    }
    let is_put = *request.method() == Method::PUT;
    let answer = door.s3.lock().await.call(request.map(s3s::Body::from)).await?;
    let loses = door.faults.loses_answers_of_puts;
    if is_put && answer.status().is_success() && door.lost.load(Ordering::Relaxed) < loses {
        door.lost.fetch_add(1, Ordering::Relaxed);
        let mut lost = Response::new(s3s::Body::from(String::new()));
        *lost.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        return Ok(lost);
    }
    Ok(answer)
}

/// The HTTP client that the rest of this project uses, in place of the one that `object_store` would bring.
#[derive(Debug)]
struct Connector;

#[derive(Debug)]
struct Calls(Client<TcpConnector, HttpRequestBody>);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Calls(Client::builder(TokioExecutor::new()).build_http())))
    }
}

impl HttpService for Calls {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let failed = |error| HttpError::new(HttpErrorKind::Request, error);
            let (parts, body) = self.0.request(request).await.map_err(failed)?.into_parts();
            let bytes = body.collect().await.map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
            let body = Full::new(bytes.to_bytes()).map_err(|never| match never {});
            Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
        })
    }
}
