//! One start of a server: its process, the handshake, its tools.

use super::{
    child::{self as process, Process},
    running::Running,
};
use crate::client::{
    config::ServerConfig,
    protocol::{
        AnswerTimeouts, DISCOVER_TIMEOUT, Disconnect, ENDED, Handshake, Inspected, Intake, Paced, Pipes,
        StartFailure,
    },
    questions::{Calls, Handler, Questions},
    text::clean,
    tools::{Connection, Definitions, ListError, Pins, Service, Shared, definition, listing},
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
pub(crate) struct Started {
    /// `None` for a server over HTTP.
    pub(crate) process: Option<Process>,
    pub(crate) service: Service,
    pub(crate) connection: Arc<Connection>,
    pub(crate) handler: Handler,
    pub(crate) definitions: Definitions,
    pub(crate) disconnect: Disconnect,
}

/// What all starts of a server have in common.
pub(crate) struct Starter {
    pub(crate) config: ServerConfig,
    pub(crate) pins: Pins,
    pub(crate) shared: Arc<Shared>,
    pub(crate) running: Running,
    pub(crate) intake: Intake,
    /// Whether the last start ended up with the older greeting, which the next one then uses first.
    pub(crate) initialize_first: AtomicBool,
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
    pub(crate) async fn start(&self) -> Result<Started, String> {
        if let Some(why) = &self.config.unavailable {
            return Err(why.clone());
        }
        let deadline = Instant::now() + self.config.startup_timeout;
        // Reset, so that the next start tries either way if the server no longer knows the older one.
        let first =
            if self.initialize_first.swap(false, Relaxed) { Handshake::Initialize } else { Handshake::Auto };
        let started = match self.start_with(first, deadline).await {
            Err(StartFailure { instead: Some(handshake), why, .. }) => {
                tracing::debug!(
                    server = self.config.name,
                    why,
                    way = ?handshake,
                    "retrying the start of an MCP server with another handshake"
                );
                self.start_with(handshake, deadline).await
            }
            started => started,
        };
        let started = started.map_err(|failed| failed.why)?;
        let info = started.connection.info();
        self.initialize_first.store(info.is_some_and(|info| info.protocol_version.has_initialize()), Relaxed);
        Ok(started)
    }

    async fn start_with(&self, handshake: Handshake, deadline: Instant) -> Result<Started, StartFailure> {
        let (config, disconnect) = (&self.config, Disconnect::default());
        let handler = Handler::new(Questions::new(&config.name, Calls::default(), config.may_ask));
        let any = config.startup_timeout;
        let timeouts = AnswerTimeouts {
            discover: if handshake == Handshake::Discover { any } else { DISCOVER_TIMEOUT },
            any,
        };
        #[cfg(feature = "http")]
        if let Some(remote) = &config.remote {
            let changed = handler.changed.clone();
            let intake = self.intake.clone();
            let transport =
                crate::client::http::connect(remote, timeouts, disconnect.clone(), changed, intake)
                    .map_err(StartFailure::because)?;
            return self.greet(handler, transport, None, handshake, deadline, disconnect).await;
        }
        let started = timeout_at(deadline, process::start(config, &self.running)).await;
        let started = started.unwrap_or_else(|late| Err(late.into()));
        let (process, output, input) = started.map_err(|error| {
            StartFailure::because(format!("'{}' cannot be started: {error}", config.command.display()))
        })?;
        let pipes = Pipes::new(Paced::new(output, &self.intake), input, timeouts, disconnect.clone());
        self.greet(handler, pipes, Some(process), handshake, deadline, disconnect).await
    }

    /// Greets a server within its time limit; one that fails is ended.
    async fn greet<T: Transport<RoleClient> + 'static>(
        &self,
        handler: Handler,
        transport: T,
        process: Option<Process>,
        handshake: Handshake,
        deadline: Instant,
        disconnect: Disconnect,
    ) -> Result<Started, StartFailure> {
        let config = &self.config;
        let inspected = Inspected::new(transport, handler.questions.calls(), disconnect.clone());
        let result =
            timeout_at(deadline, self.handshake_and_list(handler.clone(), inspected, handshake)).await;
        let failed = match result {
            Ok(Ok((service, definitions))) => {
                let questions = handler.questions.clone();
                let connection =
                    Arc::new(Connection::new(&config.name, &service, questions, disconnect.clone()));
                return Ok(Started { process, service, connection, handler, definitions, disconnect });
            }
            Ok(Err(failed)) => failed,
            Err(_) => {
                let within = toolyard::wording::Span(config.startup_timeout);
                StartFailure::because(format!("it was not ready within {within}"))
            }
        };
        let knows_more = |why: &&str| failed.is_lost && (process.is_some() || *why != ENDED);
        let lost = disconnect.why().filter(knows_more);
        let why = clean::text(lost.unwrap_or(&failed.why), WHY_MAX);
        Err(StartFailure { why: with_end(why, process, FAILED_GRACE).await, ..failed })
    }

    async fn handshake_and_list<T: Transport<RoleClient> + 'static>(
        &self,
        handler: Handler,
        transport: Inspected<T>,
        handshake: Handshake,
    ) -> Result<(Service, Definitions), StartFailure> {
        let greeted = handler.serve_with_lifecycle(transport, handshake.lifecycle()).await;
        let service = greeted.map_err(|error| StartFailure::greeting(handshake, &error))?;
        let listed = listing::all(service.peer()).await.map_err(|error| StartFailure {
            is_lost: matches!(error, ListError::Service(ServiceError::TransportClosed)),
            ..StartFailure::because(error.to_string())
        })?;
        let definitions = definition::define(listed, &self.config, &self.pins, &self.shared);
        Ok((service, definitions))
    }
}

/// Ends a server's processes, if any, and adds to the reason how they ended.
pub(crate) async fn with_end(why: String, process: Option<Process>, grace: Duration) -> String {
    match process {
        Some(process) => format!("{why} ({})", process.end(grace).await),
        None => why,
    }
}
