//! A response that is still being streamed: each call runs as soon as it is complete (CL-5).
//!
//! ```text
//!   SSE text, as it comes ─► SseDecoder ─┬─ calls ─► open batch ───────────────┬─► results, all at the end
//!   (read on a thread)                   └─ from the first of a toolset on:  ──┘
//!                                           when the text has ended
//! ```
//!
//! However the text ends, every call that was started has a result. A text that breaks off inside an event loses only
//! that event. Text that cannot be read, or an error from the provider, is reported after the results.

use super::{
    NOTHING_RUN, response,
    runner::{BatchResult, Runner},
    toolset,
};
use crate::{
    cli::RunArgs,
    error::Error,
    exit::Exit,
    input::{Lines, Origin},
    setup::declared_names,
};
use std::io;
use tokio::sync::mpsc;
use toolyard::{Call, OpenBatch, Session};
use toolyard_wire::{Format, NameMap, SseDecoder};

/// The number of chunks buffered between the reading thread and the decoder.
const CHUNKS_MAX: usize = 8;

/// Runs the calls of a stream.
pub(super) async fn run(
    runner: &Runner,
    args: &RunArgs,
    origin: &Origin,
    input: Lines,
) -> Result<Exit, Error> {
    let mut intake = Intake::new(runner.session("run"), args.input.from.format());
    let end = intake.read(runner, origin, read_ahead(input)).await;
    match end {
        End::Failed(error) if intake.calls.is_empty() => return Err(error),
        End::Interrupted if intake.calls.is_empty() => {
            runner.notify(NOTHING_RUN);
            return Ok(Exit::Interrupted);
        }
        _ => {}
    }
    if let (End::Complete, Some(message)) = (&end, intake.decoder.message()) {
        response::remark(runner, origin, message);
    }
    let result = intake.finish(runner).await;
    let printed = match intake.decoder.message() {
        Some(message) => response::answer(runner, args, message, result),
        None => Ok(()),
    };
    match end {
        End::Failed(error) => Err(error),
        End::Complete | End::Interrupted => printed.map(|()| Exit::Ok),
    }
}

/// Reads on a blocking thread, so that neither calls nor an interrupt wait for it.
fn read_ahead(mut input: Lines) -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    tokio::task::spawn_blocking(move || {
        loop {
            let chunk = input.chunk();
            let is_last = chunk.as_ref().map_or(true, Vec::is_empty);
            if sender.blocking_send(chunk).is_err() || is_last {
                break;
            }
        }
    });
    receiver
}

/// How reading ended.
enum End {
    /// At the end of the text, which may have broken off.
    Complete,
    /// At text that cannot be read, or at an error from the provider.
    Failed(Error),
    /// At a signal: calls that had not arrived by then do not exist.
    Interrupted,
}

/// Takes in calls as they are completed.
struct Intake {
    session: Session,
    decoder: SseDecoder,
    names: Option<NameMap>,
    /// Every call.
    calls: Vec<Call>,
    batch: Option<OpenBatch>,
    /// The number of calls in the batch. The first toolset call ends it: from there on each call depends on the result
    /// of the one before, so the rest wait for the end of the text.
    pushed: usize,
}

impl Intake {
    fn new(session: Session, format: Option<Format>) -> Self {
        let decoder = SseDecoder::new(format);
        Self { session, decoder, names: None, calls: Vec::new(), batch: None, pushed: 0 }
    }

    /// Reads to the end of the text.
    async fn read(
        &mut self,
        runner: &Runner,
        origin: &Origin,
        mut chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    ) -> End {
        let end = loop {
            let chunk = tokio::select! {
                biased;
                () = runner.interrupted() => {
                    runner.interrupt();
                    break End::Interrupted;
                }
                chunk = chunks.recv() => chunk,
            };
            let read = match chunk {
                None => break End::Complete,
                Some(Ok(chunk)) => self.decoder.push(&chunk).map_err(|error| origin.error(error)),
                Some(Err(error)) => Err(origin.unreadable(&error)),
            };
            self.take(runner);
            if let Err(error) = read {
                break End::Failed(error);
            }
        };
        let finished = self.decoder.finish();
        self.take(runner);
        match (end, finished) {
            (End::Complete, Err(error)) => End::Failed(origin.error(error)),
            (end, _) => end,
        }
    }

    /// Takes the calls completed so far.
    fn take(&mut self, runner: &Runner) {
        let calls = self.decoder.take_calls();
        let Some(format) = self.decoder.message().map(|message| message.format()) else { return };
        let names = self.names.get_or_insert_with(|| declared_names(format, runner.engine.registry()));
        for mut call in calls {
            if let Some(name) = names.original(&call.name) {
                call.name = name.into();
            }
            let is_early = self.pushed == self.calls.len();
            if is_early && !(format == Format::Anthropic && toolset::is_of_toolset(&call)) {
                let batch = self.batch.get_or_insert_with(|| runner.open_batch(&self.session));
                batch.push(runner.dispatched(&call));
                self.pushed += 1;
            }
            self.calls.push(call);
        }
    }

    /// Waits for the calls in the batch, and runs the rest.
    async fn finish(&mut self, runner: &Runner) -> BatchResult {
        let result = match self.batch.take() {
            Some(batch) => runner.finish(&self.session, batch, &self.calls[..self.pushed]).await,
            None if self.calls.is_empty() => runner.run_batch(&self.session, &[]).await,
            None => BatchResult::default(),
        };
        if self.pushed == self.calls.len() {
            return result;
        }
        toolset::run(runner, &self.session, &self.calls, result).await
    }
}
