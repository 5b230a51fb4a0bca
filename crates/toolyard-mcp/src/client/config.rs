//! The configuration of a server.

mod confinement;
#[cfg(feature = "http")]
mod remote;

pub use confinement::ServerConfinement;
#[cfg(feature = "http")]
pub(crate) use remote::{Header, Remote};
use std::{fmt, path::PathBuf, time::Duration};
use toolyard::ContentHash;
use toolyard_process::Containment;
pub use toolyard_process::LastingLimits as ServerLimits;

/// How long a server may take until its tools are known, by default.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether a tool is removed when its definition changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Pinning {
    /// No: the new definition replaces the old one. The default.
    #[default]
    Off,
    /// Yes, compared with the definition that this process saw first.
    Process,
    /// Yes, compared with the definition in this file, which outlives the process. Tools that the file lacks are added
    /// to it; to approve a change, remove the tool's line.
    File(PathBuf),
}

/// A server, such as a program that is started and spoken to over stdio, and how the engine treats it.
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
    pub(crate) env: Vec<Variable>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) trusted: bool,
    pub(crate) prefix: Option<String>,
    pub(crate) required: bool,
    pub(crate) may_ask: bool,
    pub(crate) pinning: Pinning,
    pub(crate) startup_timeout: Duration,
    pub(crate) containment: Containment,
    pub(crate) confinement: Option<ServerConfinement>,
    pub(crate) unavailable: Option<String>,
    #[cfg(feature = "http")]
    pub(crate) remote: Option<Remote>,
}

/// A variable of a server's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: Hidden,
    is_secret: bool,
}

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hidden(pub(crate) String);

impl Variable {
    fn fingerprint(&self) -> [u8; 32] {
        let Self { name, value, is_secret } = self;
        value.fingerprint(name, *is_secret)
    }
}

impl Hidden {
    /// A hash of a named value, or of its name alone if it is a secret.
    fn fingerprint(&self, name: &str, is_secret: bool) -> [u8; 32] {
        let value = (!is_secret).then(|| ContentHash::new("value").text(&self.0).finish());
        ContentHash::new("named").text(name).option(value).finish()
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl ServerConfig {
    /// A server of this name: this program, spoken to over stdio. It inherits no descriptor.
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
            containment: Containment::default(),
            confinement: None,
            unavailable: None,
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

    /// Sets a variable of its environment, in addition to the few that every server gets, such as `HOME` and `PATH`,
    /// none of which may be a secret.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push(Variable { name: name.into(), value: Hidden(value.into()), is_secret: false });
        self
    }

    /// Sets a variable whose value is a secret; see [`secrets`](Self::secrets).
    #[must_use]
    pub fn secret_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push(Variable { name: name.into(), value: Hidden(value.into()), is_secret: true });
        self
    }

    /// Sets the directory it runs in. The default is that of this process.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets whether its claims about its tools are believed. Tools of an untrusted server are assumed to do anything.
    #[must_use]
    pub fn trusted(mut self, trusted: bool) -> Self {
        self.trusted = trusted;
        self
    }

    /// Sets the prefix before `__` and a tool's name, in place of the server's name. If empty, there is no prefix.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Sets whether the start of all servers fails if this one cannot be started. True by default.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets whether it may ask the client of a call it is running: the client's user, or its model. The client is
    /// reached through the engine's resource [`Clients`](crate::gateway::Clients); without that nothing can be asked.
    #[must_use]
    pub fn may_ask(mut self, may_ask: bool) -> Self {
        self.may_ask = may_ask;
        self
    }

    /// Sets whether a tool is removed when its definition changes.
    #[must_use]
    pub fn pinning(mut self, pinning: Pinning) -> Self {
        self.pinning = pinning;
        self
    }

    /// The file in which its pins are kept, if they are kept in one.
    pub fn pin_file(&self) -> Option<&std::path::Path> {
        match &self.pinning {
            Pinning::File(file) => Some(file),
            _ => None,
        }
    }

    /// Sets how long it may take until its tools are known.
    #[must_use]
    pub fn startup_timeout(mut self, limit: Duration) -> Self {
        self.startup_timeout = limit;
        self
    }

    /// Sets how its processes are kept together, and what is left of them when this process dies. The default is a
    /// process group, [`Containment::Group`]: what leaves it survives. Under a `Containment::Helper` nothing does.
    #[must_use]
    pub fn containment(mut self, containment: Containment) -> Self {
        self.containment = containment;
        self
    }

    /// Confines it: it reaches what this says and nothing else. Its directory is then the one that is set, which it must
    /// reach, else that of this process if it reaches that, else `/tmp`. Only on Linux and under a `Containment::Helper`;
    /// elsewhere it does not start.
    #[must_use]
    pub fn confined(mut self, to: ServerConfinement) -> Self {
        self.confinement = Some(to);
        self
    }

    /// What it is confined to, if it is.
    pub fn confinement(&self) -> Option<&ServerConfinement> {
        self.confinement.as_ref()
    }

    /// Sets the program that is started, in place of the one that was named.
    #[must_use]
    pub fn started_by(mut self, command: impl Into<PathBuf>) -> Self {
        self.command = command.into();
        self
    }

    /// Says why it cannot be started: each of its starts fails, for this reason.
    ///
    /// # Examples
    /// ```
    /// # use toolyard_mcp::ServerConfig;
    /// let git = ServerConfig::new("git", "uvx").unavailable("its package was not fetched");
    /// # let _ = git;
    /// ```
    #[must_use]
    pub fn unavailable(mut self, why: impl Into<String>) -> Self {
        self.unavailable = Some(why.into());
        self
    }

    /// The program that is started; empty for a server over HTTP.
    pub fn program(&self) -> &std::path::Path {
        &self.command
    }

    /// The arguments of the program.
    pub fn arguments(&self) -> &[String] {
        &self.args
    }

    /// The directory that it runs in, if one is set.
    pub fn directory(&self) -> Option<&std::path::Path> {
        self.cwd.as_deref()
    }

    /// Whether it is a program that is started here.
    pub fn is_program(&self) -> bool {
        #[cfg(feature = "http")]
        if self.remote.is_some() {
            return false;
        }
        true
    }

    /// The secrets that it is given, over HTTP or in its environment, for a [`Redactor`](toolyard::Redactor).
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let variables = self.env.iter().filter(|variable| variable.is_secret).map(|it| it.value.0.as_str());
        #[cfg(feature = "http")]
        let variables = variables.chain(self.remote.iter().flat_map(Remote::secrets));
        variables
    }

    /// A hash of how the server is reached: what is started, with which arguments, variables and directory, or which
    /// address is spoken to with which headers. Of a secret only its name counts, since it may be replaced at any time.
    pub(crate) fn reached(&self) -> [u8; 32] {
        // Every field, so that none is forgotten. Those left out say how the server and its tools are treated here.
        let Self {
            command,
            args,
            env,
            cwd,
            confinement,
            #[cfg(feature = "http")]
            remote,
            name: _,
            trusted: _,
            prefix: _,
            required: _,
            may_ask: _,
            pinning: _,
            startup_timeout: _,
            containment: _,
            unavailable: _,
        } = self;
        let path = |path: &PathBuf| ContentHash::new("path").path(path).finish();
        let hash = ContentHash::new("mcp server 1")
            .bytes(&path(command))
            .list(args.iter().map(|argument| ContentHash::new("argument").text(argument).finish()))
            .list(env.iter().map(Variable::fingerprint))
            .option(cwd.as_ref().map(path));
        // What is confined reaches other things; what is not is known as it was before anything could be.
        let hash = confinement.iter().fold(hash, |hash, given| hash.bytes(&given.fingerprint()));
        #[cfg(feature = "http")]
        let hash = hash.option(remote.as_ref().map(Remote::fingerprint));
        hash.finish()
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its breaker (CB-9).
    pub(crate) fn backend(&self) -> String {
        format!("mcp {}", self.name)
    }

    /// The name in the engine of one of its tools.
    pub fn tool_name(&self, tool: &str) -> String {
        match self.prefix.as_deref().unwrap_or(&self.name) {
            "" => tool.to_owned(),
            prefix => format!("{prefix}__{tool}"),
        }
    }

    /// Whether one of its tools may have this name in the engine.
    pub fn may_have(&self, tool: &str) -> bool {
        match self.prefix.as_deref().unwrap_or(&self.name) {
            "" => true,
            prefix => tool.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("__")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-7: what is reached, and how, counts; what a secret is, and how tools are treated here, does not.
    #[test]
    fn a_server_is_known_by_how_it_is_reached() {
        let base = || ServerConfig::new("git", "mcp-server-git").args(["-r", "."]);
        let others = [
            base(),
            ServerConfig::new("git", "/usr/bin/mcp-server-git").args(["-r", "."]),
            base().args(["-r"]),
            base().args([".", "-r"]),
            base().args(["-r."]),
            base().env("MODE", "dry"),
            base().env("MODE", "wet"),
            base().secret_env("TOKEN", "1"),
            base().secret_env("MODE", "1"),
            base().cwd("/"),
            base().confined(ServerConfinement::new()),
            base().confined(ServerConfinement::new().read("/a")),
            base().confined(ServerConfinement::new().write("/a")),
            base().confined(ServerConfinement::new().hosts(["a".parse().unwrap()])),
            base().confined(ServerConfinement::new().allow_private(["a".parse().unwrap()])),
            base().confined(ServerConfinement::new().keep_git(false)),
        ];
        let different: std::collections::BTreeSet<_> = others.iter().map(ServerConfig::reached).collect();
        assert_eq!(different.len(), others.len());
        let same = base().trusted(true).prefix("g").required(false).may_ask(true);
        let same = same.pinning(Pinning::Process).startup_timeout(Duration::ZERO);
        assert_eq!(same.reached(), base().reached());
        let limited = |open_files| {
            let limits = ServerLimits { open_files, ..ServerLimits::default() };
            base().confined(ServerConfinement::new().limited(limits)).reached()
        };
        assert_eq!(limited(Some(64)), limited(None), "a limit says nothing of what is reached");
        let token = |value: &str| base().secret_env("TOKEN", value).reached();
        assert_eq!(token("1"), token("2"), "a secret may be replaced");
    }
}
