//! A server's whole life: started, watched, started again, ended.
//!
//! ```text
//!        ┌── wait ◄─ Restart ─┐
//!        ▼                    │
//!   start ─► ready ─► ended ──┴─ GiveUp ─► given up
//!              │ ▲
//!              └─┘ its list of tools changed
//! ```

use super::{
    connection::Connection,
    definition::{self, Definitions},
    handler::Handler,
    life::{Life, Next},
    listing,
    process::EXIT_GRACE,
    roster::Roster,
    shared::State,
    start::{Started, Starter, with_end},
};
use rmcp::{model::SubscriptionFilter, service::Subscription};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// How long a changed list is left alone, so that many changes are looked at once.
const SETTLE: Duration = Duration::from_millis(50);

/// Drives a server.
pub(super) struct Supervisor {
    pub(super) starter: Starter,
    pub(super) roster: Arc<Roster>,
    pub(super) stop: CancellationToken,
}

/// What became of the first start.
pub(super) type First = oneshot::Sender<Result<(), String>>;

impl Supervisor {
    /// Runs until the server is given up or stopped, and all its processes have ended.
    ///
    /// # Cancel safety
    /// Dropping the future kills the server's processes.
    pub(super) async fn run(self, first: First) {
        let why = self.live(first).await.unwrap_or_else(|| "it was stopped".to_owned());
        self.starter.shared.down(State::GivenUp { why }, None);
        // The tools hold what is shared, and it held them.
        self.starter.shared.define(Definitions::default());
        self.roster.detach();
    }

    /// What it was given up for; `None` when it was stopped.
    async fn live(&self, first: First) -> Option<String> {
        let mut first = Some(first);
        let mut life = Life::default();
        loop {
            let started = tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                started = self.starter.start() => started,
            };
            let (why, ready_for) = match started {
                Ok(started) => {
                    let ready_at = Instant::now();
                    self.make_ready(&started);
                    if let Some(first) = first.take() {
                        // Nobody waits any more: then it is for the next who asks.
                        let _ = first.send(Ok(()));
                    }
                    (self.watch(started).await?, Some(ready_at.elapsed()))
                }
                Err(why) => (why, None),
            };
            if let Some(first) = first.take() {
                let _ = first.send(Err(why.clone()));
                return Some(why);
            }
            self.rest(life.died(ready_for), why).await?;
        }
    }

    /// Waits before the next start. `Err`, as it were, is `None`: stopped, or given up.
    async fn rest(&self, next: Next, why: String) -> Option<()> {
        let server = self.starter.config.name();
        let Next::Restart(wait) = next else {
            tracing::error!(server, why, "an MCP server died too often and is given up");
            self.starter.shared.down(State::GivenUp { why }, None);
            self.stop.cancelled().await;
            return None;
        };
        tracing::warn!(server, why, ?wait, "an MCP server ended and is started again");
        self.starter.shared.down(State::Down { why }, Some(Instant::now() + wait));
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            () = sleep(wait) => Some(()),
        }
    }

    fn make_ready(&self, started: &Started) {
        self.take_over(started.definitions.clone());
        self.starter.shared.ready(started.connection.clone());
    }

    /// Makes these the tools, and tells of those that are not taken and were not so before.
    fn take_over(&self, mut definitions: Definitions) {
        let Starter { config, shared, .. } = &self.starter;
        self.roster.sync(&mut definitions);
        let known = shared.definitions().refused;
        for refused in definitions.refused.iter().filter(|refused| !known.contains(refused)) {
            let (server, tool, why) = (config.name(), &refused.tool, &refused.why);
            tracing::warn!(server, tool, why, "a tool of an MCP server is not taken");
        }
        shared.define(definitions);
    }

    /// Watches a server that is ready, until it ends; `None` when it was stopped.
    async fn watch(&self, started: Started) -> Option<String> {
        let Started { process, mut service, connection, handler, gone, .. } = started;
        let mut changes = Changes::of(&connection, handler).await;
        let stopped = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break true,
                () = ended(&connection) => break false,
                () = changes.next() => self.look_again(&connection).await,
            }
        };
        let state = State::Down { why: gone.why().unwrap_or("it ended").to_owned() };
        self.starter.shared.down(state, None);
        // Closes its input, which is how it is told to end.
        let _ = service.close_with_timeout(EXIT_GRACE).await;
        drop(service);
        let why = with_end(gone.why().unwrap_or("it ended").to_owned(), process, EXIT_GRACE).await;
        (!stopped).then_some(why)
    }

    /// Takes over the tools as they are listed now. A list that cannot be read changes nothing.
    async fn look_again(&self, connection: &Connection) {
        let Starter { config, pins, shared, .. } = &self.starter;
        let listed = async {
            sleep(SETTLE).await;
            listing::all(connection.peer()).await
        };
        match timeout(config.startup_timeout, listed).await {
            Ok(Ok(listed)) => {
                self.take_over(definition::define(listed, config, pins, shared));
            }
            Ok(Err(error)) => tracing::warn!(server = config.name(), %error, "the tools stay as they were"),
            Err(_) => {
                tracing::warn!(server = config.name(), "its list did not come: the tools stay as they were")
            }
        }
    }
}

/// Waits until a server is heard no more.
async fn ended(connection: &Connection) {
    connection.closed().await;
}

/// Hears of changed lists, in the way of either protocol.
struct Changes {
    handler: Handler,
    subscription: Option<Subscription>,
}

impl Changes {
    async fn of(connection: &Connection, handler: Handler) -> Self {
        let is_newer = connection.info().is_some_and(|info| !info.protocol_version.has_initialize());
        let subscription = match is_newer {
            true => {
                let filter = SubscriptionFilter::builder().tools_list_changed().build();
                let listening = timeout(Duration::from_secs(5), connection.peer().listen(filter)).await;
                listening.ok().and_then(Result::ok)
            }
            false => None,
        };
        Self { handler, subscription }
    }

    async fn next(&mut self) {
        let Some(subscription) = &mut self.subscription else { return self.handler.changed.notified().await };
        tokio::select! {
            () = self.handler.changed.notified() => {}
            note = subscription.next() => {
                if !matches!(note, Ok(Some(_))) {
                    self.subscription = None;
                }
            }
        }
    }
}
