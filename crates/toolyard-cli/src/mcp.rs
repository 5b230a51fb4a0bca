//! `toolyard mcp`: the tools, served to an MCP client over standard input and output.

use crate::{
    cli::{ApproveOrAsk, McpArgs},
    exit::Exit,
    export::Export,
    fault::Fault,
    identity::Identity,
    run::{
        event_file::{EventFile, Kept},
        interrupt::Interrupts,
    },
    setup::{INTERRUPT_GRACE, Setup},
};
use std::{pin::pin, time::Duration};
use tokio::{
    io::{stdin, stdout},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use toolyard::{Answer, ConfirmationMode, Confirmations, Drain, Engine, EngineBuilder, SessionOptions};
use toolyard_mcp::{Clients, Gateway, ServeError};

/// How long an interrupted program waits for its last answers to be read.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Serves the client at the other end of standard input and output.
pub(crate) async fn mcp(args: McpArgs, export: &Export) -> Result<Exit, Fault> {
    let setup = Setup::load(&args.setup)?;
    let mut interrupts = Interrupts::listen();
    let events = events(&args, &setup)?;
    let clients = Clients::default();
    let builder = prepared(export.count(setup.engine()), &args, events.clone(), &clients);
    let engine = builder.build().await?;
    export.observe(&engine);
    let mut options = SessionOptions::default().priority(setup.config.priority);
    if args.approve == ApproveOrAsk::Auto {
        options = options.confirmations(unasked(&setup, &engine));
    }
    let gateway = Gateway::new(engine.clone(), clients).session_options(options);
    let served = serve(&gateway, &engine, &mut interrupts).await;
    if let Some(events) = events {
        events.finish()?;
    }
    served.map_err(|error| Fault::Client(error.to_string()))
}

fn prepared(
    builder: EngineBuilder,
    args: &McpArgs,
    events: Option<EventFile>,
    clients: &Clients,
) -> EngineBuilder {
    let builder = builder.events(clients.clone());
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

/// What the configuration says of the tools, with a yes where it says to ask. An approver that says yes is not the same:
/// each of its answers comes when it comes, and calls would overtake one another. It is still there, for tools that a
/// server has only later.
fn unasked(setup: &Setup, engine: &Engine) -> Confirmations {
    let mut confirmations = setup.config.confirmations.clone();
    for entry in engine.registry().list() {
        if setup.confirmation(entry.spec()).asks() {
            confirmations = confirmations.tool(entry.name(), ConfirmationMode::Auto);
        }
    }
    confirmations
}

/// The file of events, where one is asked for.
fn events(args: &McpArgs, setup: &Setup) -> Result<Option<EventFile>, Fault> {
    let config = setup.config.file.as_deref().and_then(Identity::of_path);
    let kept: Vec<Kept> =
        config.into_iter().map(|identity| Kept { what: "the configuration", identity }).collect();
    args.events.as_deref().map(|path| EventFile::create(path, &kept)).transpose()
}

/// Serves until the client is gone or a signal comes. Then what runs has its grace and is still answered; after a second
/// signal it is given up (SC-8).
async fn serve(gateway: &Gateway, engine: &Engine, interrupts: &mut Interrupts) -> Result<Exit, ServeError> {
    let stop = CancellationToken::new();
    let mut serving = pin!(gateway.serve(stdin(), stdout(), stop.clone()));
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
            // A client that does not read its answers is not waited for.
            let _ = timeout(LAST_WORDS, serving).await;
        }
    };
    tokio::select! {
        biased;
        () = close => {}
        _ = interrupts.next() => {
            let _ = timeout(LAST_WORDS, engine.events_written()).await;
        }
    }
    ended.map_or(Ok(Exit::Interrupted), |ended| ended.map(|()| Exit::Ok))
}
