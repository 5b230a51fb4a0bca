//! `toolyard mcp`: serves the tools to an MCP client over standard input and output, or to many over HTTP.

mod left;

use crate::{
    cli::{ApproveOrAsk, McpArgs},
    error::Error,
    event_file::EventFile,
    exit::Exit,
    export::Export,
    journal_file::JournalFile,
    run::interrupt::Interrupts,
    secrecy::TOKEN,
    setup::{INTERRUPT_GRACE, Setup},
};
use std::{env, ffi::OsString, net::SocketAddr, pin::pin, time::Duration};
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

/// The session of the client on standard input and output in a journal, unless it has another name: a journal has one
/// program at a time, and so one such client.
const SESSION: &str = "mcp";

/// Serves the client on standard input and output, or all clients that connect over HTTP.
pub(crate) async fn mcp(args: McpArgs, export: &Export) -> Result<Exit, Error> {
    let http = args.http.map(Http::at).transpose()?;
    let mut setup = Setup::load_served(&args.setup)?;
    if setup.serves_nothing() {
        let what = "there is nothing to serve: name servers in [mcp], or built-in tools in [builtin] enable";
        return Err(Error::Usage(what.to_owned()));
    }
    setup.has_clients = true;
    let mut interrupts = Interrupts::listen();
    let events = setup.events(&args.events)?;
    // Before servers are started, which share its lock (JR-4).
    let journal = tokio::select! {
        journal = JournalFile::open(&args.journal, &setup) => journal?,
        _ = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let connected = tokio::select! {
        connected = setup.connect() => connected,
        _ = interrupts.next() => return Ok(Exit::Interrupted),
    };
    connected?;
    let clients = Clients::default();
    let builder = with_approver(export.count(setup.engine()), &args, events.clone(), &clients);
    let builder = journal.attach(builder);
    let engine = builder.build().await?;
    export.observe(&engine);
    setup.attach(&engine);
    let mut options = SessionOptions::default().priority(setup.config.priority);
    if args.approve == ApproveOrAsk::Auto {
        options = options.confirmations(without_prompts(&setup, &engine));
    }
    let options = options.without_resume();
    let mut gateway = Gateway::new(engine.clone(), clients).session_options(options.clone());
    gateway = gateway.client_limits(setup.config.clients);
    let served = match in_journal(&args, &engine, &setup, &options, gateway).await {
        Ok(gateway) => serve(&gateway, &engine, http, &mut interrupts).await,
        Err(error) => Err(error),
    };
    setup.disconnect(interrupts.last().is_some()).await;
    let closed = journal.close().await;
    if let Some(events) = events {
        events.finish()?;
    }
    closed.and(served)
}

/// With a journal, the sessions of clients have names that hold across lives of the engine, or are of one life alone; what
/// earlier clients have left open ends.
async fn in_journal(
    args: &McpArgs,
    engine: &Engine,
    setup: &Setup,
    options: &SessionOptions,
    gateway: Gateway,
) -> Result<Gateway, Error> {
    let Some(journal) = &args.journal.journal else { return Ok(gateway) };
    let own = match args.http {
        Some(_) => None,
        None => {
            let opened = engine.open(args.session.as_deref().unwrap_or(SESSION), options.clone());
            Some(opened.map_err(|error| Error::Usage(format!("--session: {error}")))?)
        }
    };
    left::end(engine, setup, journal, own.as_ref(), options).await?;
    Ok(match own {
        Some(session) => gateway.in_session(session),
        None => gateway.unique_sessions(),
    })
}

fn with_approver(
    builder: EngineBuilder,
    args: &McpArgs,
    events: Option<EventFile>,
    clients: &Clients,
) -> EngineBuilder {
    let builder = builder.events(clients.clone()).resource(clients.clone());
    let builder = match args.approve {
        ApproveOrAsk::Auto => builder.approver(Answer::allow("--approve")),
        ApproveOrAsk::Ask => builder.approver(clients.clone()),
        ApproveOrAsk::Deny => builder.approver(Answer::deny("--approve")),
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

/// Serves until the client disconnects or a signal arrives. Running calls then have a grace period and are still
/// answered; a second signal abandons them (SC-8).
async fn serve(
    gateway: &Gateway,
    engine: &Engine,
    http: Option<Http>,
    interrupts: &mut Interrupts,
) -> Result<Exit, Error> {
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

/// Where clients are served over HTTP, and which of them.
struct Http {
    address: SocketAddr,
    options: HttpOptions,
}

impl Http {
    /// Reads the token, and checks that it guards the address.
    fn at(address: SocketAddr) -> Result<Self, Error> {
        let options = match env::var_os(TOKEN).map(OsString::into_string) {
            None => HttpOptions::default(),
            Some(Ok(token)) if token.trim().is_empty() => {
                return Err(Error::Usage(format!(
                    "{TOKEN} is empty: set it to the bearer token, or unset it"
                )));
            }
            Some(Ok(token)) => HttpOptions::default().token(&token),
            Some(Err(_)) => return Err(Error::Usage(format!("{TOKEN} is not valid UTF-8"))),
        };
        options.check(address).map_err(|error| Self::failed(address, &error))?;
        Ok(Self { address, options })
    }

    fn failed(address: SocketAddr, error: &dyn std::error::Error) -> Error {
        Error::Usage(format!("--http {address}: {error}"))
    }
}

/// Serves the one client on standard input and output, or all clients of an address.
async fn clients(gateway: &Gateway, http: Option<Http>, stop: CancellationToken) -> Result<(), Error> {
    let Some(Http { address, options }) = http else {
        let served = gateway.serve(stdin(), stdout(), stop).await;
        return served.map_err(|error| Error::Client(error.to_string()));
    };
    let listener = TcpListener::bind(address).await.map_err(|error| Http::failed(address, &error))?;
    if let Ok(address) = listener.local_addr() {
        anstream::eprintln!("toolyard: serving http://{address}/mcp");
    }
    gateway.serve_http(listener, options, stop).await.map_err(|error| Http::failed(address, &error))
}
