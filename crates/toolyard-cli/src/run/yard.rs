//! The engine of a run, with what watches it: the report, the live view, the signals.

use super::{
    event_file::EventFile,
    interrupt::{Interrupts, Signal},
    live::Live,
};
use crate::{
    cli::{Approve, ReportKind, RunArgs},
    exit::Exit,
    fault::Fault,
    report::{Recorder, Report, Timeline, Turn, Widths},
    setup::{INTERRUPT_GRACE, Setup},
};
use std::{pin::pin, time::Duration};
use toolyard::{
    Batch, Call, CallError, ConfirmationMode, Confirmations, Drain, Engine, ErrorKind, Outcome, Priority,
    Routing, Session, SessionOptions, SideEffects,
};

/// The engine of a run.
pub(super) struct Yard {
    /// The engine.
    pub(super) engine: Engine,
    /// What the run came to so far.
    pub(super) report: Report,
    interrupts: Interrupts,
    recorder: Recorder,
    live: Option<Live>,
    confirmations: Confirmations,
    approve: Option<Approve>,
    sequential: bool,
    speaks: bool,
    priority: Priority,
}

/// A batch that has been played.
pub(super) struct Played {
    /// One outcome per call, in call order.
    pub(super) outcomes: Vec<Outcome>,
    /// When what happened.
    pub(super) timeline: Timeline,
}

impl Yard {
    /// Builds the engine.
    pub(super) async fn open(
        setup: &Setup,
        args: &RunArgs,
        events: Option<EventFile>,
        interrupts: Interrupts,
    ) -> Result<Self, Fault> {
        let speaks = !args.quiet && args.report != ReportKind::Json;
        let recorder = Recorder::default();
        let live = (speaks && !args.no_progress).then(|| Live::on_terminal(setup.config.pools)).flatten();
        let mut builder = setup.engine().events(recorder.sink());
        if let Some(live) = &live {
            builder = builder.events(live.sink());
        }
        if let Some(events) = events {
            builder = builder.events(events);
        }
        if let Some(approve) = args.approve {
            builder = builder.approver(approve.answer());
        }
        let engine = builder.build().await?;
        let widths = Widths::new(setup, engine.registry());
        Ok(Self {
            engine,
            report: Report::new(widths),
            interrupts,
            recorder,
            live,
            confirmations: setup.config.confirmations.clone(),
            approve: args.approve,
            sequential: args.sequential,
            speaks,
            priority: setup.config.priority,
        })
    }

    /// The session of this name.
    pub(super) fn session(&self, id: &str) -> Session {
        self.engine.session_with(id, SessionOptions::default().priority(self.priority))
    }

    /// Runs a batch. An interrupt cancels the session: what runs has its grace, the rest is `cancelled`. A
    /// second one waits for nothing.
    pub(super) async fn play(&mut self, session: &Session, calls: &[Call]) -> Played {
        let turn = session.turn();
        let batch = Batch::new(calls.to_vec());
        let dispatch = async {
            if self.sequential { turn.dispatch_sequential(batch).await } else { turn.dispatch(batch).await }
        };
        let mut dispatch = pin!(dispatch);
        let outcomes = loop {
            tokio::select! {
                biased;
                outcomes = &mut dispatch => break outcomes,
                signal = self.interrupts.next() => match signal {
                    Signal::First => {
                        say(self.speaks, self.live.as_ref(), &waiting());
                        session.cancel();
                    }
                    Signal::Again => {
                        let finished = turn.finished();
                        session.cancel();
                        break given_up(calls, finished);
                    }
                },
            }
        };
        let times = self.recorder.take(session.id(), turn.number());
        let timeline = Timeline::new(&outcomes, &times);
        Played { outcomes, timeline }
    }

    /// Takes what was played into the report.
    pub(super) fn record(&mut self, turn: Option<Turn>, played: Played) {
        let place = turn
            .as_ref()
            .map_or_else(String::new, |Turn { episode, turn }| format!("{episode} turn {turn} "));
        for outcome in played.outcomes.iter().filter(|outcome| !outcome.success()) {
            let unasked = self.unasked(outcome);
            self.report.notes.add(&place, outcome, unasked);
        }
        self.report.add(turn, played.timeline);
    }

    /// The side effects of a call that would have been asked about, had there been anybody to ask.
    fn unasked(&self, outcome: &Outcome) -> Option<SideEffects> {
        let entry = self.engine.registry().get(&outcome.tool)?;
        let side_effects = entry.spec().side_effects;
        let mode = self.confirmations.mode(entry.name(), side_effects);
        (self.approve.is_none() && mode == ConfirmationMode::Prompt).then_some(side_effects)
    }

    /// Waits for the next signal; see [`Interrupts::next`].
    pub(super) async fn interrupted(&mut self) {
        self.interrupts.next().await;
    }

    /// Whether a signal has come.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupts.last().is_some()
    }

    /// Tells the person something, unless standard error is not for people.
    pub(super) fn say(&self, line: &str) {
        say(self.speaks, self.live.as_ref(), line);
    }

    /// Prints beside the live view.
    pub(super) fn print<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.live {
            Some(live) => live.suspend(print),
            None => print(),
        }
    }

    /// Stops the engine and prints the report; the exit code with interrupts counted in.
    pub(super) async fn close(mut self, exit: Exit, report: Option<ReportKind>) -> Exit {
        self.live = None;
        let mut exit = exit.or(self.report.exit());
        if self.is_interrupted() {
            exit = exit.or(Exit::Interrupted);
        }
        if let Some(kind) = report {
            self.report.print(kind, exit);
        }
        if self.interrupts.last() != Some(Signal::Again) {
            let drain = Drain::default().finish(Duration::ZERO).grace(INTERRUPT_GRACE);
            tokio::select! {
                _ = self.engine.shutdown(drain) => {}
                _ = self.interrupts.next() => exit = exit.or(Exit::Interrupted),
            }
        }
        exit
    }
}

fn waiting() -> String {
    let grace = INTERRUPT_GRACE.as_secs();
    format!("interrupted: calls that run have {grace} s to finish; interrupt again to give them up")
}

fn say(speaks: bool, live: Option<&Live>, line: &str) {
    let print = || anstream::eprintln!("toolyard: {line}");
    match live {
        _ if !speaks => {}
        Some(live) => live.suspend(print),
        None => print(),
    }
}

/// The results there are; calls that have none are `cancelled`.
fn given_up(calls: &[Call], finished: Vec<Option<Outcome>>) -> Vec<Outcome> {
    let mut finished = finished.into_iter();
    let outcome = |call: &Call| {
        finished.next().flatten().unwrap_or_else(|| {
            let error = CallError::new(ErrorKind::Cancelled, "the program was told to stop at once");
            Outcome::new(call, Routing::ShortCircuit, Err(error))
        })
    };
    calls.iter().map(outcome).collect()
}
