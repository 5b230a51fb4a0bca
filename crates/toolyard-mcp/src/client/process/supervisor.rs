//! A server's whole life: started, watched, restarted, ended.
//!
//! ```text
//!        ┌── wait ◄─ Restart ─┐
//!        ▼                    │
//!   start ─► ready ─► ended ──┴─ GiveUp ─► given up
//!     ▲       │ ▲                             │
//!     │       └─┘ its list of tools changed   │
//!     └─────── restart is requested ◄─────────┘ or while it is ready, or waits
//! ```

use super::{
    changes::{apply, follow},
    child::EXIT_GRACE,
    restarts::{Next, RestartPolicy},
    start::{Started, Starter, with_end},
};
use crate::client::tools::{Definitions, Roster, ServerState};
use std::sync::Arc;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// Drives a server.
pub(crate) struct Supervisor {
    pub(crate) starter: Starter,
    pub(crate) roster: Arc<Roster>,
    pub(crate) requests: mpsc::Receiver<StartRequest>,
    pub(crate) stop: CancellationToken,
}

/// A request to start a server: where its result is sent.
pub(crate) type StartRequest = oneshot::Sender<Result<(), String>>;

/// What comes next in a server's life.
enum Step {
    /// Nothing: it was stopped.
    End,
    /// It is started, because that was requested or because its wait is over.
    Start(Option<StartRequest>),
    /// It died, for this reason.
    Died(String),
}

impl Supervisor {
    /// Runs until the server is stopped and all its processes have ended.
    ///
    /// # Cancel safety
    /// Dropping the future kills the server's processes.
    pub(crate) async fn run(mut self, first: StartRequest) {
        self.drive(first).await;
        self.starter.shared.down(ServerState::GivenUp { why: "it was stopped".to_owned() }, None);
        // Breaks the cycle: the tools hold the shared state, which held the tools.
        self.starter.shared.define(Definitions::default());
        self.roster.detach();
    }

    async fn drive(&mut self, first: StartRequest) {
        let (mut request, mut policy) = (Some(first), RestartPolicy::default());
        loop {
            let started = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                started = self.starter.start() => started,
            };
            let step = match started {
                Ok(started) => {
                    let ready_at = Instant::now();
                    self.make_ready(&started, request.take());
                    match self.watch(started).await {
                        Step::Died(why) => {
                            self.handle_death(policy.died(Some(ready_at.elapsed())), why).await
                        }
                        step => step,
                    }
                }
                // The requester gets the error, and may ask again.
                Err(why) if request.is_some() => {
                    self.reply(request.take(), Err(why.clone()));
                    self.wait_for_start(None, why).await
                }
                Err(why) => self.handle_death(policy.died(None), why).await,
            };
            match step {
                Step::Start(None) => {}
                Step::Start(asked) => (request, policy) = (asked, RestartPolicy::default()),
                Step::End | Step::Died(_) => return,
            }
        }
    }

    /// Sends the result of a start to its requester, and to those who requested one meanwhile.
    fn reply(&mut self, request: Option<StartRequest>, result: Result<(), String>) {
        let others = std::iter::from_fn(|| self.requests.try_recv().ok());
        for request in request.into_iter().chain(others) {
            // An error means that the requester does not wait any more.
            let _ = request.send(result.clone());
        }
    }

    /// Logs a death, and waits for what comes next.
    async fn handle_death(&mut self, next: Next, why: String) -> Step {
        let server = self.starter.config.name();
        match next {
            Next::Restart(wait) => {
                tracing::warn!(server, why, ?wait, "an MCP server ended and will be restarted");
                self.wait_for_start(Some(Instant::now() + wait), why).await
            }
            Next::GiveUp => {
                tracing::error!(server, why, "an MCP server died too often and was given up");
                self.wait_for_start(None, why).await
            }
        }
    }

    /// Waits for the next start: until this instant or, if the server is given up, until a start is requested.
    async fn wait_for_start(&mut self, until: Option<Instant>, why: String) -> Step {
        let state = if until.is_some() { ServerState::Down { why } } else { ServerState::GivenUp { why } };
        self.starter.shared.down(state, until);
        let waited = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Step::End,
            Some(request) = self.requests.recv() => {
                self.starter.shared.down(ServerState::Starting, None);
                Step::Start(Some(request))
            }
            () = waited => Step::Start(None),
        }
    }

    fn make_ready(&mut self, started: &Started, request: Option<StartRequest>) {
        apply(&self.starter, &self.roster, started.definitions.clone());
        self.starter.shared.ready(started.connection.clone());
        self.reply(request, Ok(()));
    }

    /// Watches a ready server until it ends or is ended.
    async fn watch(&mut self, started: Started) -> Step {
        let Started { process, mut service, connection, handler, disconnect, .. } = started;
        let step = tokio::select! {
            biased;
            () = self.stop.cancelled() => Step::End,
            () = connection.closed() => Step::Died(String::new()),
            Some(request) = self.requests.recv() => Step::Start(Some(request)),
            never = follow(&self.starter, &self.roster, &connection, handler) => match never {},
        };
        let (state, why) = match &step {
            Step::Start(_) => (ServerState::Starting, "it is being restarted"),
            _ => {
                let why = disconnect.why().unwrap_or("it ended");
                (ServerState::Down { why: why.to_owned() }, why)
            }
        };
        self.starter.shared.down(state, None);
        // Closes its input, which asks it to end.
        let _ = service.close_with_timeout(EXIT_GRACE).await;
        drop(service);
        let why = with_end(why.to_owned(), process, EXIT_GRACE).await;
        match step {
            Step::Died(_) => Step::Died(why),
            step => step,
        }
    }
}
