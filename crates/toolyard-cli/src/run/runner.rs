//! The engine of a run, with everything that watches it: the report, the live view, the signals.

use super::{
    ask::{Asker, Terminal},
    drained::Drained,
    ended_calls::EndedCalls,
    interrupt::{Interrupts, Signal},
    kept::Kept,
    live::Live,
    records::Records,
};
use crate::{
    cli::{Approve, ReportKind, RunArgs},
    error::Error,
    exit::Exit,
    export::Export,
    journal_file::JournalFile,
    report::{Recorder, Report, Timeline, Turn, Widths},
    setup::{INTERRUPT_GRACE, Setup},
    stand_ins::{EpisodeKey, RecordFile, StandIns},
};
use parking_lot::Mutex;
use std::{
    io::{IsTerminal, stdout},
    pin::pin,
    time::Duration,
};
use tokio::{task::JoinHandle, time::timeout};
use toolyard::{
    Answer, Batch, Call, CallError, Confirmations, Drain, DrainReport, Engine, EngineBuilder, ErrorKind,
    OpenBatch, Outcome, Redactor, ResumedTurn, Routing, Session, SessionOptions, SideEffects,
};

/// How long to wait for the results of abandoned calls. They arrive at once unless something is stuck.
const RESULT_TIMEOUT: Duration = Duration::from_millis(500);

/// The engine of a run. Batches of several sessions may run at the same time.
pub(super) struct Runner {
    /// The engine.
    pub(super) engine: Engine,
    /// The report on the run so far.
    report: Mutex<Report>,
    interrupts: Interrupts,
    stopping: Mutex<Stopping>,
    recorder: Recorder,
    ended: EndedCalls,
    drained: Drained,
    live: Option<Live>,
    stand_ins: StandIns,
    /// Where the calls of real tools are recorded, if they are.
    calls: Option<RecordFile>,
    redactor: Redactor,
    confirmations: Confirmations,
    /// Whether anybody answers the questions about calls that need approval.
    has_approver: bool,
    /// The terminal for these questions, if any.
    terminal: Option<Terminal>,
    /// Whether results could be printed into the middle of a question. Where they go elsewhere, an episode does not wait for
    /// the questions of another one.
    prints_beside_questions: bool,
    sequential: bool,
    /// Whether failed calls leave the exit code as it is.
    exit_zero: bool,
    shows_messages: bool,
    /// The options of every session.
    options: SessionOptions,
    /// Where it is recorded what a crash must not lose.
    pub(super) journal: JournalFile,
}

/// How far an interrupt has stopped the engine. Every batch that is running hears of the signals; the first one acts.
#[derive(Default)]
struct Stopping {
    /// The last drain that was started.
    drain: Option<JoinHandle<DrainReport>>,
    is_abandoned: bool,
}

/// What connects a run to the outside: its event file, the signals and the terminal.
pub(super) struct RunIo<'a> {
    /// The files that events are written to.
    pub(super) records: &'a Records,
    /// The signals that stop it.
    pub(super) interrupts: Interrupts,
    /// The terminal to ask on, if any.
    pub(super) terminal: Option<Terminal>,
    /// Where it is recorded what a crash must not lose.
    pub(super) journal: JournalFile,
}

/// The result of a batch.
#[derive(Default)]
pub(super) struct BatchResult {
    /// One outcome per call, in call order.
    pub(super) outcomes: Vec<Outcome>,
    /// When everything happened.
    pub(super) timeline: Timeline,
}

impl Runner {
    /// Builds the engine, observed by `export`.
    pub(super) async fn open(
        setup: &Setup,
        args: &RunArgs,
        io: RunIo<'_>,
        export: &Export,
    ) -> Result<Self, Error> {
        let runner = Self::build(export.count(setup.engine()), setup, args, io).await?;
        export.observe(&runner.engine);
        Ok(runner)
    }

    async fn build(
        builder: EngineBuilder,
        setup: &Setup,
        args: &RunArgs,
        io: RunIo<'_>,
    ) -> Result<Self, Error> {
        let RunIo { records, interrupts, terminal, journal } = io;
        let shows_messages = args.shows_messages();
        let recorder = Recorder::default();
        let live = Live::is_shown(args).then(|| Live::start(setup.config.pools));
        let (ended, drained) = (EndedCalls::default(), Drained::default());
        let mut builder = builder.events(recorder.sink()).events(ended.sink()).events(drained.sink());
        if let Some(live) = &live {
            builder = builder.events(live.sink());
        }
        builder = journal.attach(records.attach(builder));
        let confirmations = setup.confirmations();
        let answer = args.approve.and_then(Approve::answer);
        let has_approver = answer.is_some() || terminal.is_some();
        if let Some(answer) = answer {
            builder = builder.approver(answer);
        } else if let Some(terminal) = terminal.clone() {
            let (screen, stopper) = (live.as_ref().map(Live::screen), interrupts.stopper());
            let asker = Asker::new(terminal, screen, stopper, confirmations.clone());
            builder = builder.events(asker.queue().sink()).approver(asker);
        } else if journal.is_open() {
            // Nobody can be asked, but an answer that is recorded holds (JR-9).
            builder = builder.approver(Answer::nobody());
        }
        let engine = builder.build().await?;
        setup.attach(&engine);
        if let Some(live) = &live {
            live.set_attempts_max(setup.attempts_max(engine.registry()));
        }
        let widths = Widths::new(setup, engine.registry());
        Ok(Self {
            engine,
            report: Mutex::new(Report::new(widths, args.sequential)),
            interrupts,
            stopping: Mutex::default(),
            recorder,
            ended,
            drained,
            live,
            stand_ins: setup.stand_ins.clone(),
            calls: records.calls().cloned(),
            redactor: setup.config.redactor.clone(),
            confirmations,
            has_approver,
            terminal,
            prints_beside_questions: args.jobs.get() == 1 || stdout().is_terminal(),
            sequential: args.sequential,
            exit_zero: args.exit_zero,
            shows_messages,
            options: args.role.session().priority(setup.config.priority),
            journal,
        })
    }

    /// The session of this name.
    pub(super) fn session(&self, id: &str) -> Session {
        self.engine.session_with(id, self.options.clone())
    }

    /// A session that has no name of its own.
    pub(super) fn unnamed_session(&self) -> Session {
        self.engine.open_unnamed(self.options.clone())
    }

    /// A new session for an episode. It has the episode's name, with a number behind it while another episode of that name
    /// runs or has left a call running.
    pub(super) fn open_session(&self, episode: EpisodeKey) -> Session {
        let id = episode.id.clone();
        let name = |number: u64| if number == 1 { id.to_string() } else { format!("{id}#{number}") };
        let mut open = (1..).filter_map(|number| self.engine.open(name(number), self.options.clone()).ok());
        let session = open.next().expect("there are more names than sessions");
        self.stand_ins.begin(session.id(), episode);
        session
    }

    /// Tells that nothing more of its episode runs in a session.
    pub(super) fn end_session(&self, session: &Session) {
        self.stand_ins.end(session.id());
    }

    /// Runs a batch. An interrupt drains the engine: running calls are cancelled with a grace period, and the rest end
    /// as `shutting_down`. A second interrupt waits for nothing (SC-8).
    pub(super) async fn run_batch(&self, session: &Session, calls: &[Call]) -> BatchResult {
        self.run_request(session, calls, None).await
    }

    /// The same for a request that the journal knows by this key.
    pub(super) async fn run_request(
        &self,
        session: &Session,
        calls: &[Call],
        request: Option<&str>,
    ) -> BatchResult {
        self.stop_if_interrupted().await;
        let turn = session.turn().without_resend();
        self.stand_ins.turn_begins(session.id(), turn.number());
        let mut batch: Batch = calls.iter().map(|call| self.stand_ins.dispatched(call)).collect();
        if let Some(request) = request {
            batch = batch.of_request(request);
        }
        let sequential = self.sequential;
        let dispatch = async {
            if sequential { turn.dispatch_sequential(batch).await } else { turn.dispatch(batch).await }
        };
        let outcomes = match self.until_abandoned(dispatch).await {
            Some(outcomes) => outcomes,
            None => finished_or_cancelled(session, calls, || turn.finished()),
        };
        self.batch_result(session, turn.number(), calls, outcomes).await
    }

    /// Goes on with a turn that an earlier run has left, whose only batch has these calls.
    pub(super) async fn finish_turn(
        &self,
        session: &Session,
        resumed: ResumedTurn,
        calls: &[Call],
    ) -> BatchResult {
        let turn = resumed.turn().number();
        self.stand_ins.turn_begins(session.id(), turn);
        let outcomes = match self.until_abandoned(resumed.finish()).await {
            Some(outcomes) => outcomes.concat(),
            None => finished_or_cancelled(session, calls, Vec::new),
        };
        self.batch_result(session, turn, calls, outcomes).await
    }

    /// A call as it is dispatched.
    pub(super) fn dispatched(&self, call: &Call) -> Call {
        self.stand_ins.dispatched(call)
    }

    /// Opens a batch whose calls arrive later, as the first turn of its session.
    pub(super) fn open_batch(&self, session: &Session) -> OpenBatch {
        if self.sequential { session.open_batch_sequential() } else { session.open_batch() }
    }

    /// Waits for the calls of an open batch, with interrupts as in [`run_batch`](Self::run_batch).
    pub(super) async fn finish(&self, session: &Session, batch: OpenBatch, calls: &[Call]) -> BatchResult {
        const FIRST_TURN: u64 = 1;
        // `finish` takes the batch, after which `finished` cannot be called. So first wait until every call has ended.
        let outcomes = match self.until_abandoned(self.ended.until(calls.len())).await {
            Some(()) => batch.finish().await,
            None => finished_or_cancelled(session, calls, || batch.finished()),
        };
        self.batch_result(session, FIRST_TURN, calls, outcomes).await
    }

    async fn batch_result(
        &self,
        session: &Session,
        turn: u64,
        calls: &[Call],
        mut outcomes: Vec<Outcome>,
    ) -> BatchResult {
        self.stand_ins.restore(session.id(), turn, &mut outcomes);
        if let Some(record) = &self.calls {
            let ends = calls.iter().zip(&outcomes);
            let place = (session.id(), turn);
            record.turn(&self.stand_ins, place, ends, &self.redactor, self.is_interrupted());
        }
        if self.prints_beside_questions {
            self.questions_over().await;
        }
        let times = self.recorder.take(session.id(), turn);
        let timeline = Timeline::new(&outcomes, &times);
        BatchResult { outcomes, timeline }
    }

    /// Waits until questions that are over are complete on the screen, so that nothing is printed into them.
    async fn questions_over(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.idle().await;
        }
    }

    /// Waits for `work`, but gives up after a second interrupt.
    async fn until_abandoned<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = self.interrupts.until(Signal::First) => {}
        }
        if self.interrupts.arrived() == Some(Signal::First) {
            self.interrupt();
        }
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = self.interrupts.until(Signal::Second) => self.abandon(),
        }
        timeout(RESULT_TIMEOUT, work).await.ok()
    }

    /// Between two turns of an episode nobody waits for signals: if one has arrived, waits until no call can start, and not
    /// long after a second one.
    async fn stop_if_interrupted(&self) {
        if self.is_interrupted() {
            self.interrupt();
            tokio::select! {
                () = self.drained.until() => return,
                () = self.interrupts.until(Signal::Second) => {}
            }
            let _ = timeout(RESULT_TIMEOUT, self.drained.until()).await;
        }
    }

    /// Handles a first signal: nothing more starts, and running calls are cancelled with a grace period (SC-8).
    pub(super) fn interrupt(&self) {
        let mut stopping = self.stopping.lock();
        if stopping.drain.is_none() {
            stopping.drain = Some(drain(&self.engine, INTERRUPT_GRACE));
            drop(stopping);
            self.notify(&interrupt_message());
        }
    }

    /// Handles a second signal: running calls are abandoned.
    fn abandon(&self) {
        let mut stopping = self.stopping.lock();
        if !stopping.is_abandoned {
            // Runs beside the first drain, which then ends too.
            *stopping = Stopping { drain: Some(drain(&self.engine, Duration::ZERO)), is_abandoned: true };
        }
    }

    /// Adds a batch to the report.
    pub(super) fn record(&self, turn: Option<Turn>, outcomes: &[Outcome], timeline: Timeline) {
        let mut report = self.report.lock();
        for outcome in outcomes.iter().filter(|outcome| !outcome.success()) {
            report.notes.add(turn.as_ref(), outcome, self.unapproved(outcome));
        }
        if let (Some(live), Some(_)) = (&self.live, &turn) {
            live.turn_ended();
        }
        report.add(turn, timeline);
    }

    /// Tells the live view and the report that episodes follow, so many of whose turns are kept, of so many in all.
    pub(super) fn begin_episodes(&self, kept: &Kept, turns: Option<u64>) {
        self.report.lock().begin_episodes(kept.episodes, kept.turns);
        if let Some(live) = &self.live {
            live.begin_turns(kept.turns, turns);
        }
    }

    /// Tells the live view that so many turns, of lines that cannot be read, will not run.
    pub(super) fn skip(&self, turns: u64) {
        if let Some(live) = &self.live {
            live.turns_skipped(turns);
        }
    }

    /// Tells the report that an episode has ended.
    pub(super) fn record_end(&self, place: u64) {
        self.report.lock().end_episode(place);
    }

    /// The side effects of a call that needed approval when nobody could be asked.
    fn unapproved(&self, outcome: &Outcome) -> Option<SideEffects> {
        let entry = self.engine.registry().get(&outcome.tool)?;
        let side_effects = entry.spec().asked_as();
        let mode = self.confirmations.mode(entry.name(), side_effects);
        (!self.has_approver && mode.asks()).then_some(side_effects)
    }

    /// Waits for a first signal; returns at once if it has arrived.
    pub(super) async fn interrupted(&self) {
        self.interrupts.until(Signal::First).await;
    }

    /// Whether a signal has arrived.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupts.arrived().is_some()
    }

    /// Prints a message for the user, unless standard error is not for people.
    pub(super) fn notify(&self, line: &str) {
        notify(self.shows_messages, self.live.as_ref(), line);
    }

    /// Prints with the live view off the screen.
    pub(super) fn print<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.live {
            Some(live) => live.suspend(print),
            None => print(),
        }
    }

    /// Stops the engine and prints the report; returns the exit code, interrupts included.
    pub(super) async fn close(&self, exit: Exit, kind: Option<&ReportKind>) -> Exit {
        if let Some(live) = &self.live {
            live.close();
        }
        if self.interrupts.arrived() != Some(Signal::Second) {
            self.questions_over().await;
        }
        let mut exit = self.print_report(exit, kind);
        // Abandoned calls may never stop: then wait only until the events so far are written.
        if self.interrupts.arrived() == Some(Signal::Second) {
            let _ = timeout(RESULT_TIMEOUT, self.engine.events_written()).await;
        } else {
            let begun = self.stopping.lock().drain.take();
            let drain = begun.unwrap_or_else(|| drain(&self.engine, INTERRUPT_GRACE));
            tokio::select! {
                _ = drain => {}
                () = self.interrupts.another() => exit = exit.or(Exit::Interrupted),
            }
        }
        exit
    }

    /// The result of the program after calls that failed, if any did (KT-16).
    pub(super) fn exit_after_calls(&self, any_failed: bool) -> Exit {
        if any_failed && !self.exit_zero { Exit::CallFailed } else { Exit::Ok }
    }

    fn print_report(&self, exit: Exit, kind: Option<&ReportKind>) -> Exit {
        let mut report = self.report.lock();
        let mut exit = exit.or(self.exit_after_calls(report.has_failures()));
        if self.is_interrupted() {
            exit = exit.or(Exit::Interrupted);
        }
        report.breaker_changes = self.recorder.breaker_changes();
        report.at_once = self.recorder.at_once();
        if let Some(kind) = kind {
            report.print(kind, exit);
        }
        exit
    }
}

/// Shuts an engine down without letting running calls finish (SC-8).
fn drain(engine: &Engine, grace: Duration) -> JoinHandle<DrainReport> {
    let engine = engine.clone();
    let drain = Drain::default().finish(Duration::ZERO).grace(grace);
    tokio::spawn(async move { engine.shutdown(drain).await })
}

fn interrupt_message() -> String {
    let grace = INTERRUPT_GRACE.as_secs();
    format!("interrupted: running calls have {grace} s to finish; interrupt again to abandon them")
}

fn notify(shows_messages: bool, live: Option<&Live>, line: &str) {
    let print = || anstream::eprintln!("toolyard: {line}");
    match live {
        _ if !shows_messages => {}
        Some(live) => live.suspend(print),
        None => print(),
    }
}

/// The results so far; calls without one end as `cancelled`.
fn finished_or_cancelled(
    session: &Session,
    calls: &[Call],
    finished: impl FnOnce() -> Vec<Option<Outcome>>,
) -> Vec<Outcome> {
    let mut finished = finished().into_iter();
    session.cancel();
    let outcome = |call: &Call| {
        finished.next().flatten().unwrap_or_else(|| {
            let error = CallError::new(
                ErrorKind::Cancelled,
                "the program was interrupted again and did not wait for this call",
            );
            Outcome::new(call, Routing::ShortCircuit, Err(error))
        })
    };
    calls.iter().map(outcome).collect()
}

#[cfg(test)]
mod tests;
