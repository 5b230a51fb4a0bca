//! `toolyard serve`: an engine behind HTTP, for programs and people.
//!
//! ```text
//!   journal ────────────┐
//!   configuration ─► engine ◄─ Front ─► Server ─┬─► address      first signal: drain, answer, end
//!                      └─ event file            └─► stdio        second: end at once
//! ```

use crate::{
    check::unconfined,
    cli::ServeArgs,
    error::{Error, chain},
    exit::Exit,
    export::Export,
    hangup::Hangups,
    journal_file::JournalFile,
    reload::Reloading,
    run::interrupt::Interrupts,
    setup::{INTERRUPT_GRACE, Setup},
};
use parking_lot::Mutex;
use serde_json::json;
use std::{
    future::{pending, ready},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{stdin, stdout},
    net::TcpListener,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use toolyard::{Drain, Engine, SessionOptions};
use toolyard_server::{
    Front, Recovered, Scope, SecretHash, Server, ServerOptions, Tls, TlsError, Token, new_token,
};
use toolyard_tools::Workspace;

/// How long an interrupted program waits for its last answers to be read.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The address to serve at, if none is given.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// The name of the token that is made when none is configured.
const CALLER: &str = "caller";

/// The name of whoever calls without a token: what it opens is nobody else's.
const ANYBODY: &str = "anybody";

/// Serves until a signal arrives.
pub(crate) async fn serve(args: ServeArgs, export: &Export) -> Result<Exit, Error> {
    let mut setup = Setup::load(&args.setup)?;
    setup.has_clients = true;
    let tls = tls(&args, &setup)?;
    let mut interrupts = Interrupts::listen();
    let hangups = Hangups::listen();
    let events = setup.events(&args.events)?;
    let journal = tokio::select! {
        journal = JournalFile::open(&args.journal, &setup) => journal?,
        _ = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let listener = listener(&args).await?;
    let connected = tokio::select! {
        connected = setup.connect() => connected,
        _ = interrupts.next() => return Ok(Exit::Interrupted),
    };
    connected?;
    let front = Front::default();
    let mut builder =
        export.count(journal.attach(setup.engine())).approver(front.clone()).events(front.clone());
    builder = builder.resource(front.clients().clone());
    if let Some(events) = &events {
        builder = builder.event_writer(events.clone());
    }
    let engine = builder.build().await?;
    export.observe(&engine);
    setup.attach(&engine);
    let address = listener.as_ref().map(|(_, address)| *address);
    let (mut options, secret) = options(&args, &setup, address.is_some())?;
    if let Some(tls) = tls {
        options = options.tls(tls);
    }
    options = options.reload(reloading(&args, &setup, &engine));
    let server =
        Server::new(engine.clone(), front, options).map_err(|error| Error::Usage(error.to_string()))?;
    let recovered =
        server.recover().map_err(|error| Error::Usage(format!("--journal: {}", chain(&error))))?;
    if let Some(address) = address {
        tell(&args, &server, address, secret.as_deref());
        tell_recovered(recovered);
        warn(&unconfined(&setup, &engine));
        warn_of_clear_text(&args, address);
    }
    let reloading = tokio::spawn(reload_at_hangups(server.clone(), hangups));
    let serving = Serving { server: &server, listener, stdio: args.stdio };
    let served = until_interrupted(serving, &engine, &mut interrupts).await;
    reloading.abort();
    setup.disconnect(true).await;
    if let Some(events) = events {
        events.finish()?;
    }
    journal.close().await?;
    served
}

/// Says what goes on of an earlier life, and what does not.
fn tell_recovered(recovered: Recovered) {
    let left = |left: &str| anstream::eprintln!("toolyard: warning: left as it was: {left}");
    if recovered.sessions > 0 {
        let (sessions, turns) = (recovered.sessions, recovered.turns);
        let these = if sessions == 1 { "session of before is" } else { "sessions of before are" };
        anstream::eprintln!("toolyard: {sessions} {these} open again; turns that go on: {turns}");
    }
    recovered.left.iter().for_each(|it| left(it));
    tokio::spawn(async move { recovered.settled().await.iter().for_each(|it| left(it)) });
}

/// The address that is listened at, if any is.
async fn listener(args: &ServeArgs) -> Result<Option<(TcpListener, SocketAddr)>, Error> {
    let address = match (args.http, args.stdio) {
        (Some(address), _) => address,
        (None, true) => return Ok(None),
        (None, false) => ADDRESS,
    };
    let listener = TcpListener::bind(address).await.map_err(|error| failed(address, &error))?;
    let bound = listener.local_addr().map_err(|error| failed(address, &error))?;
    Ok(Some((listener, bound)))
}

fn failed(address: SocketAddr, error: &dyn std::error::Error) -> Error {
    Error::Usage(format!("--http {address}: {error}"))
}

/// The certificate and its key, which tools do not write.
fn tls(args: &ServeArgs, setup: &Setup) -> Result<Option<Tls>, Error> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    let tls = Tls::from_files(certificate, key).map_err(|error| {
        let option =
            if matches!(&error, TlsError::File { file, .. } if file == key) { "key" } else { "cert" };
        Error::Usage(format!("--tls-{option}: {error}"))
    })?;
    [certificate, key].into_iter().for_each(|file| setup.guard(file));
    Ok(Some(tls))
}

/// The configured tokens; without any, the page and a token for calls, whose secret is returned (HT-6), if there is an
/// address at which they are good for anything.
fn options(
    args: &ServeArgs,
    setup: &Setup,
    has_address: bool,
) -> Result<(ServerOptions, Option<String>), Error> {
    let server = &setup.config.server;
    let session = SessionOptions::default().priority(setup.config.priority);
    let mut options = ServerOptions::default()
        .bounds(server.bounds)
        .session(session)
        .client_limits(setup.config.clients)
        .confirmations(setup.config.confirmations.clone());
    if let Some(told) = &server.notify {
        options = options.notify(told.notify.clone());
    }
    options = server.hosts.iter().fold(options, ServerOptions::host);
    options = server.origins.iter().fold(options, ServerOptions::origin);
    for (name, root) in &server.workspaces {
        let workspace = Workspace::open(root).map_err(|error| Error::Workspace(chain(&error)))?;
        setup.guarded().iter().for_each(|file| workspace.guard(file));
        let workspace = Arc::new(workspace);
        options = options.workspace(name, move |session| session.workspace(workspace.clone()));
    }
    options = server.tokens.iter().cloned().fold(options, ServerOptions::token);
    if args.open_call {
        let nobody = SecretHash::of(&new_token());
        return Ok((options.anybody(Token::new(ANYBODY, nobody, [Scope::Call])), None));
    }
    if !server.tokens.is_empty() || !has_address {
        return Ok((options, None));
    }
    let secret = new_token();
    let token = Token::new(CALLER, SecretHash::of(&secret), [Scope::Call]);
    Ok((options.page().token(token), Some(secret)))
}

/// What reads the configuration again.
fn reloading(args: &ServeArgs, setup: &Setup, engine: &Engine) -> Reloading {
    Reloading {
        named: args.setup.config.clone(),
        root: setup.scope_root().map(Path::to_owned),
        in_force: Mutex::new(setup.config.written.clone()),
        started: setup.config.clone(),
        engine: engine.clone(),
        open_call: args.open_call,
    }
}

/// Reads the configuration again at each hang-up, and says what came of it.
async fn reload_at_hangups(server: Server, mut hangups: Hangups) {
    loop {
        hangups.next().await;
        match server.reload().await {
            Ok(reloaded) => {
                let named = |names: &[String]| match names {
                    [] => "nothing".to_owned(),
                    names => names.join(", "),
                };
                let (changed, left) = (named(&reloaded.changed), named(&reloaded.needs_restart));
                anstream::eprintln!(
                    "toolyard: the configuration was read again: changed {changed}; needs a restart: {left}"
                );
            }
            Err(error) => {
                error.to_string().lines().for_each(|line| anstream::eprintln!("toolyard: {line}"));
                anstream::eprintln!("toolyard: the configuration was not read again: nothing was changed");
            }
        }
    }
}

/// Says where it is served, and with which secrets, once.
fn tell(args: &ServeArgs, server: &Server, address: SocketAddr, secret: Option<&str>) {
    let link = server.link(address);
    if args.json {
        anstream::println!("{}", json!({"address": server.url(address), "link": link, "token": secret}));
    } else {
        anstream::eprintln!("toolyard: serving {}", server.url(address));
        if let Some(link) = link {
            anstream::eprintln!(
                "  page   {link}\n         good for one browser, as long as this program runs"
            );
        }
        if let Some(secret) = secret {
            anstream::eprintln!("  calls  Authorization: Bearer {secret}");
        }
        if args.open_call {
            anstream::eprintln!(
                "  calls  need no token; where no token may approve, calls that need approval are refused"
            );
        }
    }
}

/// Says which tools no approval bounds (HT-6).
fn warn(unconfined: &[String]) {
    if !unconfined.is_empty() {
        let names = unconfined.join(", ");
        anstream::eprintln!(
            "toolyard: warning: {names} may run programs outside of a sandbox: whoever is allowed to call them can do what \
             this program can, whatever is approved"
        );
    }
}

/// Says that others may read along.
fn warn_of_clear_text(args: &ServeArgs, address: SocketAddr) {
    if args.tls_cert.is_none() && !address.ip().is_loopback() {
        anstream::eprintln!(
            "toolyard: warning: {address} is reached by others, and what is sent there is not encrypted, tokens and keys \
             included: give --tls-cert and --tls-key, or put a proxy with TLS in front"
        );
    }
}

/// What is served, and where.
struct Serving<'a> {
    server: &'a Server,
    listener: Option<(TcpListener, SocketAddr)>,
    /// Whether the program that has started this one is spoken with.
    stdio: bool,
}

/// Serves until a signal arrives, or the other program has closed its end. Running calls then have a grace period and are
/// still answered, over HTTP too; a second signal ends the program at once (SC-8).
async fn until_interrupted(
    serving: Serving<'_>,
    engine: &Engine,
    interrupts: &mut Interrupts,
) -> Result<Exit, Error> {
    let Serving { server, listener, stdio } = serving;
    let (stop, tell, has_listener) = (CancellationToken::new(), CancellationToken::new(), listener.is_some());
    let listening = async {
        match listener {
            None => pending().await,
            Some((listener, address)) => {
                let served = server.serve(listener, stop.clone()).await;
                served.map_err(|error| failed(address, &error))
            }
        }
    };
    let talking = async {
        match stdio {
            false => pending().await,
            true => server.talk(stdin(), stdout(), tell.clone()).await,
        }
    };
    let (mut listening, mut talking) = (pin!(listening), pin!(talking));
    let (mut talked, mut is_interrupted) = (None, false);
    tokio::select! {
        biased;
        served = &mut listening => return served.map(|()| Exit::Interrupted),
        over = &mut talking => talked = Some(over),
        _ = interrupts.next() => is_interrupted = true,
    }
    server.drain();
    tell.cancel();
    // It hears that the program ends before it hears what its calls have come to.
    tokio::select! {
        biased;
        over = &mut talking, if talked.is_none() => talked = Some(over),
        () = ready(()) => {}
    }
    let mut shutting_down = pin!(shut_down(engine, interrupts));
    loop {
        tokio::select! {
            biased;
            () = &mut shutting_down => break,
            served = &mut listening => return served.map(|()| Exit::Interrupted),
            over = &mut talking, if talked.is_none() => talked = Some(over),
        }
    }
    stop.cancel();
    // Whoever waits for an answer has it now, and a moment to read it.
    let answered = async {
        if has_listener {
            let _ = listening.await;
        }
    };
    let said = async {
        if stdio && talked.is_none() {
            talked = Some(talking.await);
        }
    };
    let _ = timeout(ANSWER_TIMEOUT, async { tokio::join!(answered, said) }).await;
    match talked {
        Some(Err(error)) => Err(Error::Usage(format!("--stdio: {error}"))),
        _ if is_interrupted || !stdio => Ok(Exit::Interrupted),
        _ => Ok(Exit::Ok),
    }
}

/// Gives running calls their time, unless there is another signal.
async fn shut_down(engine: &Engine, interrupts: &mut Interrupts) {
    let drain = Drain::default().finish(Duration::ZERO).grace(INTERRUPT_GRACE);
    tokio::select! {
        biased;
        _ = engine.shutdown(drain) => {}
        _ = interrupts.next() => {
            let _ = timeout(ANSWER_TIMEOUT, engine.events_written()).await;
        }
    }
}
