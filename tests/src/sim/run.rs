//! Plays a program and checks the run.

use super::{
    Entry, Program, Report,
    check::{Violation, check},
    journal::{Fact, Journal, trace_hash},
    lives,
    panics::panics_of,
    permits::{listen, with_listener},
    stage::{self, Agent, Stage, play_order},
};
use futures::future::{BoxFuture, join_all};
use std::{
    fmt::Write,
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};
use tokio::{runtime::Builder, time::sleep};
use toolyard::{Engine, Session, SessionOptions};

/// Virtual time without any progress after which a run counts as stuck (TS-3).
const HOUR: Duration = Duration::from_secs(3600);
/// How often the run checks whether all work is done.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Plays a program on paused time and checks the journal.
///
/// # Panics
/// If the run itself cannot be set up.
pub fn play(program: &Program) -> Report {
    let mut entries = Vec::new();
    let panics = on_a_runtime(async { run_program(program, Stage::new(program, None), &mut entries).await });
    let mut violations: Vec<_> = panics.into_iter().chain(check(program, &entries)).collect();
    let (mut of_lives, mut ends) = (Vec::new(), Vec::new());
    if let Some(plan) = program.lives.as_ref().filter(|_| violations.is_empty()) {
        let played = lives::play(program, plan);
        violations.extend(played.violations);
        of_lives = played.entries;
        ends = played.ends;
    }
    let trace_hash = trace_hash(entries.iter().chain(&of_lives), &violations);
    Report { trace_hash, violations, entries, of_lives, ends }
}

/// Runs this on a runtime of its own, with paused time. All that is on the runtime is dropped with it. Returns the panics.
pub(super) fn on_a_runtime(run: impl Future<Output = ()>) -> Vec<Violation> {
    let panics = panics_of(|| {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        with_listener(|| runtime.expect("failed to build the runtime").block_on(run));
    });
    panics.into_iter().map(|panic| Violation::new("panic", panic)).collect()
}

/// Plays a program until it ends, its life does, or it makes no more progress.
pub(super) async fn run_program(program: &Program, stage: Arc<Stage>, entries: &mut Vec<Entry>) {
    listen(Some(stage.journal.clone()), program.secret.as_ref().map(|secret| secret.core.as_str()));
    let mut guard = JournalGuard { journal: stage.journal.clone(), entries };
    let engine = stage::engine(program, &stage).await;
    stage.journal.note(Fact::Built(engine.epoch()));
    tokio::select! {
        biased;
        () = until_over(&stage) => {}
        () = run_sessions(program, &stage, &engine) => {}
        () = until_stuck(&stage) => {
            let dump = dump(&stage, &engine).await;
            stage.journal.note(Fact::Stuck(dump));
        }
    }
    stage.close();
    guard.take();
}

/// Hands the journal over, even if the run unwinds.
struct JournalGuard<'a> {
    journal: Journal,
    entries: &'a mut Vec<Entry>,
}

impl JournalGuard<'_> {
    /// Takes the journal as it is now. Later entries come from the teardown of the runtime and are not part of the run.
    fn take(&mut self) {
        if self.entries.is_empty() {
            *self.entries = self.journal.entries();
            listen(None, None);
        }
    }
}

impl Drop for JournalGuard<'_> {
    fn drop(&mut self) {
        self.take();
    }
}

/// Plays the sessions and orders of the program, then shuts the engine down.
async fn run_sessions(program: &Program, stage: &Arc<Stage>, engine: &Engine) {
    let sessions: Vec<_> = (0..program.sessions.len()).map(|at| session(program, engine, at)).collect();
    stage.open(engine, &sessions);
    let turns = sessions.iter().zip(&program.sessions).map(|(session, plan)| {
        let agent = Agent { stage, session, handler: None, fork: None };
        let played: BoxFuture<'_, ()> = Box::pin(agent.play(&plan.turns, &plan.forks));
        stage.shaker.shake(played)
    });
    let orders = program.orders.iter().map(|order| {
        let played: BoxFuture<'_, ()> = Box::pin(play_order(stage, engine, &sessions, *order));
        stage.shaker.shake(played)
    });
    join_all(turns.chain(orders)).await;
    while stage.journal.open_calls() > 0 || stage.busy() > 0 {
        sleep(POLL_INTERVAL).await;
    }
    // A result is followed only by short work: hooks, dropped tasks, and the grace of a handler whose last caller left.
    sleep(Duration::from_millis(program.grace_ms) + Duration::from_secs(1)).await;
    if let Ok(status) = engine.status().await {
        stage.journal.note(Fact::Quiet(status.pools));
    }
    for (at, session) in sessions.iter().enumerate() {
        stage.journal.note(Fact::BudgetLeft(at, session.budget_left()));
    }
    stage.close();
    drop(sessions);
    stage::shut_down(stage, engine, 0, 0).await;
}

fn session(program: &Program, engine: &Engine, at: usize) -> Session {
    let plan = &program.sessions[at];
    let mut options = SessionOptions::default().priority(plan.priority);
    if let Some(cap) = plan.cap {
        options = options.max_in_flight(cap);
    }
    if let Some(cap) = plan.tree_cap {
        options = options.tree_max_in_flight(cap);
    }
    if let Some(capabilities) = stage::capabilities(program, &plan.barred) {
        options = options.capabilities(capabilities);
    }
    engine.session_with(format!("s{at}"), options)
}

/// Completes when the life of the engine is over, if it is to end before its work is done.
async fn until_over(stage: &Stage) {
    match &stage.life {
        Some(life) => {
            life.until_over().await;
            stage.journal.crash();
        }
        None => pending().await,
    }
}

/// Completes when nothing was observed for an hour.
async fn until_stuck(stage: &Stage) {
    let mut seen = usize::MAX;
    while seen != stage.journal.len() {
        seen = stage.journal.len();
        sleep(HOUR).await;
    }
}

/// Describes the current state of calls, handlers and pools.
async fn dump(stage: &Stage, engine: &Engine) -> String {
    let mut text =
        format!("{} open calls, running handlers {:?}", stage.journal.open_calls(), stage.running_now());
    // Writing to a string cannot fail.
    let _ = match tokio::time::timeout(HOUR, engine.status()).await {
        Ok(Ok(status)) => {
            let pools = status.pools.iter().try_for_each(|pool| write!(text, "\n  {pool:?}"));
            pools.and_then(|()| status.waiting.iter().try_for_each(|lane| write!(text, "\n  {lane:?}")))
        }
        other => write!(text, "\n  pools {other:?}"),
    };
    text
}
