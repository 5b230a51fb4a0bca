//! A running command until its answer: reads its output, and stops it if necessary.

use super::{
    answer::{Finished, Stopped},
    arguments::Arguments,
    deltas::Deltas,
    ends::Ends,
    launch::Launched,
    report::Report,
};
use std::{io, pin::pin, time::Duration};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolyard_core::{ToolContext, ToolError, ToolOutput};

/// How many bytes are read at a time: the capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// The most that is read after all processes have ended: the largest capacity of a pipe. A process that escaped and
/// still writes cannot hold up the call.
const DRAIN_BYTES_MAX: usize = 1 << 20;

/// A running command.
pub(super) struct Running {
    output: Output,
    /// Ends all its processes, in a separate task, so that this continues when the call is dropped.
    watch: JoinHandle<Report>,
    /// Tells `watch` to stop. It is dropped with the call, so that a dropped call ends its processes (SC-6).
    stop: DropGuard,
    started_at: Instant,
}

impl Running {
    pub(super) fn new(launched: Launched, stop: CancellationToken, output_bytes: usize) -> Self {
        Self {
            output: Output::new(launched.output, output_bytes),
            watch: tokio::spawn(launched.watch),
            stop: stop.drop_guard(),
            started_at: Instant::now(),
        }
    }

    /// Reads the output until all processes have ended, and returns the answer.
    ///
    /// A stop takes precedence over output, so that a command that floods is stopped like any other.
    pub(super) async fn finish(
        mut self,
        args: &Arguments<'_>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let mut stopped = None;
        let mut stop = Some(self.stop);
        let limit = args.limit().unwrap_or(Duration::MAX);
        let mut timeout = pin!(sleep(limit));
        let mut piece = vec![0; READ_BYTES];
        let report = loop {
            tokio::select! {
                biased;
                report = &mut self.watch => break report,
                () = cx.cancelled(), if stop.is_some() => (stopped, stop) = (Some(Stopped::Cancelled), None),
                () = &mut timeout, if stop.is_some() => (stopped, stop) = (Some(Stopped::Limit(limit)), None),
                () = self.output.read(&mut piece, cx), if !self.output.at_end => {}
            }
        };
        let report = report.map_err(|lost| ToolError::from(io::Error::other(lost)))?;
        self.output.drain(&mut piece, cx);
        let elapsed = self.started_at.elapsed();
        Finished { command: args.command, report, stopped, elapsed, ends: self.output.ends }.answer()
    }
}

/// The output of the command.
struct Output {
    pipe: pipe::Receiver,
    at_end: bool,
    ends: Ends,
    deltas: Deltas,
}

impl Output {
    fn new(pipe: pipe::Receiver, bytes_max: usize) -> Self {
        Self { pipe, at_end: false, ends: Ends::new(bytes_max), deltas: Deltas::default() }
    }

    async fn read(&mut self, piece: &mut [u8], cx: &ToolContext) {
        match self.pipe.read(piece).await {
            Ok(0) | Err(_) => self.at_end = true,
            Ok(length) => self.push(&piece[..length], cx),
        }
    }

    /// Reads the rest of the pipe, without waiting.
    fn drain(&mut self, piece: &mut [u8], cx: &ToolContext) {
        let most = self.ends.total() + DRAIN_BYTES_MAX as u64;
        while !self.at_end && self.ends.total() < most {
            match self.pipe.try_read(piece) {
                Ok(0) | Err(_) => self.at_end = true,
                Ok(length) => self.push(&piece[..length], cx),
            }
        }
        self.deltas.finish(|text| cx.emit(text));
    }

    fn push(&mut self, bytes: &[u8], cx: &ToolContext) {
        self.ends.push(bytes);
        self.deltas.push(bytes, |text| cx.emit(text));
    }
}
