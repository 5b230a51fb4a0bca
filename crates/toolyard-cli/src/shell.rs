//! The tool `shell`.

use crate::{config::ShellSettings, containment};
use std::sync::Arc;
use toolyard::{Sandbox, ToolFactory};
use toolyard_tools::shell::Shell;

/// The tool, with its settings.
pub(crate) fn tool(settings: &ShellSettings) -> Arc<dyn ToolFactory> {
    let mut shell = Shell::new(containment::of_this_program());
    if let Some(names) = &settings.environment {
        shell = shell.environment(names.iter().map(String::as_str));
    }
    if let Some(limit) = settings.timeout {
        shell = shell.timeout(limit);
    }
    if let Some(bytes) = settings.output_bytes {
        shell = shell.output_bytes(bytes);
    }
    if settings.sandbox == Sandbox::Process {
        shell = shell.confined();
    }
    Arc::new(shell)
}
