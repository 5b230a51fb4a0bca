//! `toolyard mcp`: serves the tools to an MCP client over standard input and output, or to many over HTTP.

use crate::{
    cli::{ApproveOrAsk, McpArgs},
    exit::Exit,
    export::Export,
    fault::Fault,
    identity::Identity,
    run::{
        event_file::{EventFile, ProtectedFile},
        interrupt::Interrupts,
    },
    secrecy::TOKEN,
    setup::{INTERRUPT_GRACE, Setup},
};
use std::{env, error::Error, net::SocketAddr, pin::pin, time::Duration};
use tokio::{
    io::{stdin, stdout},
    net::TcpListener,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use toolyard::{Answer, ConfirmationMode, Confirmations, Drain, Engine, EngineBuilder, SessionOptions};
use toolyard_mcp::{Clients, Gateway, HttpOptions};

/// How long an interrupted program waits for clients to read the last answers.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves the client on standard input and output, or all clients that connect over HTTP.
pub(crate) async fn mcp(args: McpArgs, export: &Export) -> Result<Exit, Fault> {
    let mut setup = Setup::load(&args.setup)?;
    setup.has_clients = true;
    let mut interrupts = Interrupts::listen();
    let events = events(&args, &setup)?;
    let connected = tokio::select! {
        connected = setup.connect() => connected,
        _ = interrupts.next() => return Ok(Exit::Interrupted),
    };
    connected?;
    let clients = Clients::default();
    let builder = with_approver(export.count(setup.engine()), &args, events.clone(), &clients);
    let engine = builder.build().await?;
    export.observe(&engine);
    setup.attach(&engine);
    let mut options = SessionOptions::default().priority(setup.config.priority);
    if args.approve == ApproveOrAsk::Auto {
        options = options.confirmations(without_prompts(&setup, &engine));
    }
    let gateway = Gateway::new(engine.clone(), clients).session_options(options);
    let served = serve(&gateway, &engine, args.http, &mut interrupts).await;
    setup.disconnect(interrupts.last().is_some()).await;
    if let Some(events) = events {
        events.finish()?;
    }
    served
}

fn with_approver(
    builder: EngineBuilder,
    args: &McpArgs,
    events: Option<EventFile>,
    clients: &Clients,
) -> EngineBuilder {
    let builder = builder.events(clients.clone()).resource(clients.clone());
    let builder = match args.approve {
        ApproveOrAsk::Auto => builder.approver(Answer::Allow),
        ApproveOrAsk::Ask => builder.approver(clients.clone()),
        ApproveOrAsk::Deny => builder.approver(Answer::Deny),
    };
    match events {
        Some(events) => builder.event_writer(events),
        None => builder,
    }
}

/// The configured confirmations, with `auto` in place of every mode that asks. An approver that always allows is not
/// equivalent: its answers arrive one by one, so calls could overtake one another. It is installed nevertheless, for
/// tools that a server adds later.
fn without_prompts(setup: &Setup, engine: &Engine) -> Confirmations {
    let mut confirmations = setup.config.confirmations.clone();
    for entry in engine.registry().list() {
        if setup.confirmation(entry.spec()).asks() {
            confirmations = confirmations.tool(entry.name(), ConfirmationMode::Auto);
        }
    }
    confirmations
}

/// Creates the event file, if one is requested.
fn events(args: &McpArgs, setup: &Setup) -> Result<Option<EventFile>, Fault> {
    let config = setup.config.file.as_deref().and_then(Identity::of_path);
    let protected: Vec<ProtectedFile> =
        config.into_iter().map(|identity| ProtectedFile { what: "the configuration", identity }).collect();
    args.events.as_deref().map(|path| EventFile::create(path, &protected)).transpose()
}

/// Serves until the client disconnects or a signal arrives. Running calls then have a grace period and are still
/// answered; a second signal abandons them (SC-8).
async fn serve(
    gateway: &Gateway,
    engine: &Engine,
    http: Option<SocketAddr>,
    interrupts: &mut Interrupts,
) -> Result<Exit, Fault> {
    let stop = CancellationToken::new();
    let mut serving = pin!(clients(gateway, http, stop.clone()));
    let ended = tokio::select! {
        biased;
        ended = &mut serving => Some(ended),
        _ = interrupts.next() => None,
    };
    let is_interrupted = ended.is_none();
    let close = async {
        engine.shutdown(Drain::default().finish(Duration::ZERO).grace(INTERRUPT_GRACE)).await;
        if is_interrupted {
            stop.cancel();
            // Do not wait for a client that does not read its answers.
            let _ = timeout(ANSWER_TIMEOUT, serving).await;
        }
    };
    tokio::select! {
        biased;
        () = close => {}
        _ = interrupts.next() => {
            let _ = timeout(ANSWER_TIMEOUT, engine.events_written()).await;
        }
    }
    ended.map_or(Ok(Exit::Interrupted), |ended| ended.map(|()| Exit::Ok))
}

/// Serves the one client on standard input and output, or all clients of an address.
async fn clients(gateway: &Gateway, http: Option<SocketAddr>, stop: CancellationToken) -> Result<(), Fault> {
    let Some(address) = http else {
        let served = gateway.serve(stdin(), stdout(), stop).await;
        return served.map_err(|error| Fault::Client(error.to_string()));
    };
    let options = match env::var(TOKEN).ok().filter(|token| !token.is_empty()) {
        Some(token) => HttpOptions::default().token(&token),
        None => HttpOptions::default(),
    };
    let failed = |error: &dyn Error| Fault::Usage(format!("--http {address}: {error}"));
    options.check(address).map_err(|error| failed(&error))?;
    let listener = TcpListener::bind(address).await.map_err(|error| failed(&error))?;
    if let Ok(address) = listener.local_addr() {
        anstream::eprintln!("toolyard: serving http://{address}/mcp");
    }
    gateway.serve_http(listener, options, stop).await.map_err(|error| failed(&error))
}
