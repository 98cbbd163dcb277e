//! The dashboard as a browser gets it: its files, and what their headers forbid.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod http_support;

use http_support::Node;
use serde_json::Value;

/// The page is there without Node, asks no other host, and can't be framed.
#[tokio::test]
async fn the_page_and_each_file_that_it_names_are_served_with_a_strict_policy() {
    let node = Node::start().await;
    let page = node.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let mut files = vec!["/".to_owned()];
    for part in page.text.split(['"', ' ']) {
        files.extend(part.strip_prefix('.').filter(|path| path.starts_with("/ui/")).map(str::to_owned));
    }
    assert_eq!(files.len(), 4, "expected the page, a script, a style sheet and an icon: {files:?}");
    for path in &files {
        let file = node.get(path).await;
        assert_eq!(file.status, 200, "{path}");
        assert!(!file.text.is_empty(), "{path}");
        assert_eq!(file.headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(file.headers["x-frame-options"], "DENY", "{path}");
        assert_eq!(file.headers["cache-control"], "no-cache", "{path}");
        let policy = &file.headers["content-security-policy"];
        for rule in
            ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"]
        {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{path}: {policy}");
    }
    node.stop().await;
}

/// A browser keeps the files and asks whether they changed.
#[tokio::test]
async fn a_file_that_a_browser_has_is_not_sent_again() {
    let node = Node::start().await;
    let first = node.get("/ui/app.js").await;
    let tag = first.headers["etag"].clone();
    let asked = format!("GET /ui/app.js HTTP/1.1\r\nhost: a\r\nif-none-match: {tag}\r\n\r\n");
    let mut connection = node.connect().await;
    connection.send(&asked).await;
    let again = connection.reply().await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    assert_eq!(again.headers["etag"], tag);
    node.stop().await;
}

#[tokio::test]
async fn the_page_is_only_read() {
    let node = Node::start().await;
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(node.call(method, "/", Value::Null).await.status, 405, "{method}");
    }
    assert!(node.get("/ui/other.js").await.is(404, "not_found"));
    node.stop().await;
}
