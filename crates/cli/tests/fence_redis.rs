//! `kunci fence redis` against a real Redis.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by a panic, in its helpers too, and says what a server said"
)]

mod console;
#[expect(dead_code, reason = "this needs a part of what starts nodes")]
mod node;
#[path = "../../fence/tests/redis_server/mod.rs"]
mod redis_server;

use console::{is_as_shown, steps};
use node::{Node, call, free_port};
use redis::cmd;
use redis_server::RedisServer;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Exit code, standard output and standard error.
fn kunci(words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kunci"));
    command.args(["fence", "redis"]).args(words).env_remove("REDIS_URL").stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn checked(server: &RedisServer) -> (i32, Value) {
    let (code, out, err) = kunci(&["check", "--json", "--redis", &server.url()]);
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["nodes"][0]["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

fn set(server: &RedisServer, name: &str, value: &str) {
    cmd("CONFIG").arg(&["SET", name, value]).exec(&mut server.connect()).unwrap();
}

#[test]
fn the_fence_is_installed_and_checked_by_two_commands() {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &["--appendonly", "yes", "--appendfsync", "always"]);
    let (code, report) = checked(&server);
    assert_eq!((code, codes(&report)), (1, vec!["not_installed"]), "{report}");

    let (code, out, err) = kunci(&["install", "--redis", &server.url()]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.trim_end().ends_with(": loaded"), "{out}");
    let (code, report) = checked(&server);
    assert_eq!((code, codes(&report)), (0, vec![]), "{report}");
    assert_eq!((&report["usable"], &report["nodes"][0]["library"]), (&true.into(), &"current".into()));

    let admit = ["kunci_admit", "1", "kunci:fence:{r}", "7"];
    let admitted: String = cmd("FCALL").arg(&admit).query(&mut server.connect()).unwrap();
    assert_eq!(admitted, "7");
    let (code, out, _) = kunci(&["install", "--json", "--redis", &server.url()]);
    let body: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &body["nodes"][0]["loaded"]), (0, &true.into()), "{body}");
    let kept: String = cmd("GET").arg("kunci:fence:{r}").query(&mut server.connect()).unwrap();
    assert_eq!(kept, "7", "an install forgets nothing");
}

#[test]
fn settings_that_put_kept_tokens_at_risk_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &[]);
    assert_eq!(kunci(&["install", "--redis", &server.url()]).0, 0);
    let (code, report) = checked(&server);
    assert_eq!((code, codes(&report)), (0, vec!["no_append_only_file"]), "{report}");

    set(&server, "appendonly", "yes");
    set(&server, "maxmemory-policy", "allkeys-lru");
    let (code, report) = checked(&server);
    assert_eq!((code, codes(&report)), (0, vec!["would_evict_fence_keys", "synced_late"]), "{report}");
    set(&server, "maxmemory", "100mb");
    let (code, out, _) = kunci(&["check", "--redis", &server.url()]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("error: maxmemory-policy allkeys-lru throws fence keys out"), "{out}");

    let other = "#!lua name=kunci\nredis.register_function('kunci_kept', function() return false end)";
    cmd("FUNCTION").arg(&["LOAD", "REPLACE", other]).exec(&mut server.connect()).unwrap();
    assert_eq!(codes(&checked(&server).1).first(), Some(&"other_version"));
}

#[test]
fn in_a_cluster_every_primary_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &["--cluster-enabled", "yes"]);
    cmd("CLUSTER").arg(&["ADDSLOTSRANGE", "0", "16383"]).exec(&mut server.connect()).unwrap();
    let (code, out, err) = kunci(&["install", "--redis", &server.url()]);
    assert_eq!((code, out.lines().count()), (0, 1), "{out}{err}");
    let (_, report) = checked(&server);
    assert_eq!(report["nodes"][0]["library"], "current", "{report}");
}

#[test]
fn the_library_can_be_loaded_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &[]);
    let (code, library, _) = kunci(&["print"]);
    assert_eq!(code, 0);
    let name: String =
        cmd("FUNCTION").arg(&["LOAD", "REPLACE", &library]).query(&mut server.connect()).unwrap();
    assert_eq!(name, "kunci");
    assert_eq!(checked(&server).1["nodes"][0]["library"], "current");
    let (_, script, _) = kunci(&["print", "--script"]);
    let token: String = cmd("EVAL").arg(&[&script, "1", "f", "7"]).query(&mut server.connect()).unwrap();
    assert_eq!(token, "7");
}

#[test]
fn a_server_that_is_not_there_and_one_that_is_not_meant_end_in_different_codes() {
    let (code, _, err) = kunci(&["check", "--redis", "redis://127.0.0.1:1"]);
    assert_eq!(code, 69, "{err}");
    for url in ["rediss://127.0.0.1:1", "127.0.0.1:x", "http://a"] {
        let (code, _, err) = kunci(&["check", "--redis", url]);
        assert_eq!(code, 2, "{url}: {err}");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &["--requirepass", "secret"]);
    let (code, _, err) = kunci(&["check", "--redis", &server.url()]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("NOAUTH"), "{err}");
    let with_password = server.url().replace("redis://", "redis://:secret@");
    assert_eq!(kunci(&["install", "--redis", &with_password]).0, 0);
}

/// Every command of docs/fence-redis.md does what it shows, in the shell of a reader, with a node and a Redis.
#[test]
fn every_command_of_the_page_does_what_it_shows() {
    let page = include_str!("../../../docs/fence-redis.md");
    let steps = steps(page);
    assert!(steps.len() >= 15, "only {} commands were found", steps.len());
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &["--appendonly", "yes", "--appendfsync", "always"]);
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let node = Node::spawn(&folder.path().join("node"), free_port(), &[]);
    while !call(node.http(), "GET", "/readyz", None).is_ok_and(|(status, _)| status == 200) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }

    // In place of `redis-cli`, with the port: the jobs of `kunci exec` have shells of their own.
    let own = folder.path().join("bin");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("redis-cli"), format!("#!/bin/sh\nexec /usr/bin/redis-cli -p {port} \"$@\"\n"))
        .unwrap();
    let mut script = "exec 2>&1\nchmod +x bin/redis-cli\n".to_owned();
    for step in &steps {
        script.push_str(&format!("{}\nprintf '\\036'\n", step.command));
    }
    let built = std::path::PathBuf::from(env!("CARGO_BIN_EXE_kunci"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [own, built.parent().unwrap().to_owned()].into_iter().chain(std::env::split_paths(&path));
    let output = Command::new("timeout")
        .args(["60", "bash", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("REDIS_URL", server.url())
        .env("KUNCI_URL", format!("http://{}", node.http()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said =
        String::from_utf8(output.stdout).unwrap().replace(&format!("127.0.0.1:{port}"), "127.0.0.1:6379");
    let said: Vec<&str> = said.split('\u{1e}').collect();
    assert_eq!(said.len(), steps.len() + 1, "{said:?}");
    for (step, said) in steps.iter().zip(said) {
        let (shown, said) = (step.shown.join("\n"), said.trim_end());
        let is_right = shown.is_empty() && said.is_empty() || is_as_shown(shown.trim_end(), said);
        let (line, command) = (step.line, step.command);
        assert!(is_right, "docs/fence-redis.md:{line}: `{command}` shows\n{shown}\nbut says\n{said}");
    }
}
