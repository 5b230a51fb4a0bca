//! A running command until its end: feeds it, reads what it writes, and ends it if it has to stop.

use crate::printed::{self, ERRORS_BYTES};
use std::io;
use tokio::{io::AsyncWriteExt as _, net::unix::pipe, time::Instant};
use toolyard_core::{OutputKind, ToolContext, ToolError, ToolOutput};
use toolyard_process::{Deltas, End, HeadTail, OutputReader, Processes, Ran, Report, Started};
use toolyard_program::{Ended, Exit, Kept};
use toolyard_tools::shell::usage;

/// The signal for a process that has used its CPU time, SIGXCPU: on all systems of this kind.
const CPU_TIME_IS_UP: i32 = 24;

/// A command that was started.
pub(super) struct Running {
    processes: Processes,
    input: Input,
    streams: Streams,
    started_at: Instant,
}

impl Running {
    /// A command that gets this document, and of whose output this much is kept.
    pub(super) fn new(started: Started, document: Vec<u8>, output_bytes: usize) -> Self {
        let Started { stdin, stdout, stderr, processes, .. } = started;
        let errors = OutputReader::new(stderr.expect("it was started with its errors apart"));
        let streams = Streams::new(OutputReader::new(stdout), errors, output_bytes);
        let input = Input { pipe: stdin, document, written: 0 };
        Self { processes, input, streams, started_at: Instant::now() }
    }

    /// The result of its call, when all its processes have ended.
    ///
    /// # Errors
    /// [`ToolError`], unless the program said itself that it succeeded or failed.
    pub(super) async fn finish(
        mut self,
        kind: OutputKind,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let (ran, is_stopped) = self.ended(cx).await?;
        let usage = usage(&ran, self.started_at.elapsed());
        let (output, errors) = self.streams.finish(cx);
        let ended = |exit| Ended { exit, output, errors };
        usage.told_in(match exit(ran) {
            // The program ended before the stop took effect, so its own result counts.
            Some(exit) => ended(exit).result(kind),
            None => Err(ended(Exit::Signal(0)).stopped(why_stopped(is_stopped))),
        })
    }

    /// Waits until all its processes have ended, and says whether they were told to. A call that has to stop ends them, which takes precedence over output,
    /// so that a program that floods is stopped like any other.
    ///
    /// # Errors
    /// [`ToolError`] for a program that did not run.
    async fn ended(&mut self, cx: &ToolContext) -> Result<(Ran, bool), ToolError> {
        let mut is_stopped = false;
        let report = loop {
            tokio::select! {
                biased;
                report = self.processes.ended() => break report,
                () = cx.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    self.processes.terminate();
                }
                () = self.input.feed(), if self.input.is_open() => {}
                () = self.streams.read(cx), if !self.streams.are_at_end() => {}
            }
        };
        match report {
            Report::Ran(ran) => Ok((ran, is_stopped)),
            Report::NotStarted(why) => Err(super::cannot_start(&io::Error::other(why))),
        }
    }
}

/// The error of a program that did not end by itself.
fn why_stopped(is_stopped: bool) -> ToolError {
    match is_stopped {
        true => ToolError::cancelled("the program was stopped"),
        false => ToolError::execution("the program was terminated from outside").outcome_unknown(),
    }
}

/// How the program ended by itself.
fn exit(ran: Ran) -> Option<Exit> {
    ran.end.map(|end| match end {
        End::Exited(code) => Exit::Code(code),
        End::Killed(CPU_TIME_IS_UP) => Exit::Limit("CPU time"),
        End::Killed(signal) => Exit::Signal(signal),
        End::Limit(limit) => Exit::Limit(limit.as_str()),
    })
}

/// The document on its way in.
struct Input {
    pipe: Option<pipe::Sender>,
    document: Vec<u8>,
    written: usize,
}

impl Input {
    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Writes some of the document, and closes the input after the last of it. A program that does not read its input is
    /// as good as any.
    async fn feed(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(&self.document[self.written..]).await {
            Ok(length) if length > 0 && self.written + length < self.document.len() => self.written += length,
            Ok(_) | Err(_) => self.pipe = None,
        }
    }
}

/// What it writes. Neither output can keep the other waiting.
struct Streams {
    output: OutputReader,
    kept: HeadTail,
    errors: OutputReader,
    kept_errors: HeadTail,
    deltas: Deltas,
}

impl Streams {
    fn new(output: OutputReader, errors: OutputReader, output_bytes: usize) -> Self {
        let (kept, kept_errors) = (HeadTail::new(output_bytes), HeadTail::new(ERRORS_BYTES));
        Self { output, kept, errors, kept_errors, deltas: Deltas::default() }
    }

    fn are_at_end(&self) -> bool {
        self.output.at_end() && self.errors.at_end()
    }

    /// Reads a piece of one of them.
    async fn read(&mut self, cx: &ToolContext) {
        let Self { output, kept, errors, kept_errors, deltas } = self;
        tokio::select! {
            piece = output.read(), if !output.at_end() => {
                piece.into_iter().for_each(|piece| kept.push(piece));
            }
            piece = errors.read(), if !errors.at_end() => if let Some(piece) = piece {
                kept_errors.push(piece);
                deltas.push(piece, |text| cx.emit(text));
            },
        }
    }

    /// What is there after the end of all processes, without waiting for others that hold the pipes.
    fn finish(self, cx: &ToolContext) -> (Kept, String) {
        let Self { output, mut kept, errors, mut kept_errors, mut deltas } = self;
        output.drain(|piece| kept.push(piece));
        errors.drain(|piece| {
            kept_errors.push(piece);
            deltas.push(piece, |text| cx.emit(text));
        });
        deltas.finish(|text| cx.emit(text));
        (printed::kept(kept), kept_errors.into_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_process::Limit;

    /// SB-8: the signal for CPU time names the limit; another says no more than that it came.
    #[test]
    fn the_signal_for_cpu_time_names_the_limit() {
        let exit = |end| exit(Ran { end, rest: None, used: None });
        assert_eq!(exit(Some(End::Killed(24))), Some(Exit::Limit("CPU time")));
        assert_eq!(exit(Some(End::Limit(Limit::Memory))), Some(Exit::Limit("memory")));
        assert_eq!(exit(Some(End::Killed(9))), Some(Exit::Signal(9)));
        assert_eq!(exit(Some(End::Exited(3))), Some(Exit::Code(3)));
        assert_eq!(exit(None), None);
    }
}
