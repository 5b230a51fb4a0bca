//! `toolyard supervise`: agents as programs, whose calls are checked, run, audited and answered (AG-1 to AG-12).
//!
//! ```text
//!   [agents.NAME], or a command ─► profiles ─► Supervisor ─► agents ─► calls ─► engine ─┬─ event file
//!                                                   ▲ signals                            ├─ audit
//!                                                   └ report ◄─ how each ended           └─ questions, at the terminal
//! ```

mod durable;
mod live;
mod report;

use crate::{
    cli::{Approve, SetupArgs, SuperviseArgs, SuperviseReport},
    config::{AgentSettings, grant},
    error::Error,
    event_file::EventFile,
    exit::Exit,
    export::Export,
    journal_file::JournalFile,
    output_file,
    run::{ask::with_user, interrupt::Interrupts},
    screen::Screen,
    setup::Setup,
};
use live::Live;
use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use toolyard::{Capabilities, Confirmations, Engine, EngineBuilder, FsGrant, Session, SessionOptions};
use toolyard_agents::{
    AgentHandle, Audit, HostPaths, Means, Place, Profile, Recorded, Supervisor, SupervisorOptions, TERM_GRACE,
};

/// How long agents have to end after an interrupt: as long as what their calls have started, and a little longer, in which
/// they hear the ends of these calls.
const GRACE: Duration = TERM_GRACE.saturating_add(Duration::from_secs(2));

/// How many bytes the results of one agent may have that it has not read.
const RESULTS_BYTES_MAX: usize = 16 << 20;

/// The name of the agent whose program is given as arguments.
const AGENT: &str = "agent";

/// The name of the session without a journal.
const SESSION: &str = "supervise";

/// Runs agents until all have ended.
pub(crate) async fn supervise(args: SuperviseArgs, export: &Export) -> Result<Exit, Error> {
    #[cfg(unix)]
    let _ = toolyard_process::raise_open_files(); // else it stays as it is, and ends of files are told by name
    let setup_args = SetupArgs { config: args.file.clone(), workspace: args.workspace.clone() };
    let mut setup = Setup::load(&setup_args)?;
    let agents = agents(&args, &setup)?;
    let mut interrupts = Interrupts::listen();
    let events = setup.events(&args.events)?;
    let audit = args.audit.as_deref().map(|file| audit(file, &setup)).transpose()?;
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
    let kept = Kept { audit: audit.as_ref(), events: events.as_ref(), journal: &journal };
    let built = Arc::default();
    let recorded = durable::recorded(&args, &journal, &built)?;
    let supervisor = supervisor(&agents, &args, &setup, kept, recorded)?;
    if let Some(tool) = supervisor.tools().iter().find(|tool| setup.has_tool(&tool.spec().name)) {
        let name = tool.spec().name;
        return Err(Error::Usage(format!(
            "a tool of the configuration is called '{name}', as one of the agents' own tools"
        )));
    }
    let builder = export.count(setup.engine_with(supervisor.tools())).events(supervisor.sink());
    let mut live = Live::on_terminal();
    let screen = live.as_ref().map(Live::screen);
    let told = Told { audit: audit.as_ref(), events: events.as_ref(), screen };
    let engine = engine(journal.attach(builder), &args, &setup, &interrupts, told).await?;
    let _ = built.set(engine.clone()); // it is empty: there is one engine
    export.observe(&engine);
    setup.attach(&engine);
    let session = session(&engine, &args, &setup)?;
    durable::end_left(&engine, &session).await?;
    if let Some(live) = &mut live {
        live.show(&supervisor);
    }
    let (interrupted, failed) = run(&supervisor, &session, &agents, &mut interrupts).await;
    drop(session);
    let reports = supervisor.reports();
    engine.shutdown(toolyard::Drain::default()).await;
    setup.disconnect(interrupted).await;
    let closed = journal.close().await;
    let written = events.map_or(Ok(()), |events| events.finish());
    drop(live);
    match args.report {
        SuperviseReport::Text => anstream::eprint!("{}", report::text(&reports)),
        SuperviseReport::Json => anstream::println!("{}", report::json(&reports, &setup.config.redactor)),
        SuperviseReport::None => {}
    }
    if let Some(error) = failed {
        return Err(error);
    }
    closed?;
    written?;
    Ok(match interrupted {
        true => Exit::Interrupted,
        false if reports.iter().all(|report| report.end.is_ok()) => Exit::Ok,
        false => Exit::CallFailed,
    })
}

/// The agents of the configuration, or the one that the arguments name.
fn agents(args: &SuperviseArgs, setup: &Setup) -> Result<BTreeMap<String, AgentSettings>, Error> {
    let Some((program, arguments)) = args.command.split_first() else {
        let agents = setup.config.agents.clone();
        return match agents.values().any(|agent| agent.instances > 0) {
            true => Ok(agents),
            false => Err(Error::Usage(
                "there is no agent: name a file with [agents.NAME], or a program behind --".to_owned(),
            )),
        };
    };
    let here =
        std::env::current_dir().map_err(|error| Error::Usage(format!("the current directory: {error}")))?;
    let mut profile = Profile::new(program).args(arguments.iter().cloned()).tools(args.tools.iter().cloned());
    for text in &args.fs {
        let granted = grant(text, &here)
            .and_then(|(mode, path)| profile.fs(mode, path).map_err(|error| error.to_string()));
        profile = granted.map_err(|error| Error::Usage(format!("--fs: {error}")))?;
    }
    profile = profile.net(args.net.iter().cloned());
    for path in &args.read {
        if !path.exists() {
            return Err(Error::Usage(format!("--read: there is no '{}'", path.display())));
        }
        profile = profile.read(here.join(path));
    }
    if args.unconfined {
        profile = profile.place(Place::Host);
    }
    let input = args.input.as_deref().map(serde_json::from_str).transpose();
    let input = input.map_err(|error| Error::Usage(format!("--input is no JSON: {error}")))?;
    let agent = AgentSettings { profile, instances: 1, input, secrets: Vec::new() };
    // The configuration's agents may be started by this one only if it says so, which arguments cannot.
    Ok(BTreeMap::from([(AGENT.to_owned(), agent)]))
}

/// Opens the audit, which no tool writes.
fn audit(file: &Path, setup: &Setup) -> Result<Audit, Error> {
    setup.guard(file);
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    crate::event_file::lock::private(&mut options);
    let opened = options.open(file).map_err(|error| output_file::failed(file, error))?;
    Ok(Audit::new(opened, Some(setup.config.redactor.clone())))
}

/// The files in which it is kept what agents do.
struct Kept<'a> {
    audit: Option<&'a Audit>,
    events: Option<&'a EventFile>,
    journal: &'a JournalFile,
}

fn supervisor(
    agents: &BTreeMap<String, AgentSettings>,
    args: &SuperviseArgs,
    setup: &Setup,
    kept: Kept<'_>,
    recorded: Option<Arc<dyn Recorded>>,
) -> Result<Supervisor, Error> {
    let Kept { audit, events, journal } = kept;
    let profiles = agents.iter().map(|(name, agent)| (name.clone(), agent.profile.clone())).collect();
    let mut options = SupervisorOptions::new(profiles, means(setup));
    options.audit = audit.cloned();
    options.recorded = recorded;
    options.directory = root(setup);
    options.guarded = setup.guarded();
    options.guarded.extend(args.audit.clone());
    options.guarded.extend(journal.files());
    options.guarded.extend(setup.config.file.clone());
    options.guarded.extend(events.map(|events| events.path().to_owned()));
    for path in &mut options.guarded {
        *path = std::path::absolute(&path)
            .map_err(|error| Error::Usage(format!("'{}': {error}", path.display())))?;
    }
    Ok(Supervisor::new(options))
}

/// By what agents are started.
fn means(setup: &Setup) -> Means {
    let means = Means::default();
    #[cfg(target_os = "linux")]
    let means = {
        let helper = toolyard_process::Helper::this_program().ok();
        let means = helper.into_iter().fold(means, Means::helper);
        let process = &setup.config.process;
        let means = process.cgroup.clone().into_iter().fold(means, Means::cgroup);
        means.system(process.system.iter().cloned())
    };
    #[cfg(not(target_os = "linux"))]
    let _ = setup;
    means
}

/// The directory at which relative paths begin, with links resolved.
fn root(setup: &Setup) -> PathBuf {
    setup.scope_root().map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// Who is told what calls do.
struct Told<'a> {
    audit: Option<&'a Audit>,
    events: Option<&'a EventFile>,
    /// What is drawn, which questions take the place of.
    screen: Option<Screen>,
}

/// The engine, with whoever is asked and told.
async fn engine(
    mut builder: EngineBuilder,
    args: &SuperviseArgs,
    setup: &Setup,
    interrupts: &Interrupts,
    told: Told<'_>,
) -> Result<Engine, Error> {
    // All agents are one session: none may take the room for the results of the others.
    let mut limits = setup.config.limits;
    limits.results_batch_bytes_max = limits.results_batch_bytes_max.min(RESULTS_BYTES_MAX);
    limits.results_session_bytes_max = limits.results_engine_bytes_max;
    builder = builder.limits(limits);
    let confirmations = confirmations(args, setup);
    builder = builder.confirmations(confirmations.clone());
    if let Some(answer) = args.approve.and_then(Approve::answer) {
        builder = builder.approver(answer);
    }
    if args.approve == Some(Approve::Ask) {
        builder = with_user(builder, interrupts.stopper(), confirmations, told.screen)?;
    }
    if let Some(audit) = told.audit {
        builder = builder.event_writer(audit.writer());
    }
    if let Some(events) = told.events {
        builder = builder.event_writer(events.clone());
    }
    Ok(builder.build().await?)
}

/// Which calls need approval: none, because the profile is the approval, unless the user or the configuration wants more.
fn confirmations(args: &SuperviseArgs, setup: &Setup) -> Confirmations {
    let is_configured = setup.config.written.table(&["confirmation"]).is_some();
    match is_configured || args.approve.is_some_and(|approve| approve != Approve::Auto) {
        true => setup.confirmations(),
        false => Confirmations::auto(),
    }
}

/// The session above all agents: they share its serial lease.
fn session(engine: &Engine, args: &SuperviseArgs, setup: &Setup) -> Result<Session, Error> {
    let paths = Arc::new(HostPaths::from_directory(root(setup)));
    let capabilities = absolute(setup.config.policy.capabilities.clone(), &root(setup));
    let options = SessionOptions::default().priority(setup.config.priority).workspace(paths);
    let options = options.capabilities(capabilities);
    let name = match (&args.journal.journal, &args.session) {
        (None, _) => SESSION,
        (Some(_), Some(name)) => name,
        (Some(_), None) => {
            let session = engine.open_unnamed(options);
            anstream::eprintln!("toolyard: to go on after a kill: --session {}", session.id());
            return Ok(session);
        }
    };
    engine.open(name, options).map_err(|error| Error::Usage(error.to_string()))
}

/// Capabilities whose paths begin at the root, and not at the workspace.
fn absolute(capabilities: Capabilities, root: &Path) -> Capabilities {
    let Some(grants) = capabilities.fs_grants() else { return capabilities };
    let root = root.strip_prefix("/").unwrap_or(root);
    let inside = |grant: &FsGrant| {
        let path = root.join(grant.path());
        FsGrant::new(grant.mode(), if path.as_os_str().is_empty() { Path::new(".") } else { &path }).ok()
    };
    let grants: Vec<_> = grants.iter().filter_map(inside).collect();
    capabilities.fs(grants)
}

/// Starts the agents and waits for their ends. Returns whether they were told to end by a signal, and why one could not be
/// started: then the others are told to end.
async fn run(
    supervisor: &Supervisor,
    session: &Session,
    agents: &BTreeMap<String, AgentSettings>,
    interrupts: &mut Interrupts,
) -> (bool, Option<Error>) {
    let mut handles = Vec::new();
    let all_ended = async {
        if let Err(error) = start(supervisor, session, agents, &mut handles).await {
            supervisor.stop(GRACE).await;
            return Some(error);
        }
        for handle in &mut handles {
            handle.ended().await;
        }
        // Those that others started end with these, a little later.
        supervisor.stop(Duration::ZERO).await;
        None
    };
    tokio::select! {
        biased;
        failed = all_ended => (false, failed),
        _ = interrupts.next() => {
            supervisor.stop(GRACE).await;
            (true, None)
        }
    }
}

/// Starts the agents, one after another.
async fn start(
    supervisor: &Supervisor,
    session: &Session,
    agents: &BTreeMap<String, AgentSettings>,
    handles: &mut Vec<AgentHandle>,
) -> Result<(), Error> {
    for (profile, agent) in agents {
        for number in 1..=agent.instances {
            let own = if agent.instances == 1 { profile.clone() } else { format!("{profile}-{number}") };
            let started = supervisor.start(session, profile, Some(&own), agent.input.clone()).await;
            handles.push(started.map_err(|error| Error::Usage(format!("agent '{own}': {error}")))?);
        }
    }
    Ok(())
}
