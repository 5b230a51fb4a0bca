//! What a server is started from.

#[cfg(feature = "http")]
use super::remote::Remote;
use std::{path::PathBuf, time::Duration};

/// How long a server may take until its tools are known, where nothing else is said.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether a tool whose definition has changed is taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Pinning {
    /// No: it is put in place of the old one. The default.
    #[default]
    Off,
    /// Yes, compared with how it was when this process saw it first.
    Process,
    /// Yes, compared with what this file says, over many processes. What the file does not have is added to it; to
    /// approve a change, take the tool's line out.
    File(PathBuf),
}

/// A server, such as a program that is started and spoken to over stdio, and what it is to the engine.
///
/// # Examples
/// ```
/// use toolyard_mcp::ServerConfig;
/// let git = ServerConfig::new("git", "mcp-server-git").args(["--repository", "."]).trusted(true);
/// assert_eq!(git.tool_name("git_add"), "git__git_add");
/// assert_eq!(git.prefix("").tool_name("git_add"), "git_add");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    pub(crate) name: String,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) trusted: bool,
    pub(crate) prefix: Option<String>,
    pub(crate) required: bool,
    pub(crate) may_ask: bool,
    pub(crate) pinning: Pinning,
    pub(crate) startup_timeout: Duration,
    #[cfg(feature = "http")]
    pub(crate) remote: Option<Remote>,
}

impl ServerConfig {
    /// A server of this name, which this program is.
    pub fn new(name: impl Into<String>, command: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            trusted: false,
            prefix: None,
            required: true,
            may_ask: false,
            pinning: Pinning::default(),
            startup_timeout: STARTUP_TIMEOUT,
            #[cfg(feature = "http")]
            remote: None,
        }
    }

    /// Sets the program's arguments.
    #[must_use]
    pub fn args<I: Into<String>>(mut self, args: impl IntoIterator<Item = I>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a variable of its environment, beside the few that every server gets: `HOME`, `PATH` and their like, none
    /// that may be a secret.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the directory it runs in; otherwise that of this process.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Believes what it says of its tools. Tools of a server that is not trusted may do anything, whatever it says.
    #[must_use]
    pub fn trusted(mut self, trusted: bool) -> Self {
        self.trusted = trusted;
        self
    }

    /// Sets what stands before `__` and a tool's name in place of the server's name; nothing at all when empty.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets whether nothing is started when this server cannot be. The default.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets whether it may ask, while it has a call, the client that made it: the client's user, or its model. Who reaches
    /// that client is the resource [`Clients`](crate::Clients) of the engine; without it nothing can be asked.
    #[must_use]
    pub fn may_ask(mut self, may_ask: bool) -> Self {
        self.may_ask = may_ask;
        self
    }

    /// Sets whether a tool whose definition has changed is taken away.
    #[must_use]
    pub fn pinning(mut self, pinning: Pinning) -> Self {
        self.pinning = pinning;
        self
    }

    /// Sets how long it may take until its tools are known.
    #[must_use]
    pub fn startup_timeout(mut self, limit: Duration) -> Self {
        self.startup_timeout = limit;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its breaker is called (CB-9).
    pub(crate) fn backend(&self) -> String {
        format!("mcp {}", self.name)
    }

    /// The name that a tool of it has in the engine.
    pub fn tool_name(&self, tool: &str) -> String {
        match self.prefix.as_deref().unwrap_or(&self.name) {
            "" => tool.to_owned(),
            prefix => format!("{prefix}__{tool}"),
        }
    }

    /// Whether this is the name of a tool that it may have.
    pub fn may_have(&self, tool: &str) -> bool {
        match self.prefix.as_deref().unwrap_or(&self.name) {
            "" => true,
            prefix => tool.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("__")),
        }
    }
}
