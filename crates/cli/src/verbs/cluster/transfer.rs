//! `kunci cluster transfer`.

use super::change;
use crate::answer::shown;
use crate::args::TransferArgs;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use serde_json::json;

/// Lets another member lead.
pub(super) async fn run(args: &TransferArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let body = args.to.map_or_else(|| json!({}), |to| json!({ "to": to }));
    let answer = change(client, "transfer", body, &args.trying, output).await?;
    output.answer(&answer.body, |body| {
        format!("node {} leads", shown(body, "leader").unwrap_or_else(|| "?".to_owned()))
    })?;
    Ok(Exit::Done)
}
