//! `toolyard.toml`: parsed once into valid values, or into all its errors, each with its line and what to do.

mod agents;
mod breaker;
mod budget;
mod confirmation;
mod duration;
mod gateway;
mod json;
mod limits;
mod machine;
mod mcp;
mod mock;
mod nearest;
mod policy;
mod program;
mod reconcile;
mod redaction;
mod retry;
mod sandbox;
mod section;
mod server;
mod shell;
pub(crate) mod size;
mod tool;
mod variables;
mod written;

use agents::AGENTS_TOOLS;
pub(crate) use agents::{AgentSettings, grant};
pub(crate) use budget::BudgetSettings;
pub(crate) use confirmation::Trusted;
#[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
pub(crate) use machine::Accel;
pub(crate) use machine::MachineSettings;
pub(crate) use nearest::{nearest, nearest_name};
pub(crate) use policy::{CapabilityTexts, PolicySettings};
pub(crate) use program::ProgramTool;
pub(crate) use sandbox::ProcessSettings;
pub(crate) use server::ServerSettings;
pub(crate) use shell::{SHELL, ShellSettings};
pub(crate) use tool::SUB_AGENTS;
pub(crate) use written::{Setting, Written};

use crate::{machines::Machines, modules::Modules, reconcile::Reconciles, stand_ins::Mock};
use section::{Errors, Section, Source};
use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File},
    io::{self, Read},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};
use toolyard::{
    BreakerPolicy, Confirmations, Limits, OnInterrupted, OnSerialFailure, PolicyRules, PoolWidths, Priority,
    Redactor, RetryPolicy, ToolConfig, ToolSpec,
};
use toolyard_mcp::{ClientLimits, ServerConfig};
use toolyard_tools::BUILTIN;

/// The configuration file that is read if none is named.
pub(crate) const DEFAULT_FILE: &str = "toolyard.toml";

/// The spellings of the priorities.
pub(crate) const PRIORITIES: &[(&str, Priority)] =
    &[("normal", Priority::Normal), ("high", Priority::High), ("urgent", Priority::Urgent)];

/// The largest size of a configuration, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// The most errors that are printed.
const ERRORS_MAX: usize = 50;

/// Why a configuration is invalid: all of its errors, in the order of their lines, each on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigErrors {
    /// The file.
    pub(crate) file: String,
    /// The errors; at least one.
    pub(crate) errors: Vec<ConfigError>,
}

/// One error of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigError {
    /// The line, from 1; `None` if the error concerns the whole file.
    pub(crate) line: Option<usize>,
    /// What is wrong and what to do, in one line.
    pub(crate) what: String,
}

impl ConfigErrors {
    /// Each error as it is printed, and how many are left out.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let line = |error: &ConfigError| {
            let place = error.line.map(|line| format!(" line {line}")).unwrap_or_default();
            format!("{}{place}: {}", self.file, error.what)
        };
        let more = self.errors.len().saturating_sub(ERRORS_MAX);
        let more = (more > 0).then(|| format!("{}: … and {more} more errors", self.file));
        self.errors.iter().take(ERRORS_MAX).map(line).chain(more)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.lines().collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}

/// A configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The file it was read from; `None` for the defaults.
    pub(crate) file: Option<PathBuf>,
    /// What it says, as it says it.
    pub(crate) written: Written,
    /// The workspace's root, relative to the current directory.
    pub(crate) root: Option<PathBuf>,
    /// The widths of the pools.
    pub(crate) pools: PoolWidths,
    /// The most calls of a session in flight at once.
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    /// The most calls in flight at once in a session and all its sub-agents.
    pub(crate) tree_max_in_flight: Option<NonZeroUsize>,
    /// How often the session's calls get a permit while calls of several sessions wait.
    pub(crate) priority: Priority,
    /// How long a ready call may wait for its permits.
    pub(crate) queue_timeout: Option<Duration>,
    /// The time that a call may take from being ready to its result.
    pub(crate) call_deadline: Option<Duration>,
    /// What happens to the rest of a batch when a serial call fails.
    pub(crate) on_serial_failure: OnSerialFailure,
    /// What happens behind a call of which nobody knows what it has done, when its turn goes on.
    pub(crate) on_interrupted: OnInterrupted,
    /// The retry policy of tools that do not set their own.
    pub(crate) retry: RetryPolicy,
    /// The breaker policy of tools that do not set their own.
    pub(crate) breaker: BreakerPolicy,
    /// The budgets of turns, sessions and trees.
    pub(crate) budget: BudgetSettings,
    /// The engine's bounds.
    pub(crate) limits: Limits,
    /// How shell commands run.
    pub(crate) shell: ShellSettings,
    /// What the process sandbox gives.
    pub(crate) process: ProcessSettings,
    /// What virtual machines are made of.
    pub(crate) machine: MachineSettings,
    /// The machines, once their parts were looked for.
    pub(crate) machines: Machines,
    /// The modules among the programs, once they are compiled.
    pub(crate) modules: Modules,
    /// The tools that are programs.
    pub(crate) programs: Vec<ProgramTool>,
    /// The names of those that have errors.
    broken_programs: Vec<String>,
    /// What answers calls in place of their tools.
    pub(crate) mocks: Vec<Mock>,
    /// Which tools tell what became of calls of others.
    pub(crate) reconciles: Reconciles,
    /// The MCP servers.
    pub(crate) servers: Vec<ServerConfig>,
    /// The built-in tools that are enabled.
    pub(crate) enabled: Vec<&'static str>,
    /// Whether the file says which those are.
    pub(crate) names_builtin: bool,
    /// How much clients of `toolyard mcp` may send.
    pub(crate) clients: ClientLimits,
    /// Who may do what over HTTP.
    pub(crate) server: ServerSettings,
    /// The agents that `toolyard supervise` starts.
    pub(crate) agents: BTreeMap<String, AgentSettings>,
    /// Settings by tool.
    pub(crate) tools: BTreeMap<String, ToolConfig>,
    /// Which calls need approval.
    pub(crate) confirmations: Confirmations,
    /// Redacts secrets from results, events and the log.
    pub(crate) redactor: Redactor,
    /// The workspaces in which writes need no approval.
    pub(crate) trusted: Trusted,
    /// Which tools may run, and what they may touch.
    pub(crate) policy: PolicySettings,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            file: None,
            written: Written::default(),
            root: None,
            pools: PoolWidths::default(),
            max_in_flight: None,
            tree_max_in_flight: None,
            priority: Priority::default(),
            queue_timeout: None,
            call_deadline: None,
            on_serial_failure: OnSerialFailure::default(),
            on_interrupted: OnInterrupted::default(),
            retry: RetryPolicy::default(),
            breaker: BreakerPolicy::default(),
            budget: BudgetSettings::default(),
            limits: Limits::default(),
            shell: ShellSettings::default(),
            process: ProcessSettings::default(),
            machine: MachineSettings::default(),
            machines: Machines::default(),
            modules: Modules::default(),
            programs: Vec::new(),
            broken_programs: Vec::new(),
            mocks: Vec::new(),
            reconciles: Reconciles::default(),
            servers: Vec::new(),
            enabled: BUILTIN.to_vec(),
            names_builtin: false,
            clients: ClientLimits::default(),
            server: ServerSettings::default(),
            agents: BTreeMap::new(),
            tools: BTreeMap::new(),
            confirmations: Confirmations::default(),
            redactor: Redactor::standard(),
            trusted: Trusted::default(),
            policy: PolicySettings::default(),
        }
    }
}

impl Config {
    /// Reads the named file, else [`DEFAULT_FILE`] if it exists, else the defaults.
    ///
    /// # Errors
    /// [`ConfigErrors`], also for a file that cannot be read.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self, ConfigErrors> {
        let file = named.unwrap_or(Path::new(DEFAULT_FILE));
        if named.is_none() && !file.exists() {
            return Ok(Self::default());
        }
        let unreadable = |what| ConfigErrors {
            file: file.display().to_string(),
            errors: vec![ConfigError { line: None, what }],
        };
        Self::read(file, &text(file).map_err(unreadable)?)
    }

    /// Reads the text of a file. A section with errors does not keep the others from being read.
    fn read(file: &Path, text: &str) -> Result<Self, ConfigErrors> {
        let errors = Errors::default();
        let config = Section::file(Source::new(text, &errors)).map(|section| Self::of(section, file));
        let errors = errors.into_lines(text);
        match config {
            Some(config) if errors.is_empty() => Ok(Self { written: Written::of(text), ..config }),
            _ => Err(ConfigErrors { file: file.display().to_string(), errors }),
        }
    }

    fn of(mut file: Section<'_>, path: &Path) -> Self {
        let (mut config, here) = (Self { file: Some(path.to_owned()), ..Self::default() }, dir_of(path));
        config.workspace(file.section("workspace"), here);
        config.pools(file.section("pools"));
        config.session(file.section("session"));
        config.retry = retry::read(file.section("retry"), config.retry);
        config.breaker = breaker::read(file.section("breaker"), config.breaker);
        config.budget = budget::read(file.section("budget"));
        config.limits = limits::read(file.section("limits"));
        config.shell = shell::read(file.section("shell"));
        let mut sandboxes = file.section("sandbox");
        config.process = sandbox::process(sandboxes.section("process"));
        config.machine = machine::read(sandboxes.section("micro_vm"), here);
        sandboxes.finish();
        config.clients = gateway::read(file.section("gateway"));
        config.servers = mcp::read(file.section("mcp"), here);
        config.builtin(file.section("builtin"));
        let (programs, broken) = program::read(file.section("program"), here, &config.enabled);
        config.programs = programs;
        config.broken_programs = broken;
        config.mocks = mock::read(file.section("mock"), here, |name| config.own(name));
        config.tools(file.section("tools"));
        let agents = agents::read(file.section("agents"), here);
        let of_agents = |name: &str| !agents.is_empty() && AGENTS_TOOLS.contains(&name);
        let known = |name: &str| if of_agents(name) { Ok(()) } else { config.spec(name).map(drop) };
        let asked = confirmation::read(file.section("confirmation"), here, known);
        let policy = policy::read(file.section("policy"), known);
        let server = server::read(file.section("server"), here, known);
        (config.confirmations, config.trusted) = asked;
        config.policy = policy;
        config.server = server;
        config.agents = agents;
        config.policy.rules = config.with_shell(config.policy.as_written.clone());
        config.redactor = redaction::read(file.section("redaction"), here);
        config.redactor = mcp::redact_secrets(&config.servers, config.redactor);
        config.redactor = program::redact_secrets(&config.programs, config.redactor);
        config.redactor = server::redact_secrets(&config.server, config.redactor);
        config.redactor = agents::redact_secrets(&config.agents, config.redactor);
        file.finish();
        config
    }

    /// These rules, with the place of the shell's commands as one of them, where it is none that the tool has of its own.
    pub(crate) fn with_shell(&self, rules: PolicyRules) -> PolicyRules {
        let Ok(spec) = self.spec(shell::SHELL) else { return rules };
        let configured = self.tools.get(shell::SHELL).and_then(|tool| tool.side_effects);
        let side_effects = configured.unwrap_or(spec.side_effects);
        shell::placed(rules, &self.shell, side_effects)
    }

    fn workspace(&mut self, mut section: Section<'_>, here: &Path) {
        // A relative root is resolved against the file that names it, wherever the program is started.
        self.root = section.string("root").map(|(root, _)| match root.starts_with('~') {
            true => root.into(),
            false => here.join(root),
        });
        section.finish();
    }

    fn pools(&mut self, mut section: Section<'_>) {
        let read = section.count("read").map_or(self.pools.read, NonZeroUsize::get);
        let concurrent = section.count("concurrent").map_or(self.pools.concurrent, NonZeroUsize::get);
        self.pools = PoolWidths::new(read, concurrent);
        section.finish();
    }

    fn session(&mut self, mut section: Section<'_>) {
        const ON_SERIAL_FAILURE: &[(&str, OnSerialFailure)] =
            &[("continue", OnSerialFailure::Continue), ("skip_rest", OnSerialFailure::SkipRest)];
        const ON_INTERRUPTED: &[(&str, OnInterrupted)] =
            &[("cancel_rest", OnInterrupted::CancelRest), ("continue", OnInterrupted::Continue)];
        self.max_in_flight = section.count("max_in_flight");
        self.tree_max_in_flight = section.count("tree_max_in_flight");
        if let Some((priority, _)) = section.choice("priority", PRIORITIES) {
            self.priority = priority;
        }
        self.queue_timeout = section.duration("queue_timeout");
        self.call_deadline = section.duration("call_deadline");
        if let Some((then, _)) = section.choice("on_serial_failure", ON_SERIAL_FAILURE) {
            self.on_serial_failure = then;
        }
        if let Some((then, _)) = section.choice("on_interrupted", ON_INTERRUPTED) {
            self.on_interrupted = then;
        }
        section.finish();
    }

    fn builtin(&mut self, mut section: Section<'_>) {
        if let Some(names) = section.strings("enable") {
            let mut enabled = Vec::new();
            for (name, at) in names {
                match builtin().find(|known| *known == name) {
                    Some(known) => enabled.push(known),
                    None => {
                        let nearest = nearest(&name, builtin());
                        section.report(&at, format!("no built-in tool is called '{name}'; {nearest}"));
                    }
                }
            }
            self.names_builtin = true;
            enabled.sort_unstable();
            enabled.dedup();
            // Other sections may name a tool whose name is mistyped here.
            self.enabled = if section.is_valid() { enabled } else { builtin().collect() };
        }
        section.finish();
    }

    fn tools(&mut self, mut section: Section<'_>) {
        let policies = tool::Policies { retry: self.retry, breaker: self.breaker };
        for (name, at, inner) in section.sections() {
            match self.spec(&name) {
                Ok(spec) => {
                    let (settings, reconcile) = tool::read(inner, &spec, policies);
                    self.reconciles.0.extend(reconcile.map(|reconcile| (name.clone(), reconcile)));
                    self.tools.insert(name, settings);
                }
                Err(what) => {
                    section.report(&at, what);
                    // Its keys are checked all the same.
                    tool::read(inner, &ToolSpec::execute(name.as_str()), policies);
                }
            }
        }
        section.finish();
    }

    /// The tool of this name that the configuration makes of a program.
    fn program(&self, name: &str) -> Option<&ProgramTool> {
        self.programs.iter().find(|program| program.spec.name == name)
    }

    /// The built-in tool of this name as its author made it, enabled or not.
    pub(crate) fn authored(&self, name: &str) -> Option<ToolSpec> {
        #[cfg(unix)]
        if name == SHELL {
            return Some(crate::shell::tool(&self.shell).spec());
        }
        toolyard_tools::builtin(name).map(|factory| factory.spec())
    }

    /// The tool of this name that this program has itself, as its author made it.
    fn own(&self, name: &str) -> Option<ToolSpec> {
        if let Some(program) = self.program(name) {
            return Some(program.spec.clone());
        }
        if self.broken_programs.iter().any(|broken| broken == name) {
            return Some(ToolSpec::execute(name));
        }
        self.authored(name).filter(|_| self.enabled.contains(&name))
    }

    /// The tool of this name as its author made it, or an error message if there is none.
    fn spec(&self, name: &str) -> Result<ToolSpec, String> {
        if let Some(spec) = self.own(name) {
            return Ok(spec);
        }
        if let Some(mock) = self.mocks.iter().find(|mock| mock.name == name) {
            return Ok(mock.declared.clone());
        }
        match self.authored(name) {
            // A server's tools are known only once it has started. Until then, assume that they may do anything.
            None if self.servers.iter().any(|server| server.may_have(name)) => Ok(ToolSpec::execute(name)),
            Some(_) => Err(format!("the tool '{name}' is not enabled: add it to [builtin] enable")),
            None => {
                let programs = self.programs.iter().map(|program| program.spec.name.as_str());
                let mocks = self.mocks.iter().map(|mock| mock.name.as_str());
                let nearest = nearest(name, self.enabled.iter().copied().chain(programs).chain(mocks));
                Err(format!("no tool is called '{name}'; {nearest}"))
            }
        }
    }
}

/// The names of the built-in tools that may be enabled. The shell exists only if it is enabled explicitly.
fn builtin() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().copied().chain(shell::HAS_SHELL.then_some(SHELL))
}

/// The directory of a configuration file. Paths in the file are relative to it.
fn dir_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// Reads the text of a configuration, or returns an error message. Only regular files are opened: a pipe may keep its
/// reader waiting, and a device may never end.
fn text(file: &Path) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    if !fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err("not a regular file: a configuration is a text file".to_owned());
    }
    let mut bytes = Vec::new();
    let reader = File::open(file).map_err(unreadable)?;
    reader.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > BYTES_MAX {
        return Err(format!("longer than {BYTES_MAX} bytes, the limit for a configuration"));
    }
    let not_text = |at| format!("byte {at} is not valid UTF-8: save the file as UTF-8");
    String::from_utf8(bytes).map_err(|error| not_text(error.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests;
