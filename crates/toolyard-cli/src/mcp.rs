//! MCP servers over the life of a command: started before its engine, reported on, and shut down after it.

use crate::{
    check::permission,
    config::ProcessSettings,
    containment,
    display::clip,
    error::Error,
    fetch,
    logging::redacted,
    sandboxes,
    setup::Setup,
    table::Table,
    tools::{DESCRIPTION_CHARS, class},
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use toolyard::{Engine, ResourceLimits, Session, ToolEntry, ToolFactory};
use toolyard_mcp::{ServerConfig, ServerLimits, ServerState, ServerStatus, Servers};

/// How long servers may take to shut down after the program was interrupted.
const INTERRUPTED_GRACE: Duration = Duration::from_secs(1);

impl Setup {
    /// Starts the servers of the configuration.
    ///
    /// # Cancel safety
    /// Dropping the future kills what was started.
    pub(crate) async fn connect(&mut self) -> Result<(), Error> {
        if self.config.servers.is_empty() {
            return Ok(());
        }
        let contained = |server: ServerConfig| {
            let server = self.confined(server).containment(containment::of_this_program());
            if self.has_clients { server } else { server.may_ask(false) }
        };
        let servers = self.config.servers.iter().cloned().map(contained).collect();
        self.servers = Some(Servers::start(servers).await?);
        match self.clash() {
            None => Ok(()),
            Some(clash) => {
                self.disconnect(true).await;
                Err(Error::Usage(clash))
            }
        }
    }

    /// Adds to what a confined server reaches what the configuration says of all that is confined. It does not write
    /// what governs this program (SB-11).
    fn confined(&self, server: ServerConfig) -> ServerConfig {
        let server = fetch::fetched(server, &self.root, &sandboxes::system(&self.config));
        let Some(given) = server.confinement().cloned() else { return server };
        let ProcessSettings {
            system,
            keeps_git,
            allow_private,
            // A server lives long: a bound on all that it ever sends would end it some day.
            net_bytes: _,
            #[cfg(target_os = "linux")]
            cgroup,
        } = &self.config.process;
        let given = given.system(system).keep(self.guarded()).keep_git(*keeps_git);
        #[cfg(target_os = "linux")]
        let given = match cgroup {
            Some(cgroup) => given.cgroup(cgroup.clone()),
            None => given,
        };
        server.confined(given.allow_private(allow_private.iter().cloned()))
    }

    /// The error message if a server's tool has the same name as one of the program's own.
    fn clash(&self) -> Option<String> {
        let tool =
            self.server_tools().iter().map(|tool| tool.spec().name).find(|name| self.has_builtin(name))?;
        let (server, _) = served_by(self, &tool)?;
        Some(format!(
            "the MCP server '{server}' has a tool '{tool}', and so does this program: give [mcp.{server}] a prefix, or \
             remove '{tool}' from [builtin] enable"
        ))
    }

    /// Keeps the tools of an engine in step with what the servers list.
    pub(crate) fn attach(&self, engine: &Engine) {
        if let Some(servers) = &self.servers {
            servers.attach(engine);
        }
    }

    /// Shuts down the servers: within a short grace if `quick`, otherwise in their own time.
    pub(crate) async fn disconnect(&mut self, quick: bool) {
        let Some(servers) = self.servers.take() else { return };
        let grace = if quick { INTERRUPTED_GRACE } else { Duration::MAX };
        // Servers that remain are killed.
        let _ = timeout(grace, servers.shutdown()).await;
    }

    /// The servers' tools.
    pub(crate) fn server_tools(&self) -> Vec<Arc<dyn ToolFactory>> {
        self.servers.as_ref().map(Servers::tools).unwrap_or_default()
    }

    /// Whether a tool was refused, or belongs to a server that is not ready: its settings then wait for it.
    pub(crate) fn is_missing(&self, tool: &str) -> bool {
        let servers = self.config.servers.iter().zip(self.statuses());
        servers.into_iter().any(|(config, status)| {
            let is_refused = status.refused.iter().any(|refused| refused.tool == tool);
            let has = status.tools.iter().any(|(name, _)| name == tool);
            is_refused || (!has && status.state != ServerState::Ready && config.may_have(tool))
        })
    }

    fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.as_ref().map(Servers::status).unwrap_or_default()
    }
}

/// Each server, with its state in words, which may be its own.
pub(crate) fn states(setup: &Setup) -> Vec<(String, String)> {
    let state = |(config, status): (&ServerConfig, ServerStatus)| {
        let (tools, place) = (status.tools.len(), place(config));
        let text = match status.state {
            ServerState::Ready => format!("{tools} tools{place}"),
            ServerState::Down { why } | ServerState::GivenUp { why } => {
                format!("not available: {}", redacted(&why))
            }
            _ => "starting".to_owned(),
        };
        (status.name, text)
    };
    setup.config.servers.iter().zip(setup.statuses()).map(state).collect()
}

/// Where a server runs, and with which limits, after the number of its tools.
fn place(server: &ServerConfig) -> String {
    match server.confinement() {
        _ if !server.is_program() => String::new(),
        Some(given) => format!(", in process{}", limits(given.limits())),
        None => ", unconfined".to_owned(),
    }
}

/// The limits of a server, as those of calls are worded.
fn limits(limits: ServerLimits) -> String {
    let ServerLimits { memory, memory_per_process, processes, open_files } = limits;
    let mut of_call = ResourceLimits::unlimited();
    (of_call.memory, of_call.memory_per_process) = (memory, memory_per_process);
    (of_call.processes, of_call.open_files) = (processes, open_files);
    if of_call == ResourceLimits::unlimited() {
        return String::new();
    }
    format!(", limited to {}", permission::limits(&of_call))
}

/// The tools that servers list but the engine does not accept, one line each.
pub(crate) fn refused(setup: &Setup) -> Vec<String> {
    let of_server = |status: ServerStatus| {
        let name = status.name;
        let line = move |refused: toolyard_mcp::Refused| {
            let (tool, why) = (refused.tool.escape_debug(), refused.why);
            redacted(&format!("mcp '{name}': the tool '{tool}' was refused: {why}"))
        };
        status.refused.into_iter().map(line)
    };
    setup.statuses().into_iter().flat_map(of_server).collect()
}

/// Why a tool is in its class: its server's annotations and whether they are trusted, or the configuration.
pub(crate) fn why(setup: &Setup, entry: &ToolEntry) -> String {
    let spec = entry.spec();
    let by_class = entry.why(spec.class());
    if let Some(word) = setup.stand_ins.word(entry.name()) {
        return format!("{word}; {by_class}");
    }
    match served_by(setup, entry.name()) {
        Some((_, _)) if setup.config.tools.contains_key(entry.name()) => by_class + " (configured)",
        Some((_, why)) => format!("{by_class}: {why}"),
        None => by_class,
    }
}

/// The server of a tool, and why the tool is in its class.
fn served_by(setup: &Setup, tool: &str) -> Option<(String, &'static str)> {
    setup.statuses().into_iter().find_map(|status| {
        let (_, why) = status.tools.into_iter().find(|(name, _)| name == tool)?;
        Some((status.name, why))
    })
}

/// The table of the tools offered to a session and of their servers, followed by warnings.
pub(crate) fn table(setup: &Setup, session: &Session, offered: &[Arc<ToolEntry>]) -> String {
    let mut table = Table::new(["name", "server", "class", "approval", "why", "description"]);
    for entry in offered {
        let spec = session.shown_spec(entry);
        table.row([
            spec.name.clone(),
            served_by(setup, &spec.name).map_or_else(|| "-".to_owned(), |(server, _)| server),
            class(&spec),
            setup.confirmation(&spec).as_str().to_owned(),
            why(setup, entry),
            clip(&spec.description, DESCRIPTION_CHARS),
        ]);
    }
    let notes = refused(setup).into_iter().map(|refused| format!("warning: {refused}\n"));
    let missing = states(setup).into_iter().filter(|(_, state)| state.starts_with("not available"));
    let missing = missing.map(|(name, state)| format!("warning: mcp '{name}' is {state}\n"));
    std::iter::once(table.to_string()).chain(missing).chain(notes).collect()
}
