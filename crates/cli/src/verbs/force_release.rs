//! `kunci force-release`.

use crate::args::ForceReleaseArgs;
use crate::client::{Call, Client};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::patience;
use crate::url::lock_path;
use serde_json::json;

/// Ends the lease with this token, whoever holds it.
pub(crate) async fn run(args: &ForceReleaseArgs, client: &Client, output: &Output) -> Result<Exit, Failure> {
    let body = json!({ "fencingToken": args.token, "reason": args.reason });
    let call = Call::post(lock_path(&args.resource, "/force-release"), body);
    let answer = patience::call(client, &call, args.trying.patience, output).await?;
    if !answer.is_success() {
        return Err(Failure::refusal(&answer));
    }
    output.answer(&answer.body, |_| {
        format!("{}: the lease with token {} is ended", args.resource, args.token)
    })?;
    Ok(Exit::Done)
}
