//! The tool `shell`, and how this program contains its commands.

use crate::config::ShellSettings;
use std::sync::Arc;
use toolyard::ToolFactory;
use toolyard_process::Containment;
use toolyard_tools::shell::Shell;

/// The tool. On Linux its commands run under a second process of this program, elsewhere in a process group.
pub(crate) fn tool(settings: &ShellSettings) -> Arc<dyn ToolFactory> {
    let mut shell = Shell::new(containment());
    if let Some(names) = &settings.environment {
        shell = shell.environment(names.iter().map(String::as_str));
    }
    if let Some(limit) = settings.timeout {
        shell = shell.timeout(limit);
    }
    if let Some(bytes) = settings.output_bytes {
        shell = shell.output_bytes(bytes);
    }
    if settings.is_confined {
        shell = shell.confined();
    }
    Arc::new(shell)
}

#[cfg(target_os = "linux")]
pub(crate) fn containment() -> Containment {
    // Fails only in unit tests, whose `main` cannot help; they run no command.
    toolyard_process::Helper::this_program().map_or(Containment::Group, Containment::Helper)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn containment() -> Containment {
    Containment::Group
}
