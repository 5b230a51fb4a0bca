//! The parts of a log: `log.jsonl.1`, `log.jsonl.2`, …, and `log.jsonl`, which is the newest.

use crate::{error::Error, input::Origin};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The finished parts of a log, with their numbers, oldest first.
fn finished(log: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let Some(name) = log.file_name() else { return Ok(Vec::new()) };
    let start = format!("{}.", name.to_string_lossy());
    let mut parts = Vec::new();
    for entry in fs::read_dir(directory(log))? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&start)).and_then(number);
        parts.extend(number.map(|number| (number, log.with_file_name(name))));
    }
    parts.sort_unstable();
    Ok(parts)
}

/// All parts of a log, oldest first. The newest may be missing, if it was moved away.
///
/// # Errors
/// If the newest part cannot be read, unless it is missing and there are others.
pub(crate) fn all(log: &Path) -> Result<Vec<PathBuf>, Error> {
    let finished = finished(log).unwrap_or_default();
    let mut files: Vec<PathBuf> = finished.into_iter().map(|(_, part)| part).collect();
    if files.is_empty() || log.exists() {
        // Opened, not only looked at, so that an error is told before anything is printed.
        Origin::File(log.to_owned()).reader()?;
        files.push(log.to_owned());
    }
    Ok(files)
}

/// The name of the next finished part.
pub(super) fn next(log: &Path) -> io::Result<PathBuf> {
    let last = finished(log)?.last().map_or(0, |(number, _)| *number);
    Ok(with_suffix(log, &(last + 1).to_string()))
}

/// The name of a file beside the log.
pub(super) fn with_suffix(log: &Path, suffix: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn directory(log: &Path) -> &Path {
    match log.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// The number of a part, as this program writes it.
fn number(suffix: &str) -> Option<u64> {
    let number: u64 = suffix.parse().ok()?;
    (number > 0 && number.to_string() == suffix).then_some(number)
}
