//! `kunci fence redis`.
//!
//! Owns: its options, and what is said about each server. Never: the fence; that is `kunci_fence::redis`.

mod findings;
mod server;

use crate::exit::{CODES, Exit, Failure};
use crate::output::{Form, Output};
use clap::{Args, Subcommand};
use findings::{Level, Report};
use kunci_fence::redis::{LIBRARY, SCRIPT};
use serde_json::json;
use server::Server;

/// `kunci fence redis`.
#[derive(Debug, Args)]
pub(crate) struct RedisArgs {
    /// What to do.
    #[command(subcommand)]
    verb: RedisVerb,
}

/// What can be done with the fence in Redis.
#[derive(Debug, Subcommand)]
enum RedisVerb {
    /// Write the function library to standard output, for `redis-cli -x FUNCTION LOAD REPLACE`.
    Print {
        /// The script for EVAL and EVALSHA instead, for servers where functions aren't to be loaded.
        #[arg(long)]
        script: bool,
    },
    /// Load the function library, in a cluster into every primary; an older version is replaced.
    #[command(after_help = CODES)]
    Install(At),
    /// See whether the fence is loaded and works, and which settings of the server put kept tokens at risk.
    ///
    /// Ends with 0 when the fence can be relied on within what the warnings say, and with 1 when it can't.
    #[command(after_help = CODES)]
    Check(At),
}

/// Which Redis, and in which form it is shown.
#[derive(Debug, Args)]
struct At {
    /// The server, or any node of a cluster: redis://HOST:PORT, redis://USER:PASSWORD@HOST:PORT, or unix:///PATH.
    #[arg(
        long = "redis",
        env = "REDIS_URL",
        hide_env_values = true,
        default_value = "redis://127.0.0.1:6379",
        value_name = "URL"
    )]
    url: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl RedisArgs {
    /// Whether `--json` was given.
    pub(crate) fn form(&self) -> Form {
        match &self.verb {
            RedisVerb::Install(at) | RedisVerb::Check(at) if at.json => Form::Json,
            RedisVerb::Print { .. } | RedisVerb::Install(_) | RedisVerb::Check(_) => Form::Human,
        }
    }
}

/// Does what is asked.
pub(crate) fn run(args: &RedisArgs, output: &Output) -> Result<Exit, Failure> {
    match &args.verb {
        RedisVerb::Print { script } => {
            output.bytes(if *script { SCRIPT } else { LIBRARY }.as_bytes())?;
            Ok(Exit::Done)
        }
        RedisVerb::Install(at) => install(at, output),
        RedisVerb::Check(at) => check(at, output),
    }
}

fn install(at: &At, output: &Output) -> Result<Exit, Failure> {
    let mut nodes = Vec::new();
    for mut server in Server::find_primaries(&at.url)? {
        server.load(LIBRARY)?;
        if output.form() == Form::Human {
            output.line(&format!("{}: loaded", server.address()))?;
        }
        nodes.push(json!({ "address": server.address(), "loaded": true }));
    }
    if output.form() == Form::Json {
        output.line(&json!({ "nodes": nodes }).to_string())?;
    }
    Ok(Exit::Done)
}

fn check(at: &At, output: &Output) -> Result<Exit, Failure> {
    let mut reports = Vec::new();
    for mut server in Server::find_primaries(&at.url)? {
        let facts = server.facts()?;
        reports.push(Report::of(server.address(), &facts));
    }
    let is_usable = !reports.iter().any(|report| report.has(Level::Error));
    let body = json!({ "usable": is_usable, "nodes": reports.iter().map(Report::json).collect::<Vec<_>>() });
    output.answer(&body, |_| reports.iter().map(Report::text).collect::<Vec<_>>().join("\n"))?;
    Ok(if is_usable { Exit::Done } else { Exit::Refused })
}
