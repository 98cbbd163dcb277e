//! A way to a peer door on which a new node is met and invited, and nothing else comes through.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Bytes of the first words of a connection that aren't its body: magic, length, checksum.
const HEAD_BYTES: usize = 16;

/// Listens until the test's process ends.
pub(crate) struct Proxy {
    address: String,
    target: Arc<Mutex<Option<String>>>,
}

impl Proxy {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let target = Arc::new(Mutex::new(None::<String>));
        let seen = Arc::clone(&target);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let target = seen.lock().unwrap().clone();
                if let Some(target) = target {
                    thread::spawn(move || drop(pass(stream, &target)));
                }
            }
        });
        Self { address, target }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn leads_to(&self, peer: &str) {
        *self.target.lock().unwrap() = Some(peer.to_owned());
    }
}

/// Passes on a connection whose first words say that it is for the door.
fn pass(mut from: TcpStream, target: &str) -> std::io::Result<()> {
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head)?;
    let length = u32::from_be_bytes(head[8..12].try_into().unwrap_or_default()).min(4_096);
    let mut body = vec![0; usize::try_from(length).unwrap_or_default()];
    from.read_exact(&mut body)?;
    if !String::from_utf8_lossy(&body).contains("\"door\"") {
        return Ok(());
    }
    let mut to = TcpStream::connect(target)?;
    to.write_all(&[&head[..], &body].concat())?;
    let (mut back, mut forth) = (to.try_clone()?, from.try_clone()?);
    thread::spawn(move || {
        drop(std::io::copy(&mut back, &mut forth));
        drop(forth.shutdown(std::net::Shutdown::Write));
    });
    std::io::copy(&mut from, &mut to)?;
    to.shutdown(std::net::Shutdown::Write)
}
