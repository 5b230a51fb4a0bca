//! The arguments of a call of the shell.

use crate::tools::arguments;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use toolyard_core::{Terminal, ToolError};

/// The longest command, in bytes: half the length that Linux allows for one argument of a process.
pub const COMMAND_BYTES_MAX: usize = 64 << 10;

/// The parsed arguments.
#[derive(Debug, Deserialize)]
pub(super) struct Arguments<'a> {
    pub(super) command: &'a str,
    cwd: Option<&'a str>,
    /// JSON writes 1000 as `1e3`, too, which the schema accepts.
    timeout_ms: Option<f64>,
}

impl<'a> Arguments<'a> {
    /// Parses and checks the arguments.
    ///
    /// # Errors
    /// `invalid_input` for arguments that cannot be passed to a process.
    pub(super) fn read(args: &'a Value) -> Result<Self, ToolError> {
        let read: Self = arguments(args)?;
        let why = match read.command {
            command if command.trim().is_empty() => "the command is empty",
            command if command.len() > COMMAND_BYTES_MAX => {
                "the command is longer than 64 KiB: put it in a file and run that"
            }
            command if command.contains('\0') => "the command contains a NUL byte",
            _ if read.timeout_ms.is_some_and(|millis| millis < 1.0) => "timeout_ms must be longer than zero",
            _ => return Ok(read),
        };
        Err(ToolError::invalid_input(why))
    }

    /// The working directory, relative to the workspace.
    pub(super) fn directory(&self) -> &'a str {
        self.cwd.unwrap_or(".")
    }

    /// What is said of the command.
    pub(super) fn terminal(&self) -> Terminal {
        Terminal { command: self.command.to_owned(), limit: self.limit() }
    }

    /// The timeout that the call itself sets.
    fn limit(&self) -> Option<Duration> {
        self.timeout_ms.map(|millis| Duration::from_millis(millis as u64))
    }
}

/// The schema of the arguments.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string", "minLength": 1, "maxLength": COMMAND_BYTES_MAX,
                "description": "The command line, run by sh -c"
            },
            "cwd": {
                "type": "string", "default": ".",
                "description": "The directory to run in, relative to the workspace"
            },
            "timeout_ms": {
                "type": "integer", "minimum": 1,
                "description": "Stop the command after this many milliseconds, if that is sooner than the tool's own limit"
            },
        },
        "required": ["command"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_no_process_can_be_given_is_refused() {
        let check = |args: Value, expect: &str| {
            let error = Arguments::read(&args).unwrap_err();
            assert!(error.message().contains(expect), "{error}");
        };
        check(json!({"command": " \n"}), "is empty");
        check(json!({"command": "a\0b"}), "NUL");
        check(json!({"command": "x".repeat(COMMAND_BYTES_MAX + 1)}), "64 KiB");
        check(json!({"command": "ls", "timeout_ms": 0}), "longer than zero");
        check(json!({"command": ["ls"]}), "invalid type");
        let args = json!({"command": "ls", "cwd": "src", "timeout_ms": 1500});
        let read = Arguments::read(&args).unwrap();
        assert_eq!((read.directory(), read.limit()), ("src", Some(Duration::from_millis(1500))));
        let args = json!({"command": "ls", "timeout_ms": 1e3});
        assert_eq!(Arguments::read(&args).unwrap().limit(), Some(Duration::from_secs(1)));
    }
}
