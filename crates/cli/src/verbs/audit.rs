//! `kunci audit`: reads the audit log of a node on this machine, whether it runs or not.
//!
//! Owns: which records are shown, and how. Never: changes a file.

mod follow;
mod held;
mod show;

use crate::duration;
use crate::exit::{Exit, Failure};
use crate::output::{Form, Output};
use clap::Args;
use kunci_server::audit::{Backward, Forward, Sought, files_of, now_ms, time_ms};
use std::io;
use std::path::{Path, PathBuf};

/// `kunci audit`.
#[derive(Debug, Args)]
#[command(after_help = "\
Times are in UTC unless they say otherwise: 2026-11-30T03:12, 2026-11-30T03:12:00Z, 2026-11-30T04:12:00+01:00; or how long \
ago, such as 10m.

  kunci audit --held orders/42 --at 2026-11-30T03:12    who held it then
  kunci audit orders/42 --last 20                       what happened to it, the last 20 records
  kunci audit --prefix orders/ --kind denied --follow   who is denied what, as it happens

Of each node the log has the decisions of the whole cluster, and what this node refused by itself: docs/audit.md.")]
pub(crate) struct AuditArgs {
    /// Only records of this resource.
    resource: Option<String>,
    /// The data folder of the node.
    #[arg(long, env = "KUNCI_DATA", default_value = "./kunci-data", value_name = "DIR")]
    data: PathBuf,
    /// The folder of the audit log, where the node was given another one.
    #[arg(long, env = "KUNCI_AUDIT_FOLDER", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only records of resources whose name begins like this.
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true, conflicts_with = "resource")]
    prefix: Option<String>,
    /// Only records of this owner.
    #[arg(long, value_name = "OWNER", allow_hyphen_values = true)]
    owner: Option<String>,
    /// Only records of this kind, such as granted, released, expired, forced, denied; may be given again.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only records of the lease with this fencing token.
    #[arg(long, value_name = "N")]
    token: Option<u64>,
    /// Not before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,
    /// Before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,
    /// Only the last so many records.
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Go on with what is recorded from now on.
    #[arg(long, conflicts_with = "to")]
    follow: bool,
    /// Say who held this resource, at the time that --at says.
    #[arg(
        long, value_name = "RESOURCE", allow_hyphen_values = true,
        conflicts_with_all = ["resource", "prefix", "owner", "kind", "token", "from", "to", "last", "follow"]
    )]
    held: Option<String>,
    /// The time for --held. Without it: now.
    #[arg(long, value_name = "TIME", value_parser = time, requires = "held")]
    at: Option<u64>,
    /// Print the records as JSON, one a line.
    #[arg(long)]
    json: bool,
}

impl AuditArgs {
    /// Whether `--json` was given.
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Human }
    }

    fn sought(&self) -> Sought {
        Sought {
            resource: self.resource.clone(),
            prefix: self.prefix.clone(),
            owner: self.owner.clone(),
            kinds: self.kind.clone(),
            token: self.token,
            from_ms: self.from,
            to_ms: self.to,
        }
    }
}

/// A time, or how long ago it was; in ms since 1970.
fn time(text: &str) -> Result<u64, String> {
    if let Ok(ago) = duration::parse(text) {
        return Ok(now_ms().saturating_sub(duration::as_ms(ago)));
    }
    time_ms(text).ok_or_else(|| {
        format!("found `{text}`, expected a time such as 2026-11-30T03:12:00Z (UTC without a zone), or how long ago, such as 10m")
    })
}

/// Shows what was asked for.
pub(crate) fn run(args: &AuditArgs, output: &Output) -> Result<Exit, Failure> {
    let folder = args.folder.as_deref().unwrap_or(&args.data);
    let places = files_of(folder).map_err(|error| unreadable(folder, &error))?;
    if places.is_empty() {
        let text = format!(
            "there is no audit log in {}: name the data folder of a node with --data, or the folder of its audit log with \
             --folder",
            folder.display()
        );
        return Err(Failure::usage(text));
    }
    if let Some(resource) = &args.held {
        return held::run(&places, resource, args.at.unwrap_or_else(now_ms), output)
            .map_err(|error| unreadable(folder, &error))?;
    }
    let sought = args.sought();
    let failed = |error: io::Error| unreadable(folder, &error);
    // Opened before anything is read, so that nothing falls between reading and following.
    let mut following = args.follow.then(|| follow::Following::begin(folder)).transpose().map_err(failed)?;
    let places = following.as_ref().map_or(places.clone(), |following| following.before(&places));
    match args.last {
        Some(last) => {
            let mut records = Vec::new();
            let mut lines = Backward::open(&places).map_err(failed)?;
            while records.len() < last
                && let Some(line) = lines.next().map_err(failed)?
            {
                records.extend(sought.read(line));
            }
            for record in records.iter().rev() {
                show::record(record, output)?;
            }
        }
        None => {
            for line in Forward::open(&places) {
                if let Some(record) = sought.read(&line.map_err(failed)?) {
                    show::record(&record, output)?;
                }
            }
        }
    }
    if let Some(following) = &mut following {
        following.run(|line| match sought.read(line) {
            Some(record) => show::record(&record, output),
            None => Ok(()),
        })?;
    }
    Ok(Exit::Done)
}

fn unreadable(folder: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Refused, format!("read the audit log in {}: {error}", folder.display()))
}
