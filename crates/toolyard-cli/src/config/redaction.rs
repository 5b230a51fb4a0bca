//! `[redaction]`: which secrets are kept out of results, events and the log.

use super::section::Section;
use std::{
    env,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};
use toolyard::Redactor;

/// The largest size of a file that holds a secret, in bytes.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// Reads the section. It names secrets and never holds them; file paths are relative to `here`.
pub(super) fn read(mut section: Section<'_>, here: &Path) -> Redactor {
    let patterns = section.boolean("patterns").unwrap_or(true);
    let redactor = if patterns { Redactor::standard() } else { Redactor::new() };
    let mut redactor = redactor.patterns_in_results(section.boolean("results").unwrap_or(false));
    for (name, at) in section.strings("secrets").unwrap_or_default() {
        match add_secret(redactor.clone(), &name, here) {
            Ok(more) => redactor = more,
            Err(what) => section.report(&at, what),
        }
    }
    section.finish();
    redactor
}

fn add_secret(redactor: Redactor, name: &str, here: &Path) -> Result<Redactor, String> {
    let secret = match name.split_once(':') {
        Some(("env", name)) => env::var(name)
            .map_err(|error| format!("[redaction] secrets: the variable '{name}' cannot be read: {error}"))?,
        Some(("file", path)) => text(&here.join(path))
            .map_err(|error| format!("[redaction] secrets: '{path}' cannot be read: {error}"))?,
        // The text may itself be a secret, so it is not repeated.
        _ => {
            let what =
                "[redaction] secrets: do not write a secret here, name it: \"env:NAME\" or \"file:PATH\"";
            return Err(what.to_owned());
        }
    };
    let secret = secret.trim_end_matches(['\r', '\n']);
    redactor.with_secret(secret).map_err(|error| format!("[redaction] secrets: '{name}': {error}"))
}

fn text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(SECRET_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}
