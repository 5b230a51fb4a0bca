//! The variables that a section gives to what it starts.

use super::section::Section;
use std::env;
use toolyard_mcp::is_inherited;

/// A variable for a program.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    /// Its name.
    pub(super) name: String,
    /// Its value.
    pub(super) value: String,
    /// Whether the value is a secret.
    pub(super) is_secret: bool,
}

/// Reads variables. A value `$NAME` comes from this program's environment: no secret need be in the file. It is treated
/// as a secret, unless it is one that tells no more than where things are.
pub(super) fn read(mut section: Section<'_>) -> Vec<Variable> {
    let mut variables = Vec::new();
    for (name, at, value) in section.entries() {
        let Some(text) = value.get_ref().as_str() else {
            section.report(&value.span(), format!("{}{name} must be a string", section.prefix()));
            continue;
        };
        let is_secret = text.strip_prefix('$').is_some_and(|from| !is_inherited(from));
        match expand(text) {
            Ok(value) => variables.push(Variable { name, value, is_secret }),
            Err(from) => {
                let what = format!("{}{name}: the environment variable {from} is not set", section.prefix());
                section.report(&at, what);
            }
        }
    }
    section.finish();
    variables
}

/// Returns `text`, or the value of the environment variable if it is `$NAME`. The error is the name of an unset one.
pub(super) fn expand(text: &str) -> Result<String, &str> {
    match text.strip_prefix('$') {
        None => Ok(text.to_owned()),
        Some(from) => env::var(from).map_err(|_| from),
    }
}
