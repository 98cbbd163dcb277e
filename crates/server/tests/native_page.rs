//! The examples of docs/protocol.md, played on a cluster of three.

#![expect(clippy::disallowed_methods, reason = "a test is the real process, with the real clock")]

mod native_support;

use kunci_api::native::{Answer, Line, Op};
use native_support::{Client, Node, three, until};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::sleep;

const PAGE: &str = include_str!("../../../docs/protocol.md");

/// What differs from run to run, and stays the same within one.
const DRAWN: [&str; 5] = ["lease", "token", "req", "cluster", "leader"];
/// What differs from answer to answer.
const MEASURED: [&str; 3] = ["at", "ttl_ms", "held_ms"];

/// The lines of the page's examples, in order.
fn examples() -> Vec<&'static str> {
    let mut lines = Vec::new();
    let mut is_example = false;
    for line in PAGE.lines() {
        match line {
            "```native" => is_example = true,
            "```" => is_example = false,
            line if is_example => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// Values of the page and what they are in this run.
#[derive(Default)]
struct Known(HashMap<String, String>);

impl Known {
    /// A request of the page, as it is sent here: with this run's lease ids and tokens.
    fn translated(&self, request: &str) -> String {
        let known = |value: &str| self.0.get(value).cloned().unwrap_or_else(|| value.to_owned());
        let fields = request.split(' ').map(|field| match field.strip_prefix("token=") {
            Some(proof) => match proof.split_once(',') {
                Some((token, owner)) => format!("token={},{owner}", known(token)),
                None => field.to_owned(),
            },
            None if field.len() == 22 => known(field),
            None => field.to_owned(),
        });
        fields.collect::<Vec<_>>().join(" ")
    }

    /// Compares an answer with the page's, field by field.
    fn compare(&mut self, wanted: &str, found: &str) {
        let (wanted_fields, found_fields) = (wanted.split(' '), found.split(' '));
        assert_eq!(wanted_fields.clone().count(), found_fields.clone().count(), "\n{wanted}\n{found}");
        for (wanted_field, found_field) in wanted_fields.zip(found_fields) {
            let (Some((name, value)), Some((found_name, found_value))) =
                (wanted_field.split_once('='), found_field.split_once('='))
            else {
                assert_eq!(wanted_field, found_field, "\n{wanted}\n{found}");
                continue;
            };
            assert_eq!(name, found_name, "\n{wanted}\n{found}");
            if DRAWN.contains(&name) {
                let known = self.0.entry(value.to_owned()).or_insert_with(|| found_value.to_owned());
                assert_eq!(known, found_value, "{name} isn't the same again:\n{wanted}\n{found}");
            } else if !MEASURED.contains(&name) {
                assert_eq!(value, found_value, "\n{wanted}\n{found}");
            }
        }
    }
}

async fn client<'a>(
    clients: &'a mut HashMap<String, Client>,
    nodes: &[Node; 3],
    name: &str,
) -> &'a mut Client {
    let [leader, follower, _] = nodes;
    let node = if name == "follower" { follower } else { leader };
    match clients.entry(name.to_owned()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => new.insert(node.connect().await),
    }
}

/// Each example, in the page's order. A request that the page answers later only is queued before the next one is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_are_what_a_node_answers() {
    let nodes = three().await;
    let (mut clients, mut known) = (HashMap::new(), Known::default());
    let lines = examples();
    assert!(lines.len() > 40, "the page has its examples");
    for (number, line) in lines.iter().enumerate() {
        let (name, text) = line.split_at(line.find(['>', '<']).unwrap());
        let client = client(&mut clients, &nodes, name).await;
        if let Some(request) = text.strip_prefix("> ") {
            client.say(&known.translated(request)).await;
            if lines.get(number + 1).is_some_and(|next| !next.starts_with(&format!("{name}<"))) {
                until("the wait is in the queue", async || nodes[0].replica.waiting_calls() > 0).await;
                sleep(Duration::from_millis(50)).await;
            }
        } else {
            let found = client.hear().await;
            known.compare(text.strip_prefix("< ").unwrap(), &found);
        }
    }
    for node in nodes.into_iter().rev() {
        node.stop().await;
    }
}

/// What stands on the page is what the code reads and writes, also where an example isn't played.
#[test]
fn the_page_has_every_operation_and_result_and_its_lines_can_be_read() {
    let (mut results, mut unread) = (BTreeSet::new(), Vec::new());
    for line in examples() {
        let (_, text) = line.split_at(line.find(['>', '<']).unwrap() + 1);
        let text = text.trim_start();
        if line.contains('>') {
            unread.extend(Line::parse(text.as_bytes()).is_err().then_some(text));
            continue;
        }
        let answer = Answer::parse(text.as_bytes()).unwrap_or_else(|bad| panic!("{bad}: {text}"));
        let mut again = Vec::new();
        answer.write(&mut again);
        assert_eq!(String::from_utf8(again).unwrap().trim_end(), text);
        results.insert(text.chars().next().unwrap());
    }
    assert_eq!(results.into_iter().collect::<String>(), "ACEHMNPQRTW");
    assert_eq!(unread, ["A orders/42 soon try #5", "acquire orders/42"]);
    for op in Op::ALL {
        assert!(PAGE.contains(&format!("\n| `{}` | ", op.letter())), "{op:?}");
    }
}
