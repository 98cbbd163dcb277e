//! `kunci top`: the cluster and its locks on a terminal, live; or once, for pipes.
//!
//! Owns: whom to ask, which of the forms it is, and how a run ends. Never: what is shown; see `draw` and `plain`.

mod ask;
mod clean;
mod draw;
mod keys;
mod live;
mod model;
mod numbers;
mod plain;
mod scrape;
mod told;
mod words;

use crate::args::TopArgs;
use crate::client::Client;
use crate::door::Doors;
use crate::exit::{Exit, Failure};
use crate::output::{Form, Output};
use ask::{Clients, Wanted};
use kunci_client::{BootClock, Clock as _};
use model::Model;
use std::io::IsTerminal as _;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Between the two looks of `--once`, from which the rates are.
const BETWEEN: Duration = Duration::from_secs(1);

/// Shows the cluster until somebody has seen enough.
pub(crate) async fn run(args: &TopArgs, output: &Output) -> Result<Exit, Failure> {
    let urls = urls(args)?;
    let model = Model::new(&urls, args.prefix.as_deref().unwrap_or_default(), args.every);
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if args.once || args.json || is_dumb || !std::io::stdout().is_terminal() {
        return once(model, output).await;
    }
    live::run(model, args.every).await
}

/// The nodes that the person named, checked.
fn urls(args: &TopArgs) -> Result<Vec<String>, Failure> {
    if args.url.is_empty() {
        let doors = Doors::find(None, None, |name| std::env::var(name).ok());
        return Ok(vec![doors.http("`kunci top`")?.url().to_owned()]);
    }
    args.url.iter().map(|url| Ok(Client::new(url)?.url().to_owned())).collect()
}

/// Two looks, a second apart, and one screen.
async fn once(mut model: Model, output: &Output) -> Result<Exit, Failure> {
    // The members are known only once somebody has told of them.
    look(&mut model).await;
    look(&mut model).await;
    sleep(BETWEEN).await;
    look(&mut model).await;
    let now = BootClock.now();
    let wanted = wanted(&model, None);
    for (asked_at, news) in ask::locks_once(&mut Clients::default(), &wanted).await {
        model.take(asked_at, BootClock.now(), news);
    }
    match output.form() {
        Form::Human => output.line(&plain::text(&model, BootClock.now()))?,
        Form::Json => output.line(&plain::json(&model, BootClock.now()).to_string())?,
    }
    match model.view(now) {
        Some(_) => Ok(Exit::Done),
        None => {
            let text = "no node answers; check --url, or start a node with `kunci server`";
            Err(Failure::new(Exit::Unavailable, text).without_body())
        }
    }
}

/// Asks every node that is known once, all at a time.
async fn look(model: &mut Model) {
    let mut asking = JoinSet::new();
    for url in model.urls() {
        asking.spawn(async move { ask::node_once(&mut Clients::default(), &url).await });
    }
    while let Some(learned) = asking.join_next().await {
        if let Ok((asked_at, news)) = learned {
            model.take(asked_at, BootClock.now(), news);
        }
    }
}

/// What to ask about locks, as far as is known.
fn wanted(model: &Model, opened: Option<String>) -> Wanted {
    let now = BootClock.now();
    let revision = model.view(now).map_or(0, |view| view.revision);
    Wanted { prefix: model.prefix.clone(), opened, ways: model.ways(now), dead: model.dead(), revision }
}
