//! What a guest prints: kept at both ends, heard as it comes, and bounded.

use crate::run::Listener;
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::AsyncWrite;
use toolyard_process::{Deltas, HeadTail};
use wasmtime::Error;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};

/// The most bytes that a guest may print on both outputs together. What is kept of them is set by the run; this keeps one
/// that does nothing but print from doing so until its time is up.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// How much may be written at a time.
const PERMIT_BYTES: usize = 64 << 10;

/// Both outputs of one call.
pub(crate) struct Printed {
    pub(crate) output: HeadTail,
    pub(crate) errors: HeadTail,
    deltas: Deltas,
    listener: Option<Listener>,
    left: u64,
    /// Set once a write was refused.
    pub(crate) is_over: bool,
}

/// Which of the two.
#[derive(Debug, Clone, Copy)]
enum Which {
    Output,
    Errors,
}

/// One of the two outputs, for the guest.
#[derive(Clone)]
pub(crate) struct Stream {
    printed: Arc<Mutex<Printed>>,
    which: Which,
}

impl Printed {
    /// Nothing yet.
    pub(crate) fn new(output_bytes: usize, errors_bytes: usize, listener: Option<Listener>) -> Self {
        let (output, errors) = (HeadTail::new(output_bytes), HeadTail::new(errors_bytes));
        Self { output, errors, deltas: Deltas::default(), listener, left: OUTPUT_BYTES_MAX, is_over: false }
    }

    /// Standard output and standard error.
    pub(crate) fn streams(printed: &Arc<Mutex<Self>>) -> [Stream; 2] {
        [Which::Output, Which::Errors].map(|which| Stream { printed: printed.clone(), which })
    }

    /// The ends of both outputs. What was heard of the second ends with a last line, if that has no end.
    pub(crate) fn finish(&mut self) -> (HeadTail, HeadTail) {
        if let Some(listener) = &mut self.listener {
            self.deltas.finish(listener);
        }
        let taken = |kept: &mut HeadTail| std::mem::replace(kept, HeadTail::new(0));
        (taken(&mut self.output), taken(&mut self.errors))
    }

    fn push(&mut self, which: Which, bytes: &[u8]) {
        self.left = self.left.saturating_sub(bytes.len() as u64);
        match which {
            Which::Output => self.output.push(bytes),
            Which::Errors => {
                self.errors.push(bytes);
                if let Some(listener) = &mut self.listener {
                    self.deltas.push(bytes, listener);
                }
            }
        }
    }

    /// How much may be written. The first write too many fails as it does when nobody reads a pipe; a guest that tries
    /// again does not care, and is ended.
    fn permit(&mut self) -> StreamResult<usize> {
        match usize::try_from(self.left).unwrap_or(usize::MAX).min(PERMIT_BYTES) {
            0 if self.is_over => Err(StreamError::Trap(Error::msg("it prints without end"))),
            0 => {
                self.is_over = true;
                Err(StreamError::Closed)
            }
            permit => Ok(permit),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stream {
    async fn ready(&mut self) {}
}

impl OutputStream for Stream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.printed.lock().push(self.which, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.printed.lock().permit()
    }
}

impl IsTerminal for Stream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut printed = self.printed.lock();
        Poll::Ready(match printed.permit() {
            Ok(permit) => {
                let bytes = &bytes[..bytes.len().min(permit)];
                printed.push(self.which, bytes);
                Ok(bytes.len())
            }
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
