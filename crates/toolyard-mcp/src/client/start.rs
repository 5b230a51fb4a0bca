//! One start of a server: its process, the handshake, its tools.

use super::{
    calls::Calls,
    clean,
    config::ServerConfig,
    connection::{Connection, Service},
    definition::{self, Definitions},
    greeting::{Patience, SHORT},
    group::Group,
    handler::Handler,
    listing::{self, ListFault},
    pins::Pins,
    process::{self, Process},
    questions::Questions,
    shared::Shared,
    transport::Pipes,
    watched::{ENDED, Gone, Watched},
    way::{Failed, Way},
};
use rmcp::{
    RoleClient,
    service::{ClientServiceExt, ServiceError},
    transport::Transport,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// How long a process whose start failed may take to end. Short, because it has nothing to clean up.
const FAILED_GRACE: Duration = Duration::from_millis(200);

/// Maximum number of characters of why a start failed, which may include a server's own words.
const WHY_MAX: usize = 500;

/// A started server.
pub(super) struct Started {
    /// `None` for a server over HTTP.
    pub(super) process: Option<Process>,
    pub(super) service: Service,
    pub(super) connection: Arc<Connection>,
    pub(super) handler: Handler,
    pub(super) definitions: Definitions,
    pub(super) gone: Gone,
}

/// What all starts of a server have in common.
pub(super) struct Starter {
    pub(super) config: ServerConfig,
    pub(super) pins: Pins,
    pub(super) shared: Arc<Shared>,
    pub(super) group: Group,
    /// Whether the last start ended up with the older greeting, which the next one then uses first.
    pub(super) is_old: AtomicBool,
}

impl Starter {
    /// Starts the server. If it ends when greeted in the newer way, it is started again in the older. If it answers
    /// late and does not know the older way, it is started again in the newer. All within the time of one start.
    ///
    /// # Errors
    /// Why it cannot be started.
    ///
    /// # Cancel safety
    /// Dropping the future kills what was started.
    pub(super) async fn start(&self) -> Result<Started, String> {
        let until = Instant::now() + self.config.startup_timeout;
        // Reset, so that the next start tries either way if the server no longer knows the older one.
        let first = if self.is_old.swap(false, Relaxed) { Way::Older } else { Way::Either };
        let started = match self.start_as(first, until).await {
            Err(Failed { instead: Some(way), why, .. }) => {
                tracing::debug!(
                    server = self.config.name,
                    why,
                    ?way,
                    "retrying the start of an MCP server with another handshake"
                );
                self.start_as(way, until).await
            }
            started => started,
        };
        let started = started.map_err(|failed| failed.why)?;
        let info = started.connection.info();
        self.is_old.store(info.is_some_and(|info| info.protocol_version.has_initialize()), Relaxed);
        Ok(started)
    }

    async fn start_as(&self, way: Way, until: Instant) -> Result<Started, Failed> {
        let (config, gone) = (&self.config, Gone::default());
        let handler = Handler::new(Questions::new(&config.name, Calls::default(), config.may_ask));
        let any = config.startup_timeout;
        let patience = Patience { discover: if way == Way::Newer { any } else { SHORT }, any };
        #[cfg(feature = "http")]
        if let Some(remote) = &config.remote {
            let changed = handler.changed.clone();
            let there = super::http::connect(remote, patience, gone.clone(), changed);
            return self.greet(handler, there.map_err(Failed::because)?, None, way, until, gone).await;
        }
        let (process, output, input) = process::start(config, &self.group).map_err(|error| {
            Failed::because(format!("'{}' cannot be started: {error}", config.command.display()))
        })?;
        let pipes = Pipes::new(output, input, patience, gone.clone());
        self.greet(handler, pipes, Some(process), way, until, gone).await
    }

    /// Greets a server within its time limit; one that fails is ended.
    async fn greet<T: Transport<RoleClient> + 'static>(
        &self,
        handler: Handler,
        there: T,
        process: Option<Process>,
        way: Way,
        until: Instant,
        gone: Gone,
    ) -> Result<Started, Failed> {
        let config = &self.config;
        let watched = Watched::new(there, handler.questions.calls(), gone.clone());
        let met = timeout_at(until, self.meet(handler.clone(), watched, way)).await;
        let failed = match met {
            Ok(Ok((service, definitions))) => {
                let questions = handler.questions.clone();
                let connection = Arc::new(Connection::new(&config.name, &service, questions, gone.clone()));
                return Ok(Started { process, service, connection, handler, definitions, gone });
            }
            Ok(Err(failed)) => failed,
            Err(_) => {
                let within = toolyard::wording::Span(config.startup_timeout);
                Failed::because(format!("it was not ready within {within}"))
            }
        };
        let knows_more = |why: &&str| failed.is_lost && (process.is_some() || *why != ENDED);
        let lost = gone.why().filter(knows_more);
        let why = clean::text(lost.unwrap_or(&failed.why), WHY_MAX);
        Err(Failed { why: with_end(why, process, FAILED_GRACE).await, ..failed })
    }

    async fn meet<T: Transport<RoleClient> + 'static>(
        &self,
        handler: Handler,
        there: Watched<T>,
        way: Way,
    ) -> Result<(Service, Definitions), Failed> {
        let greeted = handler.serve_with_lifecycle(there, way.lifecycle()).await;
        let service = greeted.map_err(|fault| Failed::greeting(way, &fault))?;
        let listed = listing::all(service.peer()).await.map_err(|error| Failed {
            is_lost: matches!(error, ListFault::Service(ServiceError::TransportClosed)),
            ..Failed::because(error.to_string())
        })?;
        let definitions = definition::define(listed, &self.config, &self.pins, &self.shared);
        Ok((service, definitions))
    }
}

/// Ends a server's processes, if any, and adds to the reason how they ended.
pub(super) async fn with_end(why: String, process: Option<Process>, grace: Duration) -> String {
    match process {
        Some(process) => format!("{why} ({})", process.end(grace).await),
        None => why,
    }
}
