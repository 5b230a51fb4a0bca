//! A running command until its answer: reads its output, and stops it if necessary.

use super::{
    answer::{self, Finished, Stopped},
    arguments::Arguments,
};
use std::{pin::pin, time::Duration};
use tokio::time::{Instant, sleep};
use toolyard_core::{ToolContext, ToolError, ToolOutput};
use toolyard_process::{Deltas, HeadTail, OutputReader, Processes, Report, Started};

/// A running command. A dropped call ends its processes (SC-6).
pub(super) struct Running {
    reader: OutputReader,
    output: Output,
    processes: Processes,
    started_at: Instant,
}

impl Running {
    pub(super) fn new(started: Started, output_bytes: usize) -> Self {
        Self {
            reader: OutputReader::new(started.stdout),
            output: Output { kept: HeadTail::new(output_bytes), deltas: Deltas::default() },
            processes: started.processes,
            started_at: Instant::now(),
        }
    }

    /// Reads the output until all processes have ended, and returns the answer.
    pub(super) async fn finish(
        mut self,
        args: &Arguments<'_>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let (report, stopped) = self.ended(args.limit().unwrap_or(Duration::MAX), cx).await;
        let ran = match report {
            Report::Ran(ran) => ran,
            Report::NotStarted(why) => return Err(answer::not_started(&why)),
        };
        let Self { reader, mut output, started_at, .. } = self;
        reader.drain(|piece| output.push(piece, cx));
        output.deltas.finish(|text| cx.emit(text));
        let elapsed = started_at.elapsed();
        Finished { command: args.command, ran, stopped, elapsed, output: output.kept }.answer()
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
