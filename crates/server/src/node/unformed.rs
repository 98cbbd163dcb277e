//! A node that belongs to no cluster yet: it lives, says what it waits for, and serves nothing else.
//!
//! Owns: the one answer that such a node has. Never: touches the data folder, or reads what is asked.

use kunci_api::{Code, Problem};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// How many peers are answered at a time; the rest waits to be accepted.
const PEERS_MAX: usize = 64;
/// How long one peer may take for all of it.
const WITHIN: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// From one failed accept to the next try.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Tells a person why nothing is served, and how to change that.
pub(super) fn say(data: &Path, http: SocketAddr) {
    warn!(
        "data folder {} is empty, and this node can be reached from other machines: it doesn't form a cluster by \
         itself and serves nothing on http://{http} but /livez. To form one: stop this node, start it once with \
         the same --data and without --insecure, --http, --native and --peer, so that it is alone on loopback, \
         stop it, and start it like this again (`kunci cluster init` and `join` come with a later version)",
        data.display()
    );
}

/// Answers until `stop`.
pub(super) async fn serve(listener: TcpListener, stop: CancellationToken) {
    let peers = Arc::new(Semaphore::new(PEERS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&peers).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(AGAIN_AFTER).await;
            continue;
        };
        tokio::spawn(async move {
            // A peer that goes away, or takes too long, gets nothing.
            drop(timeout(WITHIN, answer(stream)).await);
            drop(permit);
        });
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    stream.write_all(text(&head).as_bytes()).await?;
    stream.shutdown().await?;
    // Closing over unread bytes would take the answer away from the peer.
    let mut unread = [0; 4_096];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

/// The whole answer to a request with this head.
fn text(head: &[u8]) -> String {
    let (status, kind, body) = if head.starts_with(b"GET /livez ") {
        ("200 OK", "application/json", r#"{"live":true,"revision":0}"#.to_owned())
    } else {
        let problem =
            Problem::new(Code::NoLeader, "this node belongs to no cluster yet; its log says how to form one");
        let body = serde_json::to_string(&problem).unwrap_or_default();
        ("503 Service Unavailable", "application/problem+json", body)
    };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nretry-after: 1\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lives_and_everything_else_is_refused_as_not_applied() {
        assert!(text(b"GET /livez HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
        for request in ["GET /readyz", "POST /locks/a/acquire", "GET /livezz", ""] {
            let answer = text(format!("{request} HTTP/1.1\r\n\r\n").as_bytes());
            assert!(answer.starts_with("HTTP/1.1 503 "), "{request}: {answer}");
            assert!(answer.contains(r#""code":"no_leader""#) && answer.contains(r#""applied":"no""#));
        }
    }
}
