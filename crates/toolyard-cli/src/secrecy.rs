//! The program's own secrets: kept from other processes, and from everything that is shown.

use std::env;
use toolyard::Redactor;

/// The environment variable with the bearer token of `toolyard mcp --http`. Not an argument, because every user of the
/// machine can see those.
pub(crate) const TOKEN: &str = "TOOLYARD_MCP_TOKEN";

/// Closes this process to others of the same user: they could read its environment and memory through `/proc`, and
/// commands and servers that it starts are such processes. A core dump would hold the same, so there is none either.
/// Root still reads everything.
///
/// Begins every `main` of this program, also of one that only helps another program.
#[cfg(target_os = "linux")]
pub(crate) fn close_process() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        anstream::eprintln!("toolyard: processes of this user can read the program's environment: {error}");
    }
}

/// The redactor with the token, if the environment has one. One too short to be told from other text is left out.
pub(crate) fn with_token(redactor: Redactor) -> Redactor {
    let Ok(token) = env::var(TOKEN) else { return redactor };
    redactor.clone().with_secret(token).unwrap_or(redactor)
}
