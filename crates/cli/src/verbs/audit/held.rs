//! `kunci audit --held`: who held a resource at a time.

use super::show;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kunci_server::audit::{Doubt, HeldAt, Place};
use serde_json::{Value, json};
use std::io;

/// Says who held it, what is known of the lease, and what makes the answer doubtful.
pub(super) fn run(
    places: &[Place],
    resource: &str,
    at_ms: u64,
    output: &Output,
) -> io::Result<Result<Exit, Failure>> {
    let found = HeldAt::find(places, resource, at_ms)?;
    let body = json!({
        "resource": resource,
        "held": found.grant.is_some(),
        "grant": found.grant,
        "end": found.end,
        "certain": found.doubts.is_empty(),
        "doubts": found.doubts.iter().map(doubt).collect::<Vec<_>>(),
        "newestRecord": found.newest,
    });
    let said = output.answer(&body, |_| text(resource, &found));
    Ok(said.map(|()| Exit::Done))
}

fn doubt(doubt: &Doubt) -> Value {
    match doubt {
        Doubt::BeginsLater => json!({ "why": "the audit log begins later" }),
        Doubt::OlderAreGone => json!({ "why": "older files of the audit log are gone" }),
        Doubt::Gap(gap) => json!({ "why": "a gap", "gap": gap }),
    }
}

fn text(resource: &str, found: &HeldAt) -> String {
    let mut lines = match &found.grant {
        Some(grant) => {
            let owner = grant.owner.as_deref().unwrap_or("somebody");
            vec![format!("{resource} was held by {owner}"), format!("  {}", show::text(grant))]
        }
        None => vec![format!("{resource} was held by nobody")],
    };
    match (&found.grant, &found.end) {
        (_, Some(end)) => lines.push(format!("  {}", show::text(end))),
        (Some(_), None) => {
            let newest = found.newest.as_deref().unwrap_or("now");
            lines.push(format!("  and its end isn't recorded up to {newest}"));
        }
        (None, None) => lines.push("  no grant from before is recorded".to_owned()),
    }
    for doubt in &found.doubts {
        lines.push(match doubt {
            Doubt::BeginsLater => "  doubtful: this audit log begins later".to_owned(),
            Doubt::OlderAreGone => {
                "  doubtful: the older files of this audit log are gone, and what is left says nothing about it".to_owned()
            }
            Doubt::Gap(gap) => format!("  doubtful: {}", show::text(gap)),
        });
    }
    lines.join("\n")
}
