//! `kunci dev-cluster`: a whole cluster on one machine, for trying out.
//!
//! Owns: the order start, form, watch, stop. Never: starts a node again that died: to see that is what it is for.

mod form;
mod layout;
mod nodes;

use crate::args::DevClusterArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::signals::Signals;
use layout::Layout;
use nodes::{Ended, Nodes};

/// What `kunci dev-cluster --help` says after its options.
pub(crate) const AFTER_HELP: &str = "\
Each node is a process of its own, `kunci server`, and keeps in DIR/node-<i>:
  data/  its data folder    pid  its process id, while it runs    log  what it says
Kill one with `kill -9 $(cat DIR/node-0/pid)` and see the others go on. It isn't started again:
stop dev-cluster with Ctrl-C, which stops all nodes, and start it again with the same DIR.

Exit codes:
   0  stopped, as TERM or INT asked
   1  not started: a port is in use, or a node or the folder can't be used
   2  usage: an argument can't be used as given
  70  every node has ended by itself: their logs say why";

/// Starts the nodes, forms the cluster the first time, and keeps it until somebody stops it.
pub(crate) async fn run(args: &DevClusterArgs, output: &Output) -> Result<Exit, Failure> {
    let layout = Layout::new(args)?;
    layout.prepare()?;
    let mut signals = Signals::catch_ending().map_err(|error| {
        Failure::new(Exit::Refused, format!("catch signals: {error}; nothing was started"))
    })?;
    let mut nodes = Nodes::default();
    let kept = keep(&layout, &mut nodes, &mut signals, output).await;
    if let Err(failure) = &kept
        && nodes.running() > 0
    {
        output.say(&format!("{failure}; stopping"));
    }
    nodes.stop(&mut signals, output).await;
    kept
}

/// Runs the cluster. However this ends, the nodes that still run are the caller's to stop.
async fn keep(
    layout: &Layout,
    nodes: &mut Nodes,
    signals: &mut Signals,
    output: &Output,
) -> Result<Exit, Failure> {
    for node in layout.nodes() {
        nodes.start(node)?;
    }
    let cluster = tokio::select! {
        signal = signals.next_ending() => {
            output.say(&format!("signal {} received: stopping", signal.as_raw()));
            return Ok(Exit::Done);
        }
        Some(ended) = nodes.next_end() => return Err(not_started(layout, &ended)),
        cluster = form::form(layout, output) => cluster?,
    };
    // Whoever read standard output may have gone; the cluster is kept all the same.
    let _ = output.line(&layout.summary(&cluster, nodes));
    loop {
        tokio::select! {
            signal = signals.next_ending() => {
                output.say(&format!("signal {} received: stopping all nodes", signal.as_raw()));
                return Ok(Exit::Done);
            }
            ended = nodes.next_end() => match ended {
                Some(ended) => output.say(&died(layout, &ended)),
                None => {
                    return Err(Failure::new(Exit::Fatal, "every node has ended; start dev-cluster again"));
                }
            },
        }
    }
}

fn not_started(layout: &Layout, ended: &Ended) -> Failure {
    let log = layout.node(ended.index).map(layout::Node::log_end).unwrap_or_default();
    Failure::new(Exit::Refused, format!("node-{} ended at its start ({}): {log}", ended.index, ended.how))
}

fn died(layout: &Layout, ended: &Ended) -> String {
    let log = layout.node(ended.index).map(|node| node.log().display().to_string()).unwrap_or_default();
    format!(
        "node-{} ended ({}) and isn't started again; its log: {log}; to have it back, stop dev-cluster and start \
         it again",
        ended.index, ended.how
    )
}
