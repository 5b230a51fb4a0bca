//! From configuration and options to an engine.

use crate::{
    cli::{EventsArgs, SetupArgs},
    config::{Config, DEFAULT_FILE},
    error::{Error, chain},
    event_file::{EventFile, ProtectedFile},
    identity::Identity,
    logging,
    machines::Machines,
    modules::Modules,
    programs, sandboxes, secrecy,
    stand_ins::{Replay, StandIns, declared},
};
use std::{
    collections::HashMap,
    mem,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolyard::{
    Budgets, ConfirmationMode, Confirmations, Engine, EngineBuilder, FsMode, Registry, SideEffects,
    ToolFactory, ToolSpec, Toolset,
};
use toolyard_mcp::{ServerConfig, Servers};
use toolyard_tools::Workspace;
use toolyard_wire::{Dialect, Format, Message, NameMap};

/// How long running calls may go on after an interrupt (SC-8).
pub(crate) const INTERRUPT_GRACE: Duration = Duration::from_secs(5);

/// Everything that engines are built from.
pub(crate) struct Setup {
    /// The configuration.
    pub(crate) config: Config,
    /// The workspace's root.
    pub(crate) root: PathBuf,
    /// The most calls of a session in flight at once.
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    /// Whether MCP clients are served, whose users MCP servers may ask.
    pub(crate) has_clients: bool,
    /// The MCP servers, once they are started.
    pub(crate) servers: Option<Servers>,
    /// What answers calls in place of their tools.
    pub(crate) stand_ins: StandIns,
    tools: Toolset,
    /// The built-in tools that `toolyard mcp` leaves out.
    unserved: Vec<&'static str>,
}

impl Setup {
    /// Reads the configuration and opens the workspace.
    pub(crate) fn load(args: &SetupArgs) -> Result<Self, Error> {
        Self::of(args, Config::load(args.config.as_deref())?)
    }

    /// The same for what `toolyard mcp` serves: built-in tools only if the configuration enables them, because whoever
    /// puts servers behind it does not expect more tools than theirs.
    pub(crate) fn load_served(args: &SetupArgs) -> Result<Self, Error> {
        let mut config = Config::load(args.config.as_deref())?;
        let unserved = if config.names_builtin { Vec::new() } else { mem::take(&mut config.enabled) };
        let mut setup = Self::of(args, config)?;
        setup.unserved = unserved;
        Ok(setup)
    }

    fn of(args: &SetupArgs, mut config: Config) -> Result<Self, Error> {
        config.redactor = secrecy::with_token(config.redactor);
        logging::redact(config.redactor.clone());
        let root = args.workspace.clone().or_else(|| config.root.clone());
        let root = root.unwrap_or_else(|| PathBuf::from("."));
        config.modules = Modules::compiled(&config.programs, &root).map_err(Error::Usage)?;
        config.machines = Machines::found(&config.machine, &root);
        let tools = toolset(&root, &config)?;
        let setup = Self {
            tools,
            stand_ins: StandIns::of(&config.mocks),
            unserved: Vec::new(),
            max_in_flight: config.max_in_flight,
            has_clients: false,
            servers: None,
            config,
            root,
        };
        setup.guard_configuration();
        match writable_program(&setup.config, setup.scope_root()) {
            Some(what) => Err(Error::Usage(what)),
            None => Ok(setup),
        }
    }

    fn guard_configuration(&self) {
        // The name is guarded even if there is no file: one that a tool writes there would be in force the next time.
        self.guard(self.config.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE)));
        let pins = self.config.servers.iter().filter_map(ServerConfig::pin_file);
        let programs = self.config.programs.iter().flat_map(|program| program.governing());
        pins.chain(programs).for_each(|file| self.guard(file));
    }

    /// An engine with the built-in tools and those of the MCP servers.
    pub(crate) fn engine(&self) -> EngineBuilder {
        self.engine_with(Vec::new())
    }

    /// The same engine with `declared` tools added, which replace others of the same name.
    pub(crate) fn engine_with(&self, declared: Vec<Arc<dyn ToolFactory>>) -> EngineBuilder {
        let taken: Vec<String> = declared.iter().map(|tool| tool.spec().name).collect();
        let mut tools = self.tools.clone();
        tools.tools.extend(self.server_tools());
        tools.tools.retain(|tool| !taken.contains(&tool.spec().name));
        let mut names: Vec<String> = tools.tools.iter().map(|tool| tool.spec().name).collect();
        let is_taken = |name: &str| names.iter().chain(&taken).any(|known| known == name);
        let mocked = self.stand_ins.tools(|name| is_taken(name) || self.unserved.contains(&name));
        names.extend(mocked.iter().map(|tool| tool.spec().name));
        tools.tools.extend(mocked);
        let mut builder = Engine::builder()
            .tools(tools)
            .tools(declared)
            .pools(self.config.pools)
            .limits(self.config.limits)
            .on_serial_failure(self.config.on_serial_failure)
            .on_interrupted(self.config.on_interrupted)
            .reconciler(self.config.reconciles.clone())
            .retry(self.config.retry)
            .breaker(self.config.breaker)
            .budgets(Budgets::from(self.config.budget))
            .confirmations(self.config.confirmations.clone())
            .redact(self.config.redactor.clone())
            .policy(self.config.policy.rules.clone())
            .capabilities(self.config.policy.capabilities.clone())
            .grace(INTERRUPT_GRACE)
            .backend_around({
                let (config, stand_ins) = (self.config.clone(), self.stand_ins.clone());
                move |host| stand_ins.around(sandboxes::backend(&config, host))
            });
        if let Some(most) = self.max_in_flight {
            builder = builder.max_in_flight(most.get());
        }
        if let Some(most) = self.config.tree_max_in_flight {
            builder = builder.tree_max_in_flight(most.get());
        }
        if let Some(limit) = self.config.queue_timeout {
            builder = builder.queue_timeout(limit);
        }
        if let Some(within) = self.config.call_deadline {
            builder = builder.call_deadline(within);
        }
        // The tools of servers come later, so not all that is configured is known by now.
        let is_gone = |name: &String| self.stand_ins.is_replay() && !names.contains(name);
        let is_idle = |name: &String| {
            taken.contains(name)
                || is_gone(name)
                || !names.contains(name) && (self.is_missing(name) || self.is_unserved(name))
        };
        let configured: Vec<String> =
            self.config.tools.keys().filter(|name| !is_idle(name)).cloned().collect();
        names.extend(configured);
        names.sort_unstable();
        names.dedup();
        for name in &names {
            if let Some(config) = self.stand_ins.configured(name, self.config.tools.get(name)) {
                builder = builder.tool_config(name, config);
            }
        }
        builder
    }

    /// Answers calls from an earlier run: no server is started, and the tools that servers had then are declared. What
    /// depends on the time is off, because calls end at another one.
    pub(crate) fn replay(&mut self, replay: Arc<Replay>) {
        self.config.servers.clear();
        (self.config.queue_timeout, self.config.call_deadline) = (None, None);
        let missing = replay.declared().iter().filter(|spec| !self.has_builtin(&spec.name));
        let missing: Vec<_> = missing.cloned().map(declared).collect();
        self.tools.tools.extend(missing);
        self.guard(replay.path());
        self.stand_ins.set_replay(replay);
    }

    /// Keeps tools from writing this file, which governs them or records what they did (SB-11).
    pub(crate) fn guard(&self, file: &Path) {
        if let Some(workspace) = self.tools.resources.get::<Workspace>() {
            workspace.guard(file);
        }
    }

    /// Opens the event file, if one is requested, and keeps tools from writing it.
    pub(crate) fn events(&self, args: &EventsArgs) -> Result<Option<EventFile>, Error> {
        let config = self.config.file.as_deref().and_then(Identity::of_path);
        let protected: Vec<ProtectedFile> = config
            .into_iter()
            .map(|identity| ProtectedFile { what: "the configuration", identity })
            .collect();
        let events = EventFile::of(args, &protected)?;
        if let Some(events) = &events {
            self.guard(events.path());
        }
        Ok(events)
    }

    /// What tools do not write (SB-11).
    pub(crate) fn guarded(&self) -> Vec<PathBuf> {
        self.tools.resources.get::<Workspace>().map(|workspace| workspace.guarded()).unwrap_or_default()
    }

    /// Whether there is nothing that `toolyard mcp` could serve.
    pub(crate) fn serves_nothing(&self) -> bool {
        self.tools.tools.is_empty() && self.config.servers.is_empty() && self.config.mocks.is_empty()
    }

    /// Whether a tool of this name is left out, and no server has one instead. Its settings then have no effect.
    fn is_unserved(&self, name: &str) -> bool {
        self.unserved.contains(&name) && !self.server_tools().iter().any(|tool| tool.spec().name == name)
    }

    /// Whether an enabled built-in tool has this name.
    pub(crate) fn has_builtin(&self, name: &str) -> bool {
        self.tools.tools.iter().any(|tool| tool.spec().name == name)
    }

    /// Whether a tool has this name.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.has_builtin(name) || self.server_tools().iter().any(|tool| tool.spec().name == name)
    }

    /// The maximum number of attempts, by tool.
    pub(crate) fn attempts_max(&self, registry: &Registry) -> HashMap<String, u32> {
        let most = |spec: &ToolSpec| spec.settings.retry.unwrap_or(self.config.retry).max_attempts().get();
        registry.list().iter().map(|entry| (entry.name().to_owned(), most(entry.spec()))).collect()
    }

    /// Which calls need approval in this workspace.
    pub(crate) fn confirmations(&self) -> Confirmations {
        self.config.confirmations.clone().in_workspace(self.scope_root())
    }

    /// Whether writes in this workspace need no approval.
    pub(crate) fn is_trusted(&self) -> bool {
        let roots = &self.config.trusted.roots;
        self.scope_root().is_some_and(|root| roots.iter().any(|trusted| root.starts_with(trusted)))
    }

    /// The workspace's root, with links resolved.
    pub(crate) fn scope_root(&self) -> Option<&Path> {
        self.tools.scope.as_ref().map(|scope| scope.root())
    }

    /// The confirmation mode of a tool's calls.
    pub(crate) fn confirmation(&self, spec: &ToolSpec) -> ConfirmationMode {
        self.confirmations().mode(&spec.name, spec.asked_as())
    }
}

/// The first program that calls may write in this workspace, as an error message: a model could rewrite its own tool
/// (SB-1).
pub(crate) fn writable_program(config: &Config, root: Option<&Path>) -> Option<String> {
    let (root, grants) = (root?, config.policy.capabilities.fs_grants());
    let may_write = |file: &&Path| {
        let file = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
        let Ok(inside) = file.strip_prefix(root) else { return false };
        grants.is_none_or(|grants| grants.iter().any(|grant| grant.covers(FsMode::Write, inside)))
    };
    config.programs.iter().find_map(|program| {
        let file = program.governing().find(may_write)?;
        let (name, file) = (&program.spec.name, file.display());
        Some(format!(
            "[program.\"{name}\"]: tools may write '{file}', which lies in the workspace, and so change what this tool \
             does: move it elsewhere, or set writable = true"
        ))
    })
}

/// The enabled tools, in a workspace.
fn toolset(root: &Path, config: &Config) -> Result<Toolset, Error> {
    let mut set = toolyard_tools::workspace(root).map_err(|error| Error::Workspace(chain(&error)))?;
    set.tools.extend(toolyard_tools::builtin("echo"));
    #[cfg(unix)]
    set.tools.push(crate::shell::tool(&config.shell));
    set.tools.retain(|tool| config.enabled.contains(&tool.spec().name.as_str()));
    for program in &config.programs {
        set.tools.push(programs::tool(program)?);
    }
    Ok(set)
}

/// The settings that would let calls with these side effects run, as advice to the user.
pub(crate) fn settings_allowing(side_effects: &[SideEffects]) -> String {
    let words: Vec<String> = side_effects.iter().map(|effects| format!("{effects} = \"auto\"")).collect();
    format!("--approve auto, or [confirmation] default = {{ {} }} in toolyard.toml", words.join(", "))
}

/// Restores the tools' own names in calls that use the names declared by `tools --as`.
pub(crate) fn with_own_names(message: Message, registry: &Registry) -> Message {
    let names = declared_names(message.format(), registry);
    message.with_original_names(&names)
}

/// The names that `tools --as` declares in this format.
pub(crate) fn declared_names(format: Format, registry: &Registry) -> NameMap {
    let rule = Dialect::from(format).name_rule();
    let entries = registry.list();
    NameMap::new(rule, entries.iter().map(|entry| entry.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_wire::decode;

    #[test]
    fn calls_find_the_tool_that_was_declared_under_another_name() {
        let registry = Registry::default();
        let dotted = toolyard::tool_fn(ToolSpec::pure("fs.read"), |(): (), _| async { Ok("") });
        registry.register(dotted).unwrap();
        let called = r#"[{"type":"tool_use","id":"a","name":"fs_read","input":{}}]"#;
        let message = with_own_names(decode(called, None).unwrap(), &registry);
        assert_eq!(message.calls()[0].name.as_ref(), "fs.read");
    }
}
