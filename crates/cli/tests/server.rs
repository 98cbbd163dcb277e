//! A node as a process: what it refuses to start with, what it says, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test that can't go on should fail on the spot")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A node that ends with the test.
struct Node {
    process: Child,
    log: PathBuf,
}

impl Node {
    fn spawn(folder: &Path, name: &str, arguments: &[&str]) -> Self {
        let log = folder.join(format!("{name}.log"));
        let words = std::fs::File::create(&log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kunci"));
        command.arg("server").args(arguments).current_dir(folder).stdin(Stdio::null());
        // Whatever the person who runs the tests has set isn't this node's business; and other tests run meanwhile.
        command.env_remove("KUNCI_CONFIG").env_remove("KUNCI_HTTP").env_remove("KUNCI_DATA");
        command.env("KUNCI_PEER", "127.0.0.1:0").env("KUNCI_NATIVE", "127.0.0.1:0");
        let process = command.stdout(words.try_clone().unwrap()).stderr(words).spawn().unwrap();
        Self { process, log }
    }

    fn words(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for at most ten seconds until it has said this.
    fn says(&self, words: &str) -> bool {
        (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            self.words().contains(words)
        })
    }

    fn address(&self) -> SocketAddr {
        assert!(self.says("serving HTTP on http://"), "{}", self.words());
        let words = self.words();
        let rest = words.split("serving HTTP on http://").nth(1).unwrap();
        rest.split(';').next().unwrap().parse().unwrap()
    }

    /// Where the native protocol is served.
    fn native(&self) -> SocketAddr {
        let words = self.words();
        let rest = words.split("native protocol on ").nth(1).unwrap();
        rest.split(',').next().unwrap().parse().unwrap()
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    fn wait(&mut self) -> ExitStatus {
        for _ in 0..400 {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.process.kill().unwrap();
        self.process.wait().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn request(http: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(http).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn acquire(http: SocketAddr, body: &str) -> TcpStream {
    let length = body.len();
    request(
        http,
        &format!(
            "POST /locks/a/acquire HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ),
    )
}

#[test]
fn an_empty_folder_on_loopback_forms_a_cluster_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::spawn(folder.path(), "first", &["--http", "127.0.0.1:0"]);
    node.address();

    let words = node.words();
    assert!(words.contains("data folder ./kunci-data was empty: formed cluster "), "{words}");
    let cluster = words.split("formed cluster ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    node.signal("TERM");
    assert_eq!(node.wait().code(), Some(0), "{}", node.words());

    let again = Node::spawn(folder.path(), "again", &["--http", "127.0.0.1:0"]);
    again.address();
    assert!(again.words().contains(&format!("node 1 of cluster {cluster}")), "{}", again.words());
}

#[test]
fn an_empty_folder_beyond_loopback_forms_nothing_and_waits_to_be_told() {
    let folder = tempfile::tempdir().unwrap();
    // Loopback for the test's sake; the peers' door is the one that makes it a node beyond loopback.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let http = SocketAddr::from(([127, 0, 0, 1], port));
    let arguments = ["--insecure", "--http", &http.to_string(), "--peer", "0.0.0.0:0"];
    let mut node = Node::spawn(folder.path(), "node", &arguments);
    assert!(
        node.says("doesn't form a cluster by itself, since other machines can reach it"),
        "{}",
        node.words()
    );

    let get = |path: &str| {
        answer(request(http, &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")))
    };
    assert!(get("/livez").starts_with("HTTP/1.1 200 "), "{}", get("/livez"));
    assert!(get("/readyz").starts_with("HTTP/1.1 503 "), "{}", get("/readyz"));
    let cluster = get("/cluster");
    assert!(cluster.contains("\"clusterId\":null") && cluster.contains("\"role\":\"new\""), "{cluster}");
    // It is known by the machine's name, not by an address that means something else on every machine.
    assert!(!cluster.contains("0.0.0.0"), "{cluster}");
    let refused = answer(acquire(http, r#"{"clientId":"w"}"#));
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("\"no_leader\""), "{refused}");
    assert!(!folder.path().join("kunci-data").exists());

    node.signal("TERM");
    assert_eq!(node.wait().code(), Some(0), "{}", node.words());
}

#[test]
fn settings_that_do_not_fit_together_are_refused_before_anything_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["--peer", "0.0.0.0:0"], "--peer-ca, --peer-cert and --peer-key"),
        (&["--peer-ca", "ca.pem"], "--peer-ca is given without --peer-cert and --peer-key"),
        (&["--advertise-http", "0.0.0.0:7400"], "never 0.0.0.0, [::] or port 0"),
        (&["--advertise-peer", "db1"], "the host and port by which others reach it"),
        (&["--zone", ""], "1 to 128 bytes"),
        (&["--priority", "256"], "a whole number from 0 to 255"),
    ];
    for (arguments, words) in cases {
        let mut node = Node::spawn(folder.path(), "node", arguments);
        assert_eq!(node.wait().code(), Some(2), "{arguments:?}: {}", node.words());
        assert!(node.words().contains(words), "{arguments:?}: {}", node.words());
    }
    let tls = ["--peer-ca", "no-ca.pem", "--peer-cert", "no-cert.pem", "--peer-key", "no-key.pem"];
    let mut node = Node::spawn(folder.path(), "node", &[&["--http", "127.0.0.1:0"], &tls[..]].concat());
    assert_eq!(node.wait().code(), Some(1), "{}", node.words());
    assert!(node.words().contains("no-ca.pem"), "{}", node.words());
    assert!(!folder.path().join("kunci-data").exists());
}

#[test]
fn an_address_beyond_loopback_is_refused_without_insecure() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::spawn(folder.path(), "node", &["--http", "0.0.0.0:0"]);

    assert_eq!(node.wait().code(), Some(2));
    assert!(node.words().starts_with("kunci: --http: 0.0.0.0:0 can be reached from other machines"));
    assert!(node.words().contains("--insecure"));
}

#[test]
fn a_folder_or_an_address_in_use_is_refused_in_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    let first = Node::spawn(folder.path(), "first", &["--http", "127.0.0.1:0"]);
    let http = first.address();

    let mut second = Node::spawn(folder.path(), "second", &["--http", "127.0.0.1:0"]);
    assert_eq!(second.wait().code(), Some(1));
    let words = second.words();
    let expected = format!("data folder ./kunci-data is in use by process {}", first.process.id());
    assert!(words.contains(&expected), "{words}");

    let mut third = Node::spawn(folder.path(), "third", &["--http", &http.to_string(), "--data", "other"]);
    assert_eq!(third.wait().code(), Some(1));
    assert!(third.words().contains(&format!("listen for HTTP on {http}: ")), "{}", third.words());
    let peer = first.words().split("peers at ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let mut fourth =
        Node::spawn(folder.path(), "fourth", &["--http", "127.0.0.1:0", "--peer", &peer, "--data", "other"]);
    assert_eq!(fourth.wait().code(), Some(1));
    assert!(fourth.words().contains(&format!("listen for peers on {peer}: ")), "{}", fourth.words());
    let native = first.native();
    let arguments = ["--http", "127.0.0.1:0", "--native", &native.to_string(), "--data", "other"];
    let mut fifth = Node::spawn(folder.path(), "fifth", &arguments);
    assert_eq!(fifth.wait().code(), Some(1));
    let expected = format!("listen for the native protocol on {native}: ");
    assert!(fifth.words().contains(&expected), "{}", fifth.words());
    assert!(!folder.path().join("other").exists(), "a folder was made for a node that never started");
}

#[test]
fn the_native_protocol_is_served_where_the_node_says_until_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::spawn(folder.path(), "node", &["--http", "127.0.0.1:0"]);
    node.address();
    let mut holder = request(node.native(), "A a 30 try owner=holder\n");
    let mut granted = [0; 4];
    holder.read_exact(&mut granted).unwrap();
    assert_eq!(&granted, b"A A ");
    let waiting = request(node.native(), "A a 30 60 req=w-1\n");
    std::thread::sleep(Duration::from_millis(300));

    node.signal("TERM");

    let answer = answer(waiting);
    assert!(answer.starts_with("E A a code=outcome_unknown applied=unknown retry_ms="), "{answer}");
    assert!(answer.contains(" req=w-1 "), "{answer}");
    assert_eq!(node.wait().code(), Some(0), "{}", node.words());
}

#[test]
fn a_stop_ends_waiting_calls_with_a_retriable_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::spawn(folder.path(), "node", &["--http", "127.0.0.1:0"]);
    let http = node.address();
    assert!(answer(acquire(http, r#"{"clientId":"holder"}"#)).starts_with("HTTP/1.1 200 "));
    let waiting = acquire(http, r#"{"clientId":"waiter","waitTimeoutMs":60000}"#);
    std::thread::sleep(Duration::from_millis(300));

    node.signal("TERM");

    let answer = answer(waiting);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.to_lowercase().contains("retry-after"), "{answer}");
    assert_eq!(node.wait().code(), Some(0), "{}", node.words());
}

#[test]
fn a_second_signal_stops_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::spawn(folder.path(), "node", &["--http", "127.0.0.1:0"]);
    let http = node.address();
    // Half a request: a stop waits for the rest of it, for a bounded time.
    let body_to_come = "POST /locks/a/acquire HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                        content-length: 9\r\n\r\n{";
    let _half = request(http, body_to_come);
    std::thread::sleep(Duration::from_millis(300));

    node.signal("TERM");
    assert!(node.says("a second signal stops at once"), "{}", node.words());
    node.signal("INT");

    assert_eq!(node.wait().code(), Some(130), "{}", node.words());
}

#[test]
fn json_log_lines_are_json_from_first_to_last() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::spawn(folder.path(), "node", &["--http", "127.0.0.1:0", "--log-format", "json"]);
    node.address();
    node.signal("INT");
    assert_eq!(node.wait().code(), Some(0));

    for line in node.words().lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
}

#[test]
fn config_show_says_where_each_value_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.toml"), "\nlog_format = \"json\"\n").unwrap();
    let show = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kunci"));
        command.args(["config", "show", "--config", "k.toml"]).args(arguments);
        command.env("KUNCI_DATA", "there").current_dir(folder.path()).output().unwrap()
    };

    let output = show(&["--json", "--http-body-ms-max", "500"]);
    let body: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = body["settings"].as_array().unwrap();
    let find = |name: &str| all.iter().find(|setting| setting["name"] == name).unwrap();

    assert_eq!(find("http_body_ms_max")["value"], 500);
    assert_eq!(find("http_body_ms_max")["from"], "--http-body-ms-max");
    assert_eq!(find("data")["from"], "KUNCI_DATA");
    assert_eq!(find("log_format")["from"], "k.toml:2");
    assert_eq!(find("http")["origin"], "default");
    assert_eq!(find("priority")["value"], 0);
    assert_eq!(find("zone")["value"], serde_json::Value::Null);

    let refused = show(&["--log-level", "loud=very"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).starts_with("kunci: --log-level: found"));
}
