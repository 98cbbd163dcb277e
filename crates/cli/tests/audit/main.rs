//! The audit log of real nodes: whole after kills, free of secrets, harmless on a full disk, and readable.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on should fail on the spot")]
#![expect(clippy::disallowed_methods, reason = "the test bounds itself by the machine's clock")]

#[path = "../node/mod.rs"]
mod node;

use node::{Node, call, free_port};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something is so.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("not so after {PATIENCE:?}: {what}");
}

fn start(data: &Path, port: u16, flags: &[&str]) -> Node {
    let mut node = Node::spawn(data, port, &[&["--peer", "127.0.0.1:0"], flags].concat());
    until("the node serves", || {
        let ended = node.ended();
        assert!(ended.is_none(), "the node ended: {ended:?}\n{}", node.words());
        matches!(node.call("GET", "/readyz", None), Ok((200, _))).then_some(())
    });
    node
}

fn acquire(http: SocketAddr, resource: &str, owner: &str, id: &str) -> std::io::Result<(u16, Value)> {
    let body =
        json!({ "clientId": owner, "requestId": id, "leaseDurationMs": 600_000, "metadata": "hush-hush" });
    call(http, "POST", &format!("/locks/{resource}/acquire"), Some(&body))
}

fn release(http: SocketAddr, resource: &str, grant: &Value) -> std::io::Result<(u16, Value)> {
    call(http, "DELETE", &format!("/locks/{resource}"), Some(&json!({ "leaseId": grant["leaseId"] })))
}

/// All files of an audit log, oldest first, as text.
fn text_of(folder: &Path) -> String {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("audit") && name.ends_with(".jsonl")
    });
    // `audit-…` comes before `audit.`, as it should.
    names.sort();
    names.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn records(folder: &Path) -> Vec<Value> {
    let whole = text_of(folder);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect()
}

/// Waits until a record with this token and kind is there.
fn recorded(folder: &Path, kind: &str, token: &Value) -> Value {
    until(&format!("{kind} {token} is recorded"), || {
        let text = text_of(folder);
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().find(|record| record["kind"] == kind && record["fencingToken"] == *token)
    })
}

fn kunci(words: &[&str]) -> (Option<i32>, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_kunci")).args(words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code(), text(&ran.stdout) + &text(&ran.stderr))
}

/// What clients were told, and what nobody else may read.
#[derive(Default)]
struct Told {
    granted: BTreeMap<u64, String>,
    released: Vec<u64>,
    secrets: Vec<String>,
}

fn client(number: usize, http: SocketAddr, told: &Mutex<Told>, stop: &AtomicBool) {
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (resource, id) = (format!("job-{number}-{turn}"), format!("request-{number}-{turn}"));
        told.lock().unwrap().secrets.push(id.clone());
        let Ok((200, grant)) = acquire(http, &resource, &format!("client-{number}"), &id) else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let token = grant["fencingToken"].as_u64().unwrap();
        {
            let mut told = told.lock().unwrap();
            told.granted.insert(token, resource.clone());
            told.secrets.push(grant["leaseId"].as_str().unwrap().to_owned());
        }
        if turn % 2 == 1
            && let Ok((200, _)) = release(http, &resource, &grant)
        {
            told.lock().unwrap().released.push(token);
        }
    }
}

/// Case C103: killed again and again under load, one time with half a line in the file, every acknowledged grant and release
/// is recorded once, in the order of the log, without a gap; and no secret is in the files.
#[test]
fn after_kills_nothing_is_missing_and_nothing_is_there_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (data, port) = (folder.path().join("data"), free_port());
    // Small files, so that some are put aside.
    let flags = ["--audit-file-bytes-max", "65536"];
    let mut node = start(&data, port, &flags);
    let (http, told, stop) = (node.http(), Mutex::new(Told::default()), AtomicBool::new(false));
    // The last one lives on: it has to record what it acknowledged.
    let _node = std::thread::scope(|scope| {
        for number in 0..6 {
            let (told, stop) = (&told, &stop);
            scope.spawn(move || client(number, http, told, stop));
        }
        for round in 0..5_u64 {
            std::thread::sleep(Duration::from_millis(350 + 90 * round));
            node.kill();
            if round == 2 {
                let mut file = std::fs::File::options().append(true).open(data.join("audit.jsonl")).unwrap();
                file.write_all(b"{\"kind\":\"granted\",\"wallTi").unwrap();
            }
            node = start(&data, port, &flags);
        }
        stop.store(true, Ordering::Relaxed);
        node
    });
    let told = told.into_inner().unwrap();
    assert!(told.granted.len() > 100, "only {} grants", told.granted.len());
    let last = *told.granted.last_key_value().unwrap().0;
    recorded(&data, "granted", &json!(last));
    if let Some(last) = told.released.last() {
        recorded(&data, "released", &json!(last));
    }
    // Whoever was told last needn't be the last in the log.
    std::thread::sleep(Duration::from_secs(2));

    let found = records(&data);
    let at = |record: &Value| {
        let (index, number) = record["at"].as_str()?.split_once('.')?;
        Some((index.parse::<u64>().unwrap(), number.parse::<u32>().unwrap()))
    };
    let places: Vec<(u64, u32)> = found.iter().filter_map(at).collect();
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "a place is there twice, or out of order");
    let gaps: Vec<&Value> = found.iter().filter(|record| record["kind"] == "gap").collect();
    assert!(gaps.is_empty(), "{gaps:?}");
    for (kind, tokens) in
        [("granted", told.granted.keys().copied().collect::<Vec<_>>()), ("released", told.released.clone())]
    {
        let mut times: BTreeMap<u64, u32> = BTreeMap::new();
        for record in found.iter().filter(|record| record["kind"] == kind) {
            *times.entry(record["fencingToken"].as_u64().unwrap()).or_default() += 1;
        }
        for token in tokens {
            assert_eq!(times.get(&token), Some(&1), "{kind} {token}");
        }
    }
    let grant = found.iter().find(|record| record["fencingToken"] == json!(last)).unwrap();
    assert_eq!(grant["resource"], json!(told.granted[&last]));
    assert!(grant["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{grant}");
    assert_eq!(grant["leaseFingerprint"].as_str().unwrap().len(), 10);

    let text = text_of(&data);
    let words: std::collections::HashSet<&str> = text.split('"').collect();
    for secret in told.secrets.iter().map(String::as_str).chain(["hush-hush"]) {
        assert!(!words.contains(secret), "{secret} is in the audit log");
    }
}

/// Who held it then: from the files, whether the node runs or not, with what happened before and after.
#[test]
fn who_held_a_resource_at_a_time_is_answered_from_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let node = start(&data, free_port(), &[]);
    let http = node.http();
    let (_, first) = acquire(http, "orders%2F42", "worker-7", "a").unwrap();
    let (_, refused) = acquire(http, "orders%2F42", "worker-8", "b").unwrap();
    assert_eq!(refused["code"], "held");
    let begun = recorded(&data, "granted", &first["fencingToken"]);
    std::thread::sleep(Duration::from_millis(50));
    let (status, _) = release(http, "orders%2F42", &first).unwrap();
    assert_eq!(status, 200);
    let (_, second) = acquire(http, "orders%2F42", "worker-9", "c").unwrap();
    let force = json!({ "fencingToken": second["fencingToken"], "reason": "stuck \"job\"" });
    let (status, _) = call(http, "POST", "/locks/orders%2F42/force-release", Some(&force)).unwrap();
    assert_eq!(status, 200);
    let forced = recorded(&data, "forced", &second["fencingToken"]);
    assert_eq!((&forced["reason"], &forced["owner"]), (&json!("stuck \"job\""), &json!("worker-9")));

    let data_text = data.display().to_string();
    let at = begun["wallTime"].as_str().unwrap();
    let (code, said) = kunci(&["audit", "--data", &data_text, "--held", "orders/42", "--at", at]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("orders/42 was held by worker-7") && said.contains("released"), "{said}");
    node.kill();
    let (_, said) = kunci(&["audit", "--data", &data_text, "--held", "orders/42", "--json"]);
    let body: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&body["held"], &body["end"]["kind"], &body["certain"]),
        (&json!(false), &json!("forced"), &json!(true))
    );
    let (_, said) = kunci(&["audit", "--data", &data_text, "orders/42", "--kind", "denied"]);
    assert!(
        said.contains("acquire: held") && said.contains("worker-8") && said.lines().count() == 1,
        "{said}"
    );
    let (_, said) = kunci(&["audit", "--data", &data_text, "--owner", "worker-9", "--last", "1", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["kind"], "forced", "{said}");
    let (code, said) = kunci(&["audit", "--data", &folder.path().display().to_string()]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("there is no audit log in"), "{said}");
}

/// What a running node records is followed across files, and served newest first.
#[test]
fn records_are_followed_and_served() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let node = start(&data, free_port(), &["--audit-file-bytes-max", "65536", "--audit-renewals"]);
    let http = node.http();
    let (_, grant) = acquire(http, "followed", "w", "f").unwrap();
    recorded(&data, "granted", &grant["fencingToken"]);
    let mut following = Command::new(env!("CARGO_BIN_EXE_kunci"))
        .args(["audit", "--data", &data.display().to_string(), "--prefix", "foll", "--follow", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["kind"], "granted");
    // More than a file of others' records comes in between.
    for number in 0..400 {
        acquire(http, &format!("filler-{number}"), "w", &format!("f-{number}")).unwrap();
    }
    let renew = json!({ "leaseId": grant["leaseId"] });
    call(http, "POST", "/locks/followed/renew", Some(&renew)).unwrap();
    release(http, "followed", &grant).unwrap();
    assert_eq!(next()["kind"], "renewed");
    assert_eq!(next()["kind"], "released");
    let files = std::fs::read_dir(&data)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("audit-"));
    assert!(files.count() > 0, "no file was put aside");
    following.kill().unwrap();
    following.wait().unwrap();

    let (status, body) = call(http, "GET", "/audit?resource=followed&limit=2", None).unwrap();
    let kinds: Vec<&str> =
        body["records"].as_array().unwrap().iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!((status, kinds), (200, vec!["released", "renewed"]));
    let next = format!("/audit?resource=followed&before={}", body["next"].as_str().unwrap());
    let (_, body) = call(http, "GET", &next, None).unwrap();
    assert_eq!((&body["records"][0]["kind"], &body["next"]), (&json!("granted"), &Value::Null));
    let (status, body) = call(http, "GET", "/audit?frm=1", None).unwrap();
    assert_eq!((status, &body["code"]), (400, &json!("invalid")));
    drop(node);
    let node = start(&data, free_port(), &["--audit=false"]);
    assert_eq!(node.call("GET", "/audit", None).unwrap().0, 404);
}

/// A full disk under the audit log stalls no lock. Once there is room, what was kept in memory is written.
#[test]
fn a_full_disk_under_the_audit_log_stalls_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path());
    let data = folder.path().join("data");
    let node = start(&data, free_port(), &["--audit-folder", &disk.path.display().to_string()]);
    let http = node.http();
    std::fs::write(disk.path.join("ballast"), vec![1; 1 << 20]).unwrap_err();
    let mut tokens = Vec::new();
    let mut slowest = Duration::ZERO;
    for number in 0..300 {
        let begun = Instant::now();
        let (status, grant) = acquire(http, &format!("r-{number}"), "w", &format!("full-{number}")).unwrap();
        slowest = slowest.max(begun.elapsed());
        assert_eq!(status, 200, "{grant}");
        tokens.push(grant["fencingToken"].as_u64().unwrap());
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    until("the node says that it can't write", || {
        node.words().contains("can't write the audit log").then_some(())
    });
    let found = text_of(&disk.path);
    assert!(
        !found.contains(&format!("\"fencingToken\":{},", tokens.last().unwrap())),
        "the disk wasn't full"
    );
    std::fs::remove_file(disk.path.join("ballast")).unwrap();
    recorded(&disk.path, "granted", &json!(tokens.last().unwrap()));
    let found = records(&disk.path);
    let granted: Vec<u64> = found
        .iter()
        .filter(|record| record["kind"] == "granted")
        .map(|record| record["fencingToken"].as_u64().unwrap())
        .collect();
    assert_eq!(granted, tokens);
    drop(node);
}

/// The address in the records is the client's own, also where the leader got the call from another node.
#[test]
fn the_address_of_a_client_survives_being_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let ports = [(); 3].map(|()| (free_port(), free_port()));
    let nodes: Vec<Node> = (0..3)
        .map(|at| {
            let peer = format!("127.0.0.1:{}", ports[at].1);
            let data = folder.path().join(format!("n{at}"));
            Node::spawn(&data, ports[at].0, &["--peer", &peer, "--wait-for-cluster"])
        })
        .collect();
    let url = format!("http://{}", nodes[0].http());
    until("the first node answers", || nodes[0].call("GET", "/cluster", None).ok());
    let (code, said) = kunci(&["cluster", "init", "--url", &url]);
    assert_eq!(code, Some(0), "{said}");
    for (at, (_, peer)) in ports.iter().enumerate().skip(1) {
        until("the next node answers", || nodes[at].call("GET", "/cluster", None).ok());
        until("it is taken in", || {
            (kunci(&["cluster", "add", &format!("127.0.0.1:{peer}"), "--url", &url]).0 == Some(0))
                .then_some(())
        });
        until("it is a voter", || {
            let (_, body) = nodes[0].call("GET", "/cluster", None).ok()?;
            let node = body["nodes"].as_array()?.get(at)?.clone();
            (node["role"] == "follower").then_some(())
        });
    }
    let from: SocketAddr = "127.0.0.77:0".parse().unwrap();
    // From an address of its own, through a node that doesn't lead.
    let body = json!({ "clientId": "far", "requestId": "far-1", "leaseDurationMs": 600_000 }).to_string();
    let answer = call_from(
        from,
        nodes[1].http(),
        &format!(
            "POST /locks/far/acquire HTTP/1.1\r\nHost: x\r\nKunci-Client: 9.9.9.9:9\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ),
    );
    assert!(answer.contains("\"acquired\":true"), "{answer}");
    for at in 0..3 {
        let data = folder.path().join(format!("n{at}"));
        let record = until("the grant is recorded", || {
            let text = text_of(&data);
            let mut records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            records.find(|record| record["kind"] == "granted")
        });
        assert!(record["address"].as_str().unwrap().starts_with("127.0.0.77:"), "node {at}: {record}");
        let changed = records(&data).into_iter().filter(|record| record["kind"] == "members_changed").count();
        assert!(changed >= 3, "node {at} recorded {changed} changes of the members");
    }
}

/// One call from a local address of its own; the whole answer.
fn call_from(from: SocketAddr, to: SocketAddr, request: &str) -> String {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &from).unwrap();
    connect(&socket, &to).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A file system in memory of 256 KiB; gone when dropped.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    fn mount(folder: &Path) -> Self {
        let path = folder.join("disk");
        std::fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(
            mounted.success(),
            "this test mounts a small disk: run it as root, with `mount` (package mount)"
        );
        Self { path }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.path).status());
    }
}
