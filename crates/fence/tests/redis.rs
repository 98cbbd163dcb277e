//! The fence in a real Redis 7: by the function library and by the script, which must be the same.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by a panic, in its helpers too, and says what a server said"
)]

mod redis_server;

use kunci_fence::redis::{LIBRARY, SCRIPT, fence_key, rejected};
use redis::{Connection, FromRedisValue, RedisError, RedisResult, cmd};
use redis_server::RedisServer;
use tempfile::TempDir;

/// The two ways in.
#[derive(Clone, Copy, Debug)]
enum By {
    Library,
    Script,
}

/// A Redis with the fence loaded.
struct Guarded {
    server: RedisServer,
    script: String,
    _folder: TempDir,
}

impl Guarded {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = RedisServer::start(folder.path(), arguments);
        let mut to = server.connect();
        cmd("FUNCTION").arg(&["LOAD", "REPLACE", LIBRARY]).exec(&mut to).unwrap();
        let script = cmd("SCRIPT").arg(&["LOAD", SCRIPT]).query(&mut to).unwrap();
        Self { server, script, _folder: folder }
    }

    fn writer(&self, by: By) -> Writer {
        Writer { to: self.server.connect(), by, script: self.script.clone() }
    }
}

/// One connection that writes through the fence.
struct Writer {
    to: Connection,
    by: By,
    script: String,
}

impl Writer {
    /// A command of Redis itself.
    fn plain<T: FromRedisValue>(&mut self, words: &[&str]) -> RedisResult<T> {
        cmd(words[0]).arg(&words[1..]).query(&mut self.to)
    }

    fn admit(&mut self, fence: &str, token: &str) -> RedisResult<String> {
        match self.by {
            By::Library => self.plain(&["FCALL", "kunci_admit", "1", fence, token]),
            By::Script => self.plain(&["EVALSHA", &self.script.clone(), "1", fence, token]),
        }
    }

    /// Does a command to a key, under a token.
    fn write<T: FromRedisValue>(
        &mut self,
        fence: &str,
        key: &str,
        token: &str,
        words: &[&str],
    ) -> RedisResult<T> {
        let script = self.script.clone();
        let call: &[&str] = match self.by {
            By::Library => &["FCALL", "kunci_do", "2", fence, key, token],
            By::Script => &["EVALSHA", &script, "2", fence, key, token],
        };
        self.plain(&[call, words].concat())
    }

    fn kept(&mut self, fence: &str) -> Option<String> {
        self.plain(&["GET", fence]).unwrap()
    }
}

fn text(error: &RedisError) -> String {
    format!("{} {}", error.code().unwrap_or_default(), error.detail().unwrap_or_default())
}

/// The resource and both numbers of a rejection.
fn numbers<T: std::fmt::Debug>(answer: RedisResult<T>) -> (String, u64, u64) {
    let text = text(&answer.unwrap_err());
    let rejected = rejected(&text).unwrap_or_else(|| panic!("{text} is no rejection"));
    (rejected.resource.to_string(), rejected.found.get(), rejected.kept.get())
}

/// Runs a test by both ways, on one server each.
fn by_both(test: impl Fn(&mut Writer)) {
    let guarded = Guarded::start(&[]);
    for by in [By::Library, By::Script] {
        let mut writer = guarded.writer(by);
        writer.plain::<()>(&["FLUSHALL"]).unwrap();
        test(&mut writer);
    }
}

/// S9: larger moves it up, equal passes, smaller is rejected with both numbers.
#[test]
fn a_smaller_token_is_rejected_with_both_numbers() {
    by_both(|writer| {
        let fence = fence_key("orders/42").unwrap();
        assert_eq!(writer.admit(&fence, "9").unwrap(), "9");
        assert_eq!(writer.admit(&fence, "9").unwrap(), "9");
        assert_eq!(writer.admit(&fence, "10").unwrap(), "10");
        // As text, "9" comes after "10".
        assert_eq!(numbers(writer.admit(&fence, "9")), ("orders/42".to_owned(), 9, 10));
        assert_eq!(writer.kept(&fence).as_deref(), Some("10"));
    });
}

/// S9: a rejected write changes nothing, whichever command it is; an admitted one is the command, with its answer.
#[test]
fn a_late_write_changes_nothing_whatever_the_command() {
    by_both(|writer| {
        let fence = "kunci:fence:{r}";
        let set = ["SET", "first", "PX", "90000"];
        assert_eq!(writer.write::<String>(fence, "{r}:text", "5", &set).unwrap(), "OK");
        assert_eq!(writer.write::<i64>(fence, "{r}:hash", "5", &["HSET", "field", "first"]).unwrap(), 1);
        assert_eq!(writer.write::<i64>(fence, "{r}:count", "6", &["INCRBY", "3"]).unwrap(), 3);

        for late in [&["SET", "late"][..], &["DEL"], &["APPEND", "late"], &["PERSIST"]] {
            assert_eq!(
                numbers(writer.write::<redis::Value>(fence, "{r}:text", "5", late)),
                ("r".to_owned(), 5, 6)
            );
        }
        for (key, late) in [("{r}:hash", &["HSET", "field", "late"][..]), ("{r}:count", &["INCRBY", "1"])] {
            assert_eq!(numbers(writer.write::<redis::Value>(fence, key, "5", late)), ("r".to_owned(), 5, 6));
        }
        assert_eq!(writer.plain::<String>(&["GET", "{r}:text"]).unwrap(), "first");
        assert!(writer.plain::<i64>(&["PTTL", "{r}:text"]).unwrap() > 0);
        assert_eq!(writer.plain::<String>(&["HGET", "{r}:hash", "field"]).unwrap(), "first");
        assert_eq!(writer.plain::<i64>(&["GET", "{r}:count"]).unwrap(), 3);
    });
}

/// Tokens are exact: canonical decimal digits up to 2^53 − 1, and nothing else that Lua would take for a number.
#[test]
fn only_plain_digits_up_to_the_largest_exact_integer_are_tokens() {
    by_both(|writer| {
        let fence = "kunci:fence:{exact}";
        for wrong in [
            "0",
            "-1",
            "+1",
            "01",
            "1.0",
            "1e3",
            "0x10",
            " 1",
            "1 ",
            "1\n",
            "1\0",
            "",
            "nan",
            "inf",
            "١",
            "9007199254740992",
            "9007199254740993",
            "10000000000000000",
            "99999999999999999999",
        ] {
            let refused = writer.write::<String>(fence, "{exact}", wrong, &["SET", "v"]).unwrap_err();
            assert_eq!(refused.code(), Some("KUNCI_INVALID"), "{wrong:?}: {refused}");
        }
        assert_eq!(writer.plain::<i64>(&["DBSIZE"]).unwrap(), 0, "nothing was kept or written");

        let (largest, before) = ("9007199254740991", "9007199254740990");
        assert_eq!(writer.admit(fence, before).unwrap(), before);
        assert_eq!(writer.admit(fence, largest).unwrap(), largest);
        assert_eq!(
            numbers(writer.admit(fence, before)),
            ("exact".to_owned(), 9_007_199_254_740_990, 9_007_199_254_740_991)
        );
    });
}

/// S9: the token is kept before the command runs, so that a command that fails lets nobody older in.
#[test]
fn a_command_that_fails_writes_nothing_and_keeps_the_token() {
    by_both(|writer| {
        let fence = "kunci:fence:{r}";
        writer.plain::<()>(&["SET", "{r}", "text"]).unwrap();
        let failed = writer.write::<i64>(fence, "{r}", "5", &["HSET", "field", "value"]).unwrap_err();
        assert_eq!(failed.code(), Some("WRONGTYPE"), "{failed}");
        assert_eq!(writer.plain::<String>(&["GET", "{r}"]).unwrap(), "text");
        assert_eq!(numbers(writer.admit(fence, "4")), ("r".to_owned(), 4, 5));
    });
}

/// S9: what makes a fence key expire is undone by the next write, also by one that has nothing new to keep.
#[test]
fn a_fence_key_stays_although_somebody_gave_it_an_end() {
    by_both(|writer| {
        let fence = "kunci:fence:{r}";
        for token in ["5", "5", "6"] {
            writer.admit(fence, token).unwrap();
            assert_eq!(writer.plain::<i64>(&["TTL", fence]).unwrap(), -1, "after {token}");
            assert_eq!(writer.plain::<i64>(&["EXPIRE", fence, "1000"]).unwrap(), 1);
        }
    });
}

/// S9: a fence key that can't be read is no empty one.
#[test]
fn a_fence_key_that_holds_something_else_refuses_everything() {
    by_both(|writer| {
        for other in [&["SET", "{r}:f", "1e3"][..], &["SET", "{r}:f", ""], &["RPUSH", "{r}:f", "7"]] {
            writer.plain::<()>(&["DEL", "{r}:f"]).unwrap();
            writer.plain::<redis::Value>(other).unwrap();
            let refused = writer.write::<String>("{r}:f", "{r}", "5", &["SET", "v"]).unwrap_err();
            assert_eq!(refused.code(), Some("KUNCI_BROKEN"), "{other:?}: {refused}");
        }
        let refused = writer.write::<String>("{r}:g", "{r}:g", "5", &["SET", "v"]).unwrap_err();
        assert_eq!(refused.code(), Some("KUNCI_INVALID"), "the fence key as data: {refused}");
    });
}

/// S9: a write without room for it is refused whole.
#[test]
fn without_memory_nothing_is_kept_or_written() {
    let guarded = Guarded::start(&[]);
    for by in [By::Library, By::Script] {
        let mut writer = guarded.writer(by);
        writer.plain::<()>(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
        let refused = writer.write::<String>("kunci:fence:{r}", "{r}", "5", &["SET", "v"]).unwrap_err();
        assert_eq!(refused.code(), Some("OOM"), "{refused}");
        writer.plain::<()>(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
        assert_eq!(writer.plain::<i64>(&["DBSIZE"]).unwrap(), 0);
    }
}

/// S9 under load: eight writers with interleaved tokens, each of which appends its token. What is admitted lands in
/// order.
#[test]
fn the_order_of_writes_is_the_order_of_tokens() {
    const WRITERS: u64 = 8;
    const TURNS: u64 = 150;
    let guarded = Guarded::start(&[]);
    for by in [By::Library, By::Script] {
        let fence = fence_key("log").unwrap();
        let refused: u64 = std::thread::scope(|scope| {
            let write = |number: u64| {
                let (mut writer, fence) = (guarded.writer(by), fence.as_str());
                move || -> u64 {
                    let mut refused = 0;
                    for turn in 0..TURNS {
                        let token = (1 + number + turn * WRITERS).to_string();
                        match writer.write::<i64>(fence, "log", &token, &["RPUSH", &token]) {
                            Ok(_) => {}
                            Err(error) => {
                                assert!(rejected(&text(&error)).is_some(), "{error}");
                                refused += 1;
                            }
                        }
                    }
                    refused
                }
            };
            let writers: Vec<_> = (0..WRITERS).map(|number| scope.spawn(write(number))).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        let mut writer = guarded.writer(by);
        let landed: Vec<u64> = writer.plain(&["LRANGE", "log", "0", "-1"]).unwrap();
        assert!(landed.is_sorted(), "{by:?}: {landed:?}");
        assert_eq!(landed.len() as u64 + refused, WRITERS * TURNS, "{by:?}");
        assert!(refused > 0, "{by:?}: the writers never met");
        writer.plain::<()>(&["FLUSHALL"]).unwrap();
    }
}

/// With an append-only file that is synced at each write, a kept token survives a kill, and so does the library.
#[test]
fn a_kept_token_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let set = |server: &RedisServer, token: &str| {
        let call = ["kunci_set", "2", "kunci:fence:{r}", "{r}", token, "v", "EX", "600"];
        cmd("FCALL").arg(&call).query::<String>(&mut server.connect())
    };
    let server = RedisServer::start(folder.path(), &arguments);
    cmd("FUNCTION").arg(&["LOAD", LIBRARY]).exec(&mut server.connect()).unwrap();
    assert_eq!(set(&server, "7").unwrap(), "OK");
    drop(server);

    let server = RedisServer::start(folder.path(), &arguments);
    assert_eq!(numbers(set(&server, "6")), ("r".to_owned(), 6, 7));
    let kept =
        cmd("FCALL_RO").arg(&["kunci_kept", "1", "kunci:fence:{r}"]).query::<String>(&mut server.connect());
    assert_eq!(kept.unwrap(), "7");
}

/// The limit that the documentation states: a replica that had not heard of a token admits an older one once it leads.
#[test]
fn a_replica_that_lags_forgets_a_token_when_it_takes_over() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let primary = RedisServer::start(folder.path(), &[]);
    let mut to_primary = primary.connect();
    cmd("FUNCTION").arg(&["LOAD", LIBRARY]).exec(&mut to_primary).unwrap();
    let port = primary.url().rsplit(':').next().unwrap().to_owned();
    let replica = RedisServer::start(other.path(), &["--replicaof", "127.0.0.1", &port]);
    let mut to_replica = replica.connect();
    let admit = |to: &mut Connection, token: &str| {
        cmd("FCALL").arg(&["kunci_admit", "1", "kunci:fence:{r}", token]).query::<String>(to)
    };
    assert_eq!(admit(&mut to_primary, "6").unwrap(), "6");
    // Asked until it has come along: this is what WAIT is for.
    let copies: i64 = (0..100)
        .map(|_| cmd("WAIT").arg(&[1, 100]).query(&mut to_primary).unwrap())
        .find(|copies| *copies > 0)
        .expect("the replica follows");
    assert_eq!(copies, 1);
    assert_eq!(admit(&mut to_replica, "7").unwrap_err().code(), Some("READONLY"));

    cmd("REPLICAOF").arg(&["NO", "ONE"]).exec(&mut to_replica).unwrap();
    assert_eq!(admit(&mut to_primary, "9").unwrap(), "9");
    assert_eq!(
        numbers(admit(&mut to_replica, "5")),
        ("r".to_owned(), 5, 6),
        "what WAIT had waited for is there"
    );
    assert_eq!(admit(&mut to_replica, "8").unwrap(), "8", "what nobody waited for is not");

    cmd("CONFIG").arg(&["SET", "min-replicas-to-write", "1"]).exec(&mut to_primary).unwrap();
    let cut_off = admit(&mut to_primary, "10").unwrap_err();
    assert_eq!(cut_off.code(), Some("NOREPLICAS"), "a primary that was cut off stops admitting: {cut_off}");
}

/// In a cluster the fence key of a resource is in the slot of its data, and keys of two slots are refused.
#[test]
fn in_a_cluster_the_fence_key_is_where_its_data_is() {
    let guarded = Guarded::start(&["--cluster-enabled", "yes"]);
    let mut writer = guarded.writer(By::Library);
    writer.plain::<()>(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).unwrap();
    let is_up = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        guarded
            .writer(By::Library)
            .plain::<String>(&["CLUSTER", "INFO"])
            .unwrap()
            .contains("cluster_state:ok")
    };
    assert!((0..200).find(is_up).is_some(), "the cluster is up");
    for name in ["orders/42", "a b", "{", "a{b", "kunci", "日本"] {
        let fence = fence_key(name).unwrap();
        let mut slot = |key: &str| writer.plain::<u32>(&["CLUSTER", "KEYSLOT", key]).unwrap();
        assert_eq!(slot(&fence), slot(name), "{fence}");
        assert_eq!(slot(&fence), slot(&format!("{{{name}}}:total")), "{fence}");
    }
    for by in [By::Library, By::Script] {
        let mut writer = guarded.writer(by);
        let fence = fence_key("orders/42").unwrap();
        assert_eq!(writer.write::<String>(&fence, "orders/42", "5", &["SET", "v"]).unwrap(), "OK");
        assert!(writer.write::<i64>(&fence, "{orders/42}:n", "5", &["INCR"]).is_ok());
        let elsewhere = writer.write::<String>(&fence, "orders/43", "6", &["SET", "v"]).unwrap_err();
        assert_eq!(elsewhere.code(), Some("CROSSSLOT"), "{elsewhere}");
        assert_eq!(writer.kept(&fence).as_deref(), Some("5"));
    }
}
