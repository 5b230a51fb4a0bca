//! The tools that the configuration makes of programs.

use crate::{config::ProgramTool, error::Error};
use std::sync::Arc;
use toolyard::ToolFactory;
use toolyard_sandbox::PortableTool;

/// The tool of a program.
///
/// # Errors
/// [`Error::Usage`] for a file of the program that cannot be read.
pub(crate) fn tool(program: &ProgramTool) -> Result<Arc<dyn ToolFactory>, Error> {
    let mut tool = PortableTool::new(program.spec.clone(), program.program.clone());
    #[cfg(unix)]
    {
        tool = tool.contained(crate::containment::of_this_program());
    }
    for file in &program.files {
        let name = &program.spec.name;
        tool = tool.of_file(file).map_err(|error| Error::Usage(format!("[program.\"{name}\"]: {error}")))?;
    }
    Ok(Arc::new(tool))
}
