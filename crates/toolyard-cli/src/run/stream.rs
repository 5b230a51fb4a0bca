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
    NOTHING_RUN, response, toolset,
    yard::{Played, Yard},
};
use crate::{
    cli::RunArgs,
    exit::Exit,
    fault::Fault,
    input::{Lines, Origin},
    setup::names,
};
use std::io;
use tokio::sync::mpsc;
use toolyard::{Call, OpenBatch, Session};
use toolyard_wire::{Format, NameMap, SseDecoder};

/// The number of pieces buffered between the reading thread and the decoder.
const PIECES_MAX: usize = 8;

/// Runs the calls of a stream.
pub(super) async fn run(
    yard: &mut Yard,
    args: &RunArgs,
    origin: &Origin,
    input: Lines,
) -> Result<Exit, Fault> {
    let mut intake = Intake::new(yard.session("run"), args.input.from.format());
    let end = intake.read(yard, origin, read_ahead(input)).await;
    match end {
        End::Broken(fault) if intake.calls.is_empty() => return Err(fault),
        End::Interrupted if intake.calls.is_empty() => {
            yard.say(NOTHING_RUN);
            return Ok(Exit::Interrupted);
        }
        _ => {}
    }
    if let (End::Whole, Some(message)) = (&end, intake.decoder.message()) {
        response::remark(yard, origin, message);
    }
    let played = intake.play(yard).await;
    let printed = match intake.decoder.message() {
        Some(message) => response::answer(yard, args, message, played),
        None => Ok(()),
    };
    match end {
        End::Broken(fault) => Err(fault),
        End::Whole | End::Interrupted => printed.map(|()| Exit::Ok),
    }
}

/// Reads on a blocking thread, so that neither calls nor an interrupt wait for it.
fn read_ahead(mut input: Lines) -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    tokio::task::spawn_blocking(move || {
        loop {
            let piece = input.piece();
            let is_last = piece.as_ref().map_or(true, Vec::is_empty);
            if sender.blocking_send(piece).is_err() || is_last {
                break;
            }
        }
    });
    receiver
}

/// How reading ended.
enum End {
    /// At the end of the text, which may have broken off.
    Whole,
    /// At text that cannot be read, or at an error from the provider.
    Broken(Fault),
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
        yard: &mut Yard,
        origin: &Origin,
        mut pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    ) -> End {
        let end = loop {
            let piece = tokio::select! {
                biased;
                () = yard.interrupted() => {
                    yard.interrupt();
                    break End::Interrupted;
                }
                piece = pieces.recv() => piece,
            };
            let read = match piece {
                None => break End::Whole,
                Some(Ok(piece)) => self.decoder.push(&piece).map_err(|error| origin.fault(error)),
                Some(Err(error)) => Err(origin.unreadable(&error)),
            };
            self.take(yard);
            if let Err(fault) = read {
                break End::Broken(fault);
            }
        };
        let finished = self.decoder.finish();
        self.take(yard);
        match (end, finished) {
            (End::Whole, Err(error)) => End::Broken(origin.fault(error)),
            (end, _) => end,
        }
    }

    /// Takes the calls completed so far.
    fn take(&mut self, yard: &Yard) {
        let calls = self.decoder.take_calls();
        let Some(format) = self.decoder.message().map(|message| message.format()) else { return };
        let names = self.names.get_or_insert_with(|| names(format, yard.engine.registry()));
        for mut call in calls {
            if let Some(name) = names.original(&call.name) {
                call.name = name.into();
            }
            let is_early = self.pushed == self.calls.len();
            if is_early && !(format == Format::Anthropic && toolset::is_of_toolset(&call)) {
                let batch = self.batch.get_or_insert_with(|| yard.open_batch(&self.session));
                batch.push(call.clone());
                self.pushed += 1;
            }
            self.calls.push(call);
        }
    }

    /// Waits for the calls in the batch, and runs the rest.
    async fn play(&mut self, yard: &mut Yard) -> Played {
        let played = match self.batch.take() {
            Some(batch) => yard.finish(&self.session, batch, &self.calls[..self.pushed]).await,
            None if self.calls.is_empty() => yard.play(&self.session, &[]).await,
            None => Played::default(),
        };
        if self.pushed == self.calls.len() {
            return played;
        }
        toolset::play(yard, &self.session, &self.calls, played).await
    }
}
