//! `kunci repair`.

use crate::args::RepairArgs;
use crate::exit::{Exit, Failure};
use crate::output::Output;
use kunci_server::{RepairReport, repair};
use serde_json::{Value, json};

/// Cuts what a crash left unfinished, and says what it found.
pub(crate) fn run(args: &RepairArgs, output: &Output) -> Result<Exit, Failure> {
    let report = repair(&args.data).map_err(|error| Failure::new(Exit::Refused, error.to_string()))?;
    output.answer(&body(&report), |_| report.to_string())?;
    Ok(Exit::Done)
}

fn body(report: &RepairReport) -> Value {
    let cut = report.cut.iter().map(|end| {
        json!({ "file": end.file.display().to_string(), "wholeBytes": end.whole_bytes, "cutBytes": end.cut_bytes })
    });
    json!({ "files": report.files, "records": report.records, "cut": cut.collect::<Vec<_>>() })
}
