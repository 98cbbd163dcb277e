//! `kunci config show`: each setting of a node, and where its value comes from.
//!
//! Owns: the table and its JSON. Never: starts anything.

use super::{ServerArgs, layers, unusable};
use crate::exit::{Exit, Failure};
use crate::output::{Form, Output, table};
use clap::{Args, Subcommand};
use kunci_server::config::{Given, Kind, Layers, Origin, Setting, Settings};
use serde_json::{Value, json};

/// `kunci config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// What to do with the settings.
    #[command(subcommand)]
    verb: ConfigVerb,
}

/// What can be done with settings.
#[derive(Debug, Subcommand)]
enum ConfigVerb {
    /// Show every setting as `kunci server` would have it with the same flags, environment and file.
    Show(ShowArgs),
}

/// `kunci config show`.
#[derive(Debug, Args)]
struct ShowArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

impl ConfigArgs {
    /// Whether `--json` was given.
    pub(crate) fn form(&self) -> Form {
        let ConfigVerb::Show(args) = &self.verb;
        if args.json { Form::Json } else { Form::Human }
    }
}

/// Says what each setting is and where that comes from; a value that a node would refuse is refused here too.
pub(crate) fn show_config(args: ConfigArgs) -> Result<Exit, Failure> {
    let output = Output::new(args.form());
    let ConfigVerb::Show(show) = args.verb;
    let layers = layers(show.server)?;
    Settings::check(&layers).map_err(unusable)?;
    output.answer(&body(&layers), |_| human(&layers))?;
    Ok(Exit::Done)
}

fn body(layers: &Layers) -> Value {
    let one = |(setting, given): (Setting, Option<&Given>)| {
        let origin = given.map_or(&Origin::Default, |given| &given.origin);
        json!({
            "name": setting.name(),
            "value": given.map(|given| value(setting, given)),
            "origin": origin.kind(),
            "from": origin.to_string(),
        })
    };
    json!({ "settings": layers.iter().map(one).collect::<Vec<_>>() })
}

/// Numbers as numbers, switches as booleans; the check has passed.
fn value(setting: Setting, given: &Given) -> Value {
    let text = given.text.to_string_lossy();
    match setting.kind() {
        Kind::Switch => json!(text == "true"),
        Kind::Number { .. } => json!(text.parse::<u64>().ok()),
        Kind::Folder
        | Kind::File
        | Kind::Address
        | Kind::Advertised
        | Kind::Name { .. }
        | Kind::Word(_)
        | Kind::Levels => json!(text),
    }
}

fn human(layers: &Layers) -> String {
    let rows = layers.iter().map(|(setting, given)| {
        let origin = given.map_or(&Origin::Default, |given| &given.origin);
        // What nobody gave and has no default isn't there.
        let value = given.map_or_else(|| "-".to_owned(), |given| given.text.to_string_lossy().into_owned());
        vec![setting.name().to_owned(), value, origin.to_string()]
    });
    table(&["SETTING", "VALUE", "FROM"], &rows.collect::<Vec<_>>())
}
