//! All servers of a program.

use crate::client::{
    config::ServerConfig,
    process::{Running, StartRequest, Starter, Supervisor},
    protocol::Intake,
    tools::{Definitions, Pins, Refused, Roster, ServerState, Shared},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use toolyard::{Engine, ToolFactory};

/// Maximum number of waiting requests to restart a server. One start answers all of them; further requests wait.
const REQUESTS_MAX: usize = 64;

/// Why servers cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Two servers have the same name.
    #[error("two MCP servers are named '{0}'")]
    Twice(String),
    /// There is no server of this name.
    #[error("there is no MCP server '{0}'")]
    Unknown(String),
    /// A server that is required, or whose restart was requested, cannot be started.
    #[error("the MCP server '{server}' cannot be used: {why}")]
    Server {
        /// The server.
        server: String,
        /// Why it cannot be used.
        why: String,
    },
    /// Two servers have a tool of the same name.
    #[error("the MCP servers '{one}' and '{other}' both have a tool '{tool}': give one of them a prefix")]
    Clash {
        /// The tool.
        tool: String,
        /// A server that has it.
        one: String,
        /// The other server.
        other: String,
    },
}

/// The current status of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// The names of its tools in the engine, each with the reason for its class.
    pub tools: Vec<(String, &'static str)>,
    /// The tools that it lists and the engine refuses.
    pub refused: Vec<Refused>,
}

/// Servers that have been started. Dropping this kills all their processes.
///
/// # Examples
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use toolyard::Engine;
/// use toolyard_mcp::{ServerConfig, Servers};
/// let time = ServerConfig::new("time", "mcp-server-time").trusted(true);
/// let servers = Servers::start(vec![time]).await?;
/// let engine = Engine::builder().tools(servers.tools()).build().await?;
/// servers.attach(&engine); // from now on the engine's tools follow the servers'
/// # servers.shutdown().await; Ok(()) }
/// ```
pub struct Servers {
    servers: Vec<Server>,
    intake: Intake,
    stop: CancellationToken,
}

struct Server {
    config: ServerConfig,
    shared: Arc<Shared>,
    roster: Arc<Roster>,
    running: Running,
    requests: mpsc::Sender<StartRequest>,
    task: JoinHandle<()>,
}

impl Servers {
    /// Starts all servers concurrently, and waits until each is ready or has failed.
    ///
    /// # Errors
    /// If a required server cannot be started, or if names clash. No server is left running then.
    ///
    /// # Cancel safety
    /// Dropping the future kills what was started.
    pub async fn start(configs: Vec<ServerConfig>) -> Result<Self, StartError> {
        let stop = CancellationToken::new();
        let mut servers = Self { servers: Vec::new(), intake: Intake::default(), stop };
        let mut firsts = Vec::new();
        for config in configs {
            if servers.servers.iter().any(|server| server.config.name == config.name) {
                return Err(StartError::Twice(config.name));
            }
            firsts.push(servers.spawn(config)?);
        }
        let mut error = None;
        for (index, first) in firsts.into_iter().enumerate() {
            let started = first.await.unwrap_or_else(|_| Err("its supervisor failed".to_owned()));
            if let Err(why) = started {
                error = error.or(servers.servers[index].failed(why));
            }
        }
        match error.or_else(|| servers.clash()) {
            None => Ok(servers),
            Some(error) => {
                servers.shutdown().await;
                Err(error)
            }
        }
    }

    fn spawn(&mut self, config: ServerConfig) -> Result<oneshot::Receiver<Result<(), String>>, StartError> {
        let pins = Pins::open(&config.pinning)
            .map_err(|why| StartError::Server { server: config.name.clone(), why })?;
        let shared = Arc::new(Shared::new(&config.name));
        let roster = Arc::new(Roster::default());
        let running = Running::default();
        let starter = Starter {
            config: config.clone(),
            pins,
            shared: shared.clone(),
            running: running.clone(),
            intake: self.intake.clone(),
            initialize_first: AtomicBool::new(false),
        };

        let (requests, received) = mpsc::channel(REQUESTS_MAX);
        let stop = self.stop.clone();
        let supervisor = Supervisor { starter, roster: roster.clone(), requests: received, stop };
        let (first, is_started) = oneshot::channel();
        let task = tokio::spawn(supervisor.run(first));
        self.servers.push(Server { config, shared, roster, running, requests, task });
        Ok(is_started)
    }

    /// Starts a server, even one that was given up; a running one is ended first. When it is ready again, its breaker
    /// and those of its tools are closed. Calls that it had in flight are lost, as when it dies (V5).
    ///
    /// # Errors
    /// If there is no such server, or if it cannot be started: then it is given up until another restart is requested.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the wait: the server is still started, but breakers stay as they are.
    pub async fn restart(&self, name: &str) -> Result<(), StartError> {
        let server = self.servers.iter().find(|server| server.config.name == name);
        let server = server.ok_or_else(|| StartError::Unknown(name.to_owned()))?;
        let failed = |why| StartError::Server { server: name.to_owned(), why };
        let (request, result) = oneshot::channel();
        // If the supervisor is gone, the answer below fails, too.
        let _ = server.requests.send(request).await;
        result.await.unwrap_or_else(|_| Err("it was stopped".to_owned())).map_err(failed)?;
        server.roster.close_breakers(&server.config.backend());
        Ok(())
    }

    /// Finds two servers with a tool of the same name.
    fn clash(&self) -> Option<StartError> {
        let mut owners = BTreeMap::new();
        for server in &self.servers {
            for tool in server.shared.definitions().tools {
                let other = server.config.name.clone();
                if let Some(one) = owners.insert(tool.name().to_owned(), other.clone()) {
                    return Some(StartError::Clash { tool: tool.name().to_owned(), one, other });
                }
            }
        }
        None
    }

    /// The current tools of all servers, to build an engine with.
    pub fn tools(&self) -> Vec<Arc<dyn ToolFactory>> {
        let of_server = |server: &Server| server.shared.definitions().tools;
        let tools = self.servers.iter().flat_map(of_server);
        tools.map(|tool| tool as Arc<dyn ToolFactory>).collect()
    }

    /// Keeps the tools of an engine, which was built with [`tools`](Self::tools), as the servers list them. Holds the
    /// engine until [`shutdown`](Self::shutdown).
    pub fn attach(&self, engine: &Engine) {
        for server in &self.servers {
            let mut definitions = server.shared.definitions();
            server.roster.attach(engine, &definitions);
            server.roster.sync(&mut definitions);
        }
    }

    /// The status of every server.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.servers.iter().map(Server::status).collect()
    }

    /// Waits until each server takes calls or has been given up.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn settled(&self) {
        for server in &self.servers {
            server.shared.settled().await;
        }
    }

    /// Ends all servers concurrently: the input of each is closed, after 5 s it is terminated, and after 3 s more it is
    /// killed, with all that it started (SC-6).
    ///
    /// Closing the input takes up to 5 s itself if the server has left a message unread. Processes that even a kill
    /// does not end are waited for half a second more.
    ///
    /// # Cancel safety
    /// Dropping the future kills what is left.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        for server in &mut self.servers {
            // A supervisor that failed has ended, too.
            let _ = (&mut server.task).await;
        }
    }
}

impl Server {
    /// The error for a failed start; only a warning if the server is not required.
    fn failed(&self, why: String) -> Option<StartError> {
        let server = self.config.name.clone();
        if self.config.required {
            return Some(StartError::Server { server, why });
        }
        tracing::warn!(server, why, "cannot use an MCP server that is not required");
        None
    }

    fn status(&self) -> ServerStatus {
        let definitions = self.shared.definitions();
        let tools = definitions.tools.iter().map(|tool| (tool.name().to_owned(), tool.why)).collect();
        let state = self.shared.state();
        ServerStatus { name: self.config.name.clone(), state, tools, refused: definitions.refused }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &self.servers {
            server.task.abort();
            // Breaks the cycle: the tools hold the shared state, which holds the tools.
            server.shared.define(Definitions::default());
            server.roster.detach();
            // If the program ends now, the aborted task may never drop its process.
            server.running.kill();
        }
    }
}
