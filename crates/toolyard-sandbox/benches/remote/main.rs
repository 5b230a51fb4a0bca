//! What a call of a service costs, as a multiple of the least that it could: a bare client with the same options (one
//! connection a request, no redirects, no proxy, nothing sent twice) that sends the same document to the same server.
//! All are measured in turns, forth and back, and the mean of the faster half of each counts.
//!
//! `cargo bench -p toolyard-sandbox --bench remote`

mod server;

use reqwest::{
    Client,
    header::{CONNECTION, CONTENT_TYPE},
};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use tokio::{runtime::Builder, time::Instant};
use toolyard::{Call, Engine, Session, ToolSpec};
use toolyard_core::{ContextParts, OutputKind, Program, Service, ToolContext};
use toolyard_egress::{Egress, RemoteService};
use toolyard_program::Given;
use toolyard_sandbox::{PortableTool, RemoteSandbox, Sandboxes};

/// How often each is called. As a test it is only shown to work.
const ROUNDS: usize = if cfg!(debug_assertions) { 2 } else { 1500 };

/// The names under which this machine is called: one to be dialled as it is, and one to be looked up.
const HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];

/// How many times a bare client a call may take.
const GOAL: f64 = 1.2;

/// The tool that is called.
const TOOL: &str = "count";

type Failed = Box<dyn std::error::Error>;

/// One service, and three ways to call it.
struct Ways {
    url: String,
    arguments: Value,
    client: Client,
    service: RemoteService,
    session: Session,
    // The session is of this one.
    _engine: Engine,
}

impl Ways {
    async fn new(url: String) -> Result<Self, Failed> {
        let client = Client::builder()
            .pool_max_idle_per_host(0)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .build()?;
        let (mut service, egress) = (Service::new(url.clone()), Egress::new());
        (service.output, service.allow_private) = (OutputKind::Json, true);
        let tool = PortableTool::new(ToolSpec::pure(TOOL), Program::Http(service.clone()));
        let remote = RemoteSandbox::new(egress.clone());
        let sandboxes = move |host| Sandboxes::new(host).remote(remote).into_backend();
        let engine = Engine::builder().tool(tool).backend_around(sandboxes).build().await?;
        Ok(Self {
            arguments: json!({"text": "so much depends upon a red wheel barrow"}),
            client,
            service: RemoteService::new(&service, &egress)?,
            session: engine.session("bench"),
            _engine: engine,
            url,
        })
    }

    /// A request by the bare client.
    async fn bare(&self) -> Result<Value, Failed> {
        let document =
            json!({"tool": TOOL, "call_id": "a", "attempt": 1, "arguments": self.arguments}).to_string();
        let request = self.client.post(&self.url).header(CONNECTION, "close");
        let response = request.header(CONTENT_TYPE, "application/json").body(document).send().await?;
        Ok(serde_json::from_slice(&response.error_for_status()?.bytes().await?)?)
    }

    /// A call of the service alone.
    async fn alone(&self) -> Result<Value, Failed> {
        let cx = ToolContext::new(ContextParts::detached(TOOL));
        let given = Given::new(&self.arguments, &cx, Instant::now());
        let answered = self.service.call(&given, None).await?;
        let output = answered.result(OutputKind::Json, SystemTime::now());
        let output = output.map_err(|error| error.to_string())?;
        output.structured().map(std::borrow::Cow::into_owned).ok_or_else(|| "it has no document".into())
    }

    /// A call by an engine.
    async fn engine(&self) -> Result<Value, Failed> {
        let outcome = self.session.call(Call::new("a", TOOL, self.arguments.clone())).await;
        let output = outcome.status.as_ref().map_err(|error| format!("{error:?}"))?;
        output.structured().map(std::borrow::Cow::into_owned).ok_or_else(|| "it has no document".into())
    }

    /// One call by this way.
    async fn call(&self, way: usize) -> Result<Duration, Failed> {
        let began = Instant::now();
        let answer = match way {
            0 => self.bare().await?,
            1 => self.alone().await?,
            _ => self.engine().await?,
        };
        let took = began.elapsed();
        if answer == json!({"words": server::WORDS}) {
            Ok(took)
        } else {
            Err(format!("it answered {answer}").into())
        }
    }
}

/// The mean of the faster half of some times, in microseconds.
fn typical(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.truncate(times.len().div_ceil(2));
    times.iter().map(Duration::as_secs_f64).sum::<f64>() / times.len() as f64 * 1e6
}

async fn measure(host: &str, port: u16) -> Result<(), Failed> {
    let ways = Ways::new(format!("http://{host}:{port}/count")).await?;
    let mut times = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        for turn in 0..times.len() {
            // Each has each other before it equally often: what one leaves to be done may fall into the next one's time.
            let way = if round % 2 == 0 { turn } else { times.len() - 1 - turn };
            times[way].push(ways.call(way).await?);
        }
    }
    let [bare, alone, engine] = times.map(typical);
    println!("remote, {host}: a bare client: {bare:.0} µs, 1.00 times a bare client");
    for (name, time) in [("the service alone", alone), ("a call by an engine", engine)] {
        let ratio = time / bare;
        let judged = if ratio <= GOAL { "met" } else { "missed" };
        println!(
            "remote, {host}: {name}: {time:.0} µs, {ratio:.2} times a bare client (goal {GOAL}: {judged})"
        );
    }
    Ok(())
}

fn main() -> Result<(), Failed> {
    let port = server::start()?;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        for host in HOSTS {
            measure(host, port).await?;
        }
        Ok(())
    })
}
