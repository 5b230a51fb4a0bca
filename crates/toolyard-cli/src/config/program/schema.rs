//! The schema of a program's arguments: in the configuration, or in a file beside it.

use super::{
    super::{json, section::Section},
    in_configuration,
};
use serde_json::Value;
use std::{fs::File, io::Read as _, path::Path};
use toml::de::DeValue;

/// The largest size of a schema's file, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Takes `input_schema`.
pub(in crate::config) fn take(section: &mut Section<'_>, here: &Path) -> Option<Value> {
    let value = section.take("input_schema")?;
    let at = value.span();
    let prefix = section.prefix();
    let read = match value.get_ref() {
        DeValue::String(file) => {
            let file = in_configuration(here, &(file.to_string(), at.clone()));
            of_file(&file).map_err(|why| (format!("'{}' {why}", file.display()), at.clone()))
        }
        DeValue::Table(_) => json::of(value),
        _ => {
            Err(("must be a table with a JSON Schema, or the name of a file with one".to_owned(), at.clone()))
        }
    };
    match read {
        Ok(schema) if schema.is_object() => Some(schema),
        Ok(_) => {
            section.report(&at, format!("{prefix}input_schema: a schema is an object"));
            None
        }
        Err((what, at)) => {
            section.report(&at, format!("{prefix}input_schema: {what}"));
            None
        }
    }
}

/// The schema in a file, or why there is none.
fn of_file(file: &Path) -> Result<Value, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    if !std::fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut text = Vec::new();
    File::open(file).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text)).map_err(unreadable)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(format!("is longer than {BYTES_MAX} bytes, the limit for a schema"));
    }
    serde_json::from_slice(&text).map_err(|error| format!("is not JSON: {error}"))
}
