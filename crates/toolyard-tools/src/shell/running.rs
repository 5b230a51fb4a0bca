//! A running command until its answer: reads its output, and stops it if necessary.

use super::answer::{self, Finished, Stopped};
use std::{pin::pin, time::Duration};
use tokio::time::{Instant, sleep};
use toolyard_core::{Terminal, ToolContext, ToolError, ToolOutput};
use toolyard_process::{Deltas, HeadTail, OutputReader, Processes, Report, Started};

/// A program for people that was started, until the answer of its call: what [`Shell`](super::Shell) does with a command,
/// for whoever starts such a program elsewhere. Dropping it ends its processes (SC-6).
#[derive(Debug)]
pub struct Attended {
    reader: OutputReader,
    output: Output,
    processes: Processes,
    started_at: Instant,
}

impl Attended {
    /// A program whose outputs are one, and of whose output this much is kept.
    pub fn new(started: Started, output_bytes: usize) -> Self {
        Self {
            reader: OutputReader::new(started.stdout),
            output: Output { kept: HeadTail::new(output_bytes), deltas: Deltas::default() },
            processes: started.processes,
            started_at: Instant::now(),
        }
    }

    /// Reads the output until all processes have ended, and returns the answer.
    ///
    /// # Errors
    /// [`ToolError`] for a program that did not run, or that was stopped, with its output so far.
    ///
    /// # Cancel safety
    /// Dropping the future ends the program.
    pub async fn finish(mut self, terminal: &Terminal, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (report, stopped) = self.ended(terminal.limit.unwrap_or(Duration::MAX), cx).await;
        let ran = match report {
            Report::Ran(ran) => ran,
            Report::NotStarted(why) => return Err(answer::not_started(&why)),
        };
        let Self { reader, mut output, started_at, .. } = self;
        reader.drain(|piece| output.push(piece, cx));
        output.deltas.finish(|text| cx.emit(text));
        let elapsed = started_at.elapsed();
        Finished { command: &terminal.command, ran, stopped, elapsed, output: output.kept }.answer()
    }

    /// Reads the output until all processes have ended. A stop takes precedence over output, so that a command that floods
    /// is stopped like any other.
    async fn ended(&mut self, limit: Duration, cx: &ToolContext) -> (Report, Option<Stopped>) {
        let Self { reader, output, processes, .. } = self;
        let mut timeout = pin!(sleep(limit));
        let mut stopped = None;
        loop {
            let why = tokio::select! {
                biased;
                report = processes.ended() => return (report, stopped),
                () = cx.cancelled(), if stopped.is_none() => Stopped::Cancelled,
                () = &mut timeout, if stopped.is_none() => Stopped::Limit(limit),
                piece = reader.read(), if !reader.at_end() => {
                    piece.into_iter().for_each(|piece| output.push(piece, cx));
                    continue;
                }
            };
            stopped = Some(why);
            processes.terminate();
        }
    }
}

/// The output of the command.
#[derive(Debug)]
struct Output {
    kept: HeadTail,
    deltas: Deltas,
}

impl Output {
    fn push(&mut self, bytes: &[u8], cx: &ToolContext) {
        self.kept.push(bytes);
        self.deltas.push(bytes, |text| cx.emit(text));
    }
}
