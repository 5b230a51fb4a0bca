//! A tool that is a program.

use crate::version;
use async_trait::async_trait;
use serde_json::Value;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolyard_core::{
    ContentHash, Form, Program, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec,
};
#[cfg(unix)]
use toolyard_process::Containment;

/// How long a program that ran into its timeout may take to end: the grace of its processes, and the time to kill them.
const TIMEOUT_GRACE: Duration = Duration::from_secs(4);

/// A tool whose calls are executed by a program of any language (SB-1). The module's documentation has an example.
#[derive(Debug, Clone)]
pub struct PortableTool {
    spec: ToolSpec,
    form: [Form; 1],
    made: Arc<Made>,
    version: ContentHash,
}

/// What each of its calls has.
#[derive(Debug, Clone)]
struct Made {
    program: Program,
    #[cfg(unix)]
    containment: Containment,
}

/// A file that a program is made of cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("'{}' cannot be read: {error}", file.display())]
pub struct FileError {
    /// The file.
    pub file: PathBuf,
    /// Why not.
    pub error: io::Error,
}

impl PortableTool {
    /// A tool with this declaration, whose calls are executed by this program. The version of the declaration is replaced
    /// by a hash of the program's form, so that an approval of what was called by this name before does not hold for what
    /// is now (SM-7).
    pub fn new(spec: ToolSpec, program: Program) -> Self {
        let (form, version) = ([program.form()], version::of(&program));
        // A program that is told to end needs time to do so, and its output so far is part of the answer (SB-7).
        let grace = spec.settings.timeout_grace.unwrap_or(TIMEOUT_GRACE);
        let made = Made {
            program,
            #[cfg(unix)]
            containment: Containment::Group,
        };
        Self { spec: spec.timeout_grace(grace), form, made: Arc::new(made), version }
    }

    /// Sets how the processes of a program on the host are kept together.
    #[cfg(unix)]
    #[must_use]
    pub fn contained(mut self, containment: Containment) -> Self {
        Arc::make_mut(&mut self.made).containment = containment;
        self
    }

    /// Adds the content of a file that the program is made of to the tool's version: a program that was changed is
    /// another one.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be read.
    pub fn of_file(mut self, file: &Path) -> Result<Self, FileError> {
        let failed = |error| FileError { file: file.to_owned(), error };
        self.version = version::with_file(self.version, file).map_err(failed)?;
        Ok(self)
    }
}

impl ToolFactory for PortableTool {
    fn spec(&self) -> ToolSpec {
        let mut spec = self.spec.clone();
        spec.version = self.version.clone().finish_hex();
        spec
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(PortableCall(self.made.clone()))
    }

    fn forms(&self) -> &[Form] {
        &self.form
    }
}

/// One call of it.
struct PortableCall(Arc<Made>);

#[async_trait]
impl Tool for PortableCall {
    /// Runs a command on the host, unconfined. What is no command has no such place.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "where no program can be started"))]
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        #[cfg(unix)]
        if let Program::Command(command) = &self.0.program {
            return crate::command::run(command, &self.0.containment, args, cx).await;
        }
        let what = format!("a tool of form {} does not run on the host", self.0.program.form().as_str());
        Err(ToolError::permission_denied(what).no_side_effect())
    }

    fn program(&self, _: &Value) -> Result<Option<Program>, ToolError> {
        Ok(Some(self.0.program.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_core::{Command, Module};

    fn tool(program: Program) -> PortableTool {
        PortableTool::new(ToolSpec::pure("t"), program)
    }

    /// SB-1: a portable tool says its form, and its program is data.
    #[test]
    fn a_portable_tool_is_data() {
        let program = Program::Command(Command::new("/bin/true"));
        let tool = tool(program.clone());
        assert_eq!(tool.forms(), [Form::Command]);
        assert_eq!(tool.create().program(&Value::Null).unwrap(), Some(program));
    }

    /// SM-7: the version follows from the form, and from the files that were named.
    #[test]
    fn the_version_follows_from_what_it_is_made_of() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let program = || Program::Command(Command::new(file.path()));
        let plain = tool(program()).spec().version;
        let with_content = || tool(program()).of_file(file.path()).unwrap().spec().version;
        let before = with_content();
        assert_eq!(tool(program()).spec().version, plain);
        assert_ne!(before, plain);
        std::fs::write(file.path(), "x").unwrap();
        assert_ne!(with_content(), before);
        let error = tool(program()).of_file(Path::new("/no/such/file")).unwrap_err();
        assert!(error.to_string().starts_with("'/no/such/file' cannot be read: "), "{error}");
    }

    /// SB-3: a module does not run on the host.
    #[tokio::test]
    async fn what_is_no_command_does_not_run_on_the_host() {
        let call = tool(Program::Wasm(Module::new("/a.wasm"))).create();
        let cx = ToolContext::new(toolyard_core::ContextParts::detached("t"));
        let error = call.execute(&Value::Null, &cx).await.unwrap_err();
        assert_eq!(error.message(), "a tool of form wasm does not run on the host");
    }
}
