//! A rejection that a protected resource reports, at a real node.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in its helpers too")]

#[expect(dead_code, reason = "this needs a part of what starts nodes")]
mod node;

use kunci_fence::gate::Rejected;
use kunci_fence::report::reporter;
use kunci_types::{FencingToken, ResourceName};
use node::{Node, call, free_port};
use std::time::Duration;

/// Contract, section 6: a report is counted by the node that took it, and its log has the resource and both tokens.
#[test]
fn a_reported_rejection_is_counted_and_logged_with_both_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::spawn(&folder.path().join("data"), free_port(), &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (reporter, sending) = reporter(&[format!("http://{}", node.http())]).unwrap();
        tokio::spawn(sending);
        let token = |number| FencingToken::presented(number).unwrap();
        let resource = ResourceName::parse("orders/42").unwrap();
        let rejected = Rejected { resource, found: token(41), kept: token(77) };
        // The node may still be starting.
        for _ in 0..600 {
            reporter.report(rejected.clone());
            tokio::time::sleep(Duration::from_millis(50)).await;
            if reporter.counts().told > 0 {
                break;
            }
        }
        let told = reporter.counts().told;
        assert!(told > 0, "{}", node.words());
    });
    let (status, metrics) = call(node.http(), "GET", "/metrics", None).unwrap();
    assert_eq!(status, 200, "{metrics}");
    let words = node.words();
    let line = words
        .lines()
        .find(|line| line.contains("refused a stale token"))
        .unwrap_or_else(|| panic!("{words}"));
    assert!(["orders/42", "41", "77"].iter().all(|part| line.contains(part)), "{line}");
}
