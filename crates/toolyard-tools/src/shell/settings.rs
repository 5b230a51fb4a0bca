//! The shell and its settings.

use super::{arguments, tool::ShellTool};
use std::{sync::Arc, time::Duration};
use toolyard_core::{BreakerPolicy, Form, FsMode, Tool, ToolFactory, ToolSpec};
use toolyard_process::Containment;

/// The variables of the program's environment that commands get, unless others are named.
pub const ENVIRONMENT: &[&str] =
    &["PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "TMPDIR"];

/// How many bytes of a command's output are kept by default: half of them from its start, half from its end.
pub const OUTPUT_BYTES: usize = 64 << 10;

/// How long a command that ran into its timeout may take to end: the grace of its processes, and the time to kill
/// them. Their helper deals with any that remain after that.
const TIMEOUT_GRACE: Duration = Duration::from_secs(4);

/// The tool `shell`: runs a command line by `sh -c` in the workspace of the call. It is its own factory.
///
/// Its class is *execute*: calls are serial, need approval, and time out after 600 s. A command gets no standard
/// input, a few named variables and its own process group. Its output, stdout and stderr in order of arrival, is
/// streamed (`tool.output_delta`) and goes into the result, without its middle if it is long. A non-zero exit code
/// is an `execution_error` with the output. When the call is cancelled or times out, the result has the output so
/// far. However the command ends, its processes end with it, background ones too: SIGTERM, three seconds, SIGKILL;
/// see [`Containment`] for which processes are covered.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use toolyard_core::{ContextParts, Resources, ToolContext, ToolFactory};
/// use toolyard_process::Containment;
/// use toolyard_tools::{Workspace, shell::Shell};
/// # let dir = tempfile::tempdir()?;
/// # let root = dir.path();
/// let shell = Shell::new(Containment::Group).environment(["PATH"]);
///
/// // What an engine does for each call:
/// let mut parts = ContextParts::detached("shell");
/// parts.resources = Resources::new().with(Workspace::open(root)?).into();
/// let args = serde_json::json!({"command": "echo one; echo two >&2"});
/// let output = shell.create().execute(&args, &ToolContext::new(parts)).await;
/// assert_eq!(output.map(|output| output.to_text()).ok(), Some("one\ntwo\n".to_owned()));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Shell {
    settings: Arc<Settings>,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) containment: Containment,
    pub(super) environment: Vec<String>,
    pub(super) output_bytes: usize,
    timeout: Option<Duration>,
    forms: [Form; 2],
}

/// The forms of the shell: a part of this program, which runs commands on the host, and a program for a sandbox.
const FORMS: [Form; 2] = [Form::Native, Form::Command];

impl Shell {
    /// Creates a shell whose commands are contained in this way.
    pub fn new(containment: Containment) -> Self {
        let environment = ENVIRONMENT.iter().map(|name| (*name).to_owned()).collect();
        let settings =
            Settings { containment, environment, output_bytes: OUTPUT_BYTES, timeout: None, forms: FORMS };
        Self { settings: Arc::new(settings) }
    }

    /// Names the variables that commands get, in place of [`ENVIRONMENT`]. Names that are invalid, or that the
    /// program's environment does not have, are skipped.
    #[must_use]
    pub fn environment<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into);
        let names = names.filter(|name: &String| !name.is_empty() && !name.contains(['=', '\0']));
        Arc::make_mut(&mut self.settings).environment = names.collect();
        self
    }

    /// Sets how many bytes of an output are kept; see [`OUTPUT_BYTES`]. An engine refuses outputs above its own bound.
    #[must_use]
    pub fn output_bytes(mut self, most: usize) -> Self {
        Arc::make_mut(&mut self.settings).output_bytes = most;
        self
    }

    /// Makes the process sandbox the place where commands run unless a policy says otherwise. Without it that is the host,
    /// where nothing confines them (SB-3).
    #[must_use]
    pub fn confined(mut self) -> Self {
        Arc::make_mut(&mut self.settings).forms = [Form::Command, Form::Native];
        self
    }

    /// Sets the timeout of commands. A call may ask for less.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        Arc::make_mut(&mut self.settings).timeout = Some(limit);
        self
    }
}

impl ToolFactory for Shell {
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::execute("shell")
            .describe(
                "Runs a command line with sh in the workspace, without standard input or terminal. Background \
                 processes are terminated when it ends. Long output is shortened in the middle.",
            )
            .input_schema(arguments::schema())
            .requires_fs(FsMode::Read, "cwd")
            // Failures and timeouts are the command's, and the next command is a different one.
            .breaker(BreakerPolicy::DISABLED)
            .timeout_grace(TIMEOUT_GRACE);
        match self.settings.timeout {
            Some(limit) => spec.timeout(limit),
            None => spec,
        }
    }

    fn forms(&self) -> &[Form] {
        &self.settings.forms
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(ShellTool::new(self.settings.clone()))
    }
}
