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
    changes::{follow, take_over},
    definition::Definitions,
    life::{Life, Next},
    process::EXIT_GRACE,
    roster::Roster,
    shared::State,
    start::{Started, Starter, with_end},
};
use std::sync::Arc;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// Drives a server.
pub(super) struct Supervisor {
    pub(super) starter: Starter,
    pub(super) roster: Arc<Roster>,
    pub(super) orders: mpsc::Receiver<Order>,
    pub(super) stop: CancellationToken,
}

/// A request to start a server: where its result is sent.
pub(super) type Order = oneshot::Sender<Result<(), String>>;

/// What comes next in a server's life.
enum Then {
    /// Nothing: it was stopped.
    End,
    /// It is started, because that was requested or because its wait is over.
    Start(Option<Order>),
    /// It died, for this reason.
    Died(String),
}

impl Supervisor {
    /// Runs until the server is stopped and all its processes have ended.
    ///
    /// # Cancel safety
    /// Dropping the future kills the server's processes.
    pub(super) async fn run(mut self, first: Order) {
        self.live(first).await;
        self.starter.shared.down(State::GivenUp { why: "it was stopped".to_owned() }, None);
        // Breaks the cycle: the tools hold the shared state, which held the tools.
        self.starter.shared.define(Definitions::default());
        self.roster.detach();
    }

    async fn live(&mut self, first: Order) {
        let (mut order, mut life) = (Some(first), Life::default());
        loop {
            let started = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                started = self.starter.start() => started,
            };
            let then = match started {
                Ok(started) => {
                    let ready_at = Instant::now();
                    self.make_ready(&started, order.take());
                    match self.watch(started).await {
                        Then::Died(why) => self.fall(life.died(Some(ready_at.elapsed())), why).await,
                        then => then,
                    }
                }
                // The requester gets the error, and may ask again.
                Err(why) if order.is_some() => {
                    self.answer(order.take(), Err(why.clone()));
                    self.rest(None, why).await
                }
                Err(why) => self.fall(life.died(None), why).await,
            };
            match then {
                Then::Start(None) => {}
                Then::Start(asked) => (order, life) = (asked, Life::default()),
                Then::End | Then::Died(_) => return,
            }
        }
    }

    /// Sends the result of a start to its requester, and to those who requested one meanwhile.
    fn answer(&mut self, order: Option<Order>, came: Result<(), String>) {
        let others = std::iter::from_fn(|| self.orders.try_recv().ok());
        for order in order.into_iter().chain(others) {
            // An error means that the requester does not wait any more.
            let _ = order.send(came.clone());
        }
    }

    /// Logs a death, and waits for what comes next.
    async fn fall(&mut self, next: Next, why: String) -> Then {
        let server = self.starter.config.name();
        match next {
            Next::Restart(wait) => {
                tracing::warn!(server, why, ?wait, "an MCP server ended and will be restarted");
                self.rest(Some(Instant::now() + wait), why).await
            }
            Next::GiveUp => {
                tracing::error!(server, why, "an MCP server died too often and was given up");
                self.rest(None, why).await
            }
        }
    }

    /// Waits for the next start: until this instant or, if the server is given up, until a start is requested.
    async fn rest(&mut self, until: Option<Instant>, why: String) -> Then {
        let state = if until.is_some() { State::Down { why } } else { State::GivenUp { why } };
        self.starter.shared.down(state, until);
        let waited = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Then::End,
            Some(order) = self.orders.recv() => {
                self.starter.shared.down(State::Starting, None);
                Then::Start(Some(order))
            }
            () = waited => Then::Start(None),
        }
    }

    fn make_ready(&mut self, started: &Started, order: Option<Order>) {
        take_over(&self.starter, &self.roster, started.definitions.clone());
        self.starter.shared.ready(started.connection.clone());
        self.answer(order, Ok(()));
    }

    /// Watches a ready server until it ends or is ended.
    async fn watch(&mut self, started: Started) -> Then {
        let Started { process, mut service, connection, handler, gone, .. } = started;
        let then = tokio::select! {
            biased;
            () = self.stop.cancelled() => Then::End,
            () = connection.closed() => Then::Died(String::new()),
            Some(order) = self.orders.recv() => Then::Start(Some(order)),
            never = follow(&self.starter, &self.roster, &connection, handler) => match never {},
        };
        let (state, why) = match &then {
            Then::Start(_) => (State::Starting, "it is being restarted"),
            _ => {
                let why = gone.why().unwrap_or("it ended");
                (State::Down { why: why.to_owned() }, why)
            }
        };
        self.starter.shared.down(state, None);
        // Closes its input, which asks it to end.
        let _ = service.close_with_timeout(EXIT_GRACE).await;
        drop(service);
        let why = with_end(why.to_owned(), process, EXIT_GRACE).await;
        match then {
            Then::Died(_) => Then::Died(why),
            then => then,
        }
    }
}
