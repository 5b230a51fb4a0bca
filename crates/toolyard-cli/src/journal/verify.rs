//! `toolyard journal verify`: whether a journal is whole.

use super::write_line;
use crate::{
    cli::JournalVerifyArgs,
    display::{count, plain},
    error::Error,
    exit::Exit,
};
use serde_json::json;
use std::io::{self, Write};
use toolyard_journal::Report;

/// Prints what is found.
pub(super) fn verify(args: &JournalVerifyArgs) -> Result<Exit, Error> {
    let report = toolyard_journal::verify(&args.file)?;
    let mut out = io::stdout().lock();
    let written = match args.json {
        true => line(&mut out, &report),
        false => text(&mut out, &report),
    };
    written.and_then(|()| out.flush()).map_err(Error::results)?;
    Ok(if report.is_whole() { Exit::Ok } else { Exit::CallFailed })
}

fn line(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let findings = report.findings.iter();
    let findings = findings.map(|one| json!({"what": one.to_string(), "is_damage": one.is_damage()}));
    let fields = json!({
        "is_whole": report.is_whole(),
        "calls": report.calls,
        "open_calls": report.open_calls,
        "findings": findings.collect::<Vec<_>>(),
    });
    write_line(out, &fields)
}

fn text(out: &mut impl Write, report: &Report) -> io::Result<()> {
    for finding in &report.findings {
        let kind = if finding.is_damage() { "damaged" } else { "note" };
        writeln!(out, "{kind}: {}", plain(&finding.to_string()))?;
    }
    let verdict = if report.is_whole() { "whole" } else { "DAMAGED" };
    let calls = count(usize::try_from(report.calls).unwrap_or(usize::MAX), "call");
    writeln!(out, "{verdict}: {calls}, {} of them without a result", report.open_calls)
}
