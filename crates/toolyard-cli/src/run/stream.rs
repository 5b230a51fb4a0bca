//! A response that is still being written: its calls run as soon as each is complete (CL-5).
//!
//! ```text
//!   SSE text, as it comes ─► SseDecoder ─┬─ calls ─► open batch ───────────────┬─► results, all at the end
//!   (read on a thread)                   └─ from the first of a toolset on:  ──┘
//!                                           when the text has ended
//! ```
//!
//! However it ends, every call that was begun has a result. A text that breaks off inside an event costs nothing
//! else; one that cannot be read further, or in which the provider tells of an error, is a fault after the results.

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

/// How many pieces may lie between the thread that reads and the decoder.
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

/// Reads on a thread of its own: reading blocks, and neither calls nor an interrupt must wait for it.
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

/// How the reading ended.
enum End {
    /// With the text, which may have broken off.
    Whole,
    /// With what cannot be read, or with an error of the provider.
    Broken(Fault),
    /// With a signal: what had not come by then does not exist.
    Interrupted,
}

/// Takes calls in as they are complete.
struct Intake {
    session: Session,
    decoder: SseDecoder,
    names: Option<NameMap>,
    /// Every call.
    calls: Vec<Call>,
    batch: Option<OpenBatch>,
    /// How many of the calls are in the batch. The first call of a toolset ends it: from there on each depends on
    /// how the one before went, and they wait for the end of the text.
    pushed: usize,
}

impl Intake {
    fn new(session: Session, format: Option<Format>) -> Self {
        let decoder = SseDecoder::new(format);
        Self { session, decoder, names: None, calls: Vec::new(), batch: None, pushed: 0 }
    }

    /// Reads to the end.
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

    /// Takes the calls that are complete by now.
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

    /// Waits for the calls that were taken in, and runs those that were not yet.
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
