//! An HTTP service that knows nothing of tokens, behind `kunci fence proxy`.
//!
//! Owns: the service and how it is written to. Never: the fence; that is the proxy.

use crate::proxy_process::Proxy;
use crate::target::{Fence, Rejected, Target, Writer};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// S9, C03: see `run`.
#[test]
fn a_late_write_through_the_proxy_is_refused_in_every_round() {
    crate::run::run::<Service>();
}

type Values = Arc<Mutex<HashMap<String, String>>>;

/// The service: `PUT` keeps the body under the path.
pub(crate) struct Service {
    values: Values,
    address: SocketAddr,
    proxy: Proxy,
    _runtime: Runtime,
}

impl Target for Service {
    const NAME: &'static str = "proxy";
    type Writer = HttpWriter;

    fn start(folder: &Path) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let values = Values::default();
        runtime.spawn(serve(listener, Arc::clone(&values)));
        // A worker's connection is idle for as long as the worker is stopped.
        let proxy = Proxy::start(folder, address, "[times]\nhead_ms_max = 600000\n");
        Self { values, address, proxy, _runtime: runtime }
    }

    /// Where the service itself is, which a worker without the fence writes to, and where the proxy is.
    fn address(&self) -> String {
        format!("{} {}", self.address, self.proxy.address())
    }

    async fn value(&self, item: &str) -> Option<String> {
        self.values.lock().unwrap().get(&format!("/{item}")).cloned()
    }
}

async fn serve(listener: TcpListener, values: Values) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let values = Arc::clone(&values);
        tokio::spawn(async move {
            let service = service_fn(move |request| put(request, Arc::clone(&values)));
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn put(request: Request<Incoming>, values: Values) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let mut response = Response::new(Full::default());
    match request.into_body().collect().await {
        Ok(body) => {
            let value = String::from_utf8_lossy(&body.to_bytes()).into_owned();
            values.lock().unwrap().insert(path, value);
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    Ok(response)
}

pub(crate) struct HttpWriter {
    bare: SendRequest<Full<Bytes>>,
    fenced: SendRequest<Full<Bytes>>,
    item: String,
}

impl Writer for HttpWriter {
    async fn open(address: &str, item: &str) -> Self {
        let (bare, fenced) = address.split_once(' ').unwrap();
        Self { bare: connect(bare).await, fenced: connect(fenced).await, item: item.to_owned() }
    }

    async fn write(&mut self, fence: Fence, token: u64, value: &str) -> Result<(), Rejected> {
        let request = Request::put(format!("/{}", self.item))
            .header("host", "service")
            .header("x-kunci-resource", &self.item)
            .header("x-kunci-token", token)
            .body(Full::new(Bytes::from(value.to_owned())))
            .unwrap();
        let way = if fence == Fence::On { &mut self.fenced } else { &mut self.bare };
        way.ready().await.unwrap();
        let answer = way.send_request(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        if status == StatusCode::OK {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&body);
        assert_eq!(status, StatusCode::CONFLICT, "{text}");
        let problem: serde_json::Value = serde_json::from_str(&text).unwrap();
        let number = |field: &str| problem[field].as_u64().unwrap();
        Err(Rejected { found: number("token"), kept: number("current") })
    }
}

async fn connect(address: &str) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (way, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    way
}
