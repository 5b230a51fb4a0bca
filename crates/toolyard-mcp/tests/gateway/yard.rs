//! An engine with test tools, and a gateway in front of it.

use super::client::{Client, PIPE};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{io::split, task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;
use toolyard::{
    ConfirmationMode, Confirmations, Engine, Event, SideEffects, ToolContext, ToolError, ToolSpec, tool_fn,
};
use toolyard_mcp::{Clients, Gateway, ServeError};

/// An engine behind a gateway.
pub(crate) struct Yard {
    pub(crate) engine: Engine,
    pub(crate) gateway: Gateway,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
    /// What the tools did, in order.
    pub(crate) done: Arc<Mutex<Vec<String>>>,
}

/// The gateway's side of a connection.
pub(crate) type Serving = JoinHandle<Result<(), ServeError>>;

impl Yard {
    pub(crate) async fn open() -> Self {
        let (events, done) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let (sink, clients) = (events.clone(), Clients::default());
        let log = |what: &str| {
            let (done, what) = (done.clone(), what.to_owned());
            move |args: &Value| done.lock().unwrap().push(format!("{what} {args}"))
        };
        let (wrote, paid, slept) = (log("write"), log("pay"), log("slow"));
        let write = tool_fn(ToolSpec::write("write"), move |args: Value, _: ToolContext| {
            wrote(&args);
            async move { Ok(args) }
        });
        let pay = tool_fn(ToolSpec::write("pay"), move |args: Value, _: ToolContext| {
            paid(&args);
            async move {
                sleep(Duration::from_secs(1)).await;
                Ok("paid")
            }
        });
        let slow = tool_fn(ToolSpec::read("slow"), move |args: Value, context: ToolContext| {
            slept(&args);
            async move {
                for n in 0..args["lines"].as_u64().unwrap_or(0) {
                    context.emit(&format!("line {n}\n"));
                    sleep(Duration::from_millis(10)).await;
                }
                tokio::select! {
                    () = context.cancelled() => Err(ToolError::execution("told to stop")),
                    () = sleep(Duration::from_secs(args["secs"].as_u64().unwrap_or(0))) => Ok("slept"),
                }
            }
        });
        let ask = tool_fn(ToolSpec::execute("ask"), |args: Value, _: ToolContext| async move { Ok(args) });
        let engine = Engine::builder()
            .tool(write)
            .tool(pay)
            .tool(slow)
            .tool(ask)
            .confirmations(Confirmations::default().side_effects(SideEffects::Write, ConfirmationMode::Auto))
            .approver(clients.clone())
            .events(clients.clone())
            .events(move |event: &Event| sink.lock().unwrap().push(event.clone()))
            .build()
            .await
            .unwrap();
        Self { gateway: Gateway::new(engine.clone(), clients), engine, events, done }
    }

    /// A client with these capabilities, and its connection.
    pub(crate) async fn connect(&self, capabilities: Value) -> (Client, Serving) {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let gateway = self.gateway.clone();
        let serving = tokio::spawn(async move {
            let (read, write) = split(ours);
            gateway.serve(read, write, CancellationToken::new()).await
        });
        (Client::connect(theirs, capabilities).await, serving)
    }

    /// A client that cannot ask its user.
    pub(crate) async fn client(&self) -> Client {
        self.connect(json!({})).await.0
    }

    /// How many events of this name there were.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.events.lock().unwrap().iter().filter(|event| event.kind.name() == name).count()
    }

    /// Waits until there is an event of this name.
    pub(crate) async fn until(&self, name: &str) {
        while self.count(name) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}
