//! `kunci fence`: one file for each place that compares tokens.
//!
//! Owns: which verb. Never: the comparison; that is `kunci_fence`.

pub(crate) mod postgres;
pub(crate) mod proxy;
pub(crate) mod redis;

use crate::exit::{Exit, Failure};
use crate::output::{Form, Output};
use clap::{Args, Subcommand};

/// `kunci fence`.
#[derive(Debug, Args)]
pub(crate) struct FenceArgs {
    /// Where tokens are compared.
    #[command(subcommand)]
    pub(crate) verb: FenceVerb,
}

/// The places that compare tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum FenceVerb {
    /// Guard tables of a PostgreSQL database.
    #[command(arg_required_else_help = true)]
    Postgres(postgres::PostgresArgs),
    /// Guard keys of a Redis server.
    #[command(arg_required_else_help = true)]
    Redis(redis::RedisArgs),
    /// Guard any HTTP service, as a reverse proxy in front of it.
    Proxy(proxy::ProxyArgs),
}

impl FenceArgs {
    /// Whether `--json` was given.
    pub(crate) fn form(&self) -> Form {
        match &self.verb {
            FenceVerb::Postgres(args) => args.form(),
            FenceVerb::Redis(args) => args.form(),
            FenceVerb::Proxy(_) => Form::Human,
        }
    }
}

/// Does what is asked at one of the places.
pub(crate) fn run(args: &FenceArgs, output: &Output) -> Result<Exit, Failure> {
    match &args.verb {
        FenceVerb::Postgres(args) => postgres::run(args, output),
        FenceVerb::Redis(args) => redis::run(args, output),
        FenceVerb::Proxy(args) => proxy::run(args, output),
    }
}
