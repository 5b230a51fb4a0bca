//! One start of a server: its process, the handshake, its tools.

use super::{
    calls::Calls,
    clean,
    config::ServerConfig,
    connection::{Connection, Service},
    definition::{self, Definitions},
    group::Group,
    handler::Handler,
    listing::{self, ListFault},
    pins::Pins,
    process::{self, Process},
    questions::Questions,
    shared::Shared,
    transport::Pipes,
    watched::{Gone, Watched},
};
use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, ServiceError},
    transport::Transport,
};
use std::{error::Error, io, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long a process whose start failed may take to end by itself: it has nothing to put in order.
const FAILED_GRACE: Duration = Duration::from_millis(200);

/// The most characters of what is told of a start that failed: a server's own words may be in it.
const WHY_MAX: usize = 500;

/// A server that has been started.
pub(super) struct Started {
    /// None of a server over HTTP.
    pub(super) process: Option<Process>,
    pub(super) service: Service,
    pub(super) connection: Arc<Connection>,
    pub(super) handler: Handler,
    pub(super) definitions: Definitions,
    pub(super) gone: Gone,
}

/// What every start of a server has in common.
pub(super) struct Starter {
    pub(super) config: ServerConfig,
    pub(super) pins: Pins,
    pub(super) shared: Arc<Shared>,
    pub(super) group: Group,
}

/// Why a start failed.
struct Failed {
    why: String,
    /// It was lost, and there is a better reason than that.
    is_lost: bool,
    /// It ended when it was asked in the newer way, or gave an answer by which it does not speak it.
    may_be_old: bool,
}

impl Starter {
    /// Starts the server. One that ends when it is spoken to in the newer way, or answers that it
    /// speaks no such way, or nonsense, is started anew in the
    /// older.
    ///
    /// # Errors
    /// What to say of it.
    ///
    /// # Cancel safety
    /// Dropping the future kills what was started.
    pub(super) async fn start(&self) -> Result<Started, String> {
        match self.start_as(either()).await {
            Err(Failed { may_be_old: true, .. }) => {
                self.start_as(ClientLifecycleMode::Initialize).await.map_err(|failed| failed.why)
            }
            started => started.map_err(|failed| failed.why),
        }
    }

    async fn start_as(&self, lifecycle: ClientLifecycleMode) -> Result<Started, Failed> {
        let (config, gone) = (&self.config, Gone::default());
        #[cfg(feature = "http")]
        if let Some(remote) = &config.remote {
            return self.greet(super::http::connect(remote), None, lifecycle, gone).await;
        }
        let (process, output, input) = process::start(config, &self.group).map_err(|error| {
            let why = format!("'{}' cannot be started: {error}", config.command.display());
            Failed { why, is_lost: false, may_be_old: false }
        })?;
        let pipes = Pipes::new(output, input, gone.clone());
        self.greet(pipes, Some(process), lifecycle, gone).await
    }

    /// Greets a server within its time; one that fails is ended.
    async fn greet<T: Transport<RoleClient> + 'static>(
        &self,
        way: T,
        process: Option<Process>,
        lifecycle: ClientLifecycleMode,
        gone: Gone,
    ) -> Result<Started, Failed> {
        let config = &self.config;
        let calls = Calls::default();
        let handler = Handler::new(Questions::new(&config.name, calls.clone(), config.may_ask));
        let watched = Watched::new(way, calls, gone.clone());
        let met = timeout(config.startup_timeout, self.meet(handler.clone(), watched, lifecycle)).await;
        let failed = match met {
            Ok(Ok((service, definitions))) => {
                let questions = handler.questions.clone();
                let connection = Arc::new(Connection::new(&config.name, &service, questions, gone.clone()));
                return Ok(Started { process, service, connection, handler, definitions, gone });
            }
            Ok(Err(failed)) => failed,
            Err(_) => {
                let within = toolyard::wording::Span(config.startup_timeout);
                let why = format!("it was not ready within {within}");
                Failed { why, is_lost: false, may_be_old: false }
            }
        };
        let lost = gone.why().filter(|_| failed.is_lost && process.is_some());
        let why = clean::text(lost.unwrap_or(&failed.why), WHY_MAX);
        Err(Failed { why: with_end(why, process, FAILED_GRACE).await, ..failed })
    }

    async fn meet<T: Transport<RoleClient> + 'static>(
        &self,
        handler: Handler,
        way: Watched<T>,
        lifecycle: ClientLifecycleMode,
    ) -> Result<(Service, Definitions), Failed> {
        let is_newer = lifecycle != ClientLifecycleMode::Initialize;
        let service = handler.serve_with_lifecycle(way, lifecycle).await.map_err(|error| {
            let why = match &error {
                ClientInitializeError::TransportError { error, .. } if error.error.is::<io::Error>() => {
                    "it closed its input".to_owned()
                }
                ClientInitializeError::TransportError { error, .. } => {
                    format!("it cannot be reached: {}", causes(error.error.as_ref()))
                }
                error => format!("the handshake failed: {error}"),
            };
            let is_lost = matches!(
                error,
                ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. }
            );
            // Or one that says so, or has an answer to everything, though none to this.
            let is_other = matches!(
                error,
                ClientInitializeError::ExpectedInitResult(_)
                    | ClientInitializeError::NoCompatibleProtocolVersion { .. }
            );
            Failed { why, is_lost, may_be_old: is_newer && (is_lost || is_other) }
        })?;
        let listed = listing::all(service.peer()).await;
        let listed = listed.map_err(|error| Failed {
            is_lost: matches!(error, ListFault::Service(ServiceError::TransportClosed)),
            why: error.to_string(),
            may_be_old: false,
        })?;
        let definitions = definition::define(listed, &self.config, &self.pins, &self.shared);
        Ok((service, definitions))
    }
}

/// An error and what it comes from.
fn causes(error: &(dyn Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Ends a server's processes, if it has some, and tells with the reason how they ended.
pub(super) async fn with_end(why: String, process: Option<Process>, grace: Duration) -> String {
    match process {
        Some(process) => format!("{why} ({})", process.end(grace).await),
        None => why,
    }
}

/// Ask in the newer way, then in the older.
fn either() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}
