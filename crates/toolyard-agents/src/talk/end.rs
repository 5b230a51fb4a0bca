//! How a conversation comes to its end: the agent is told to end, or has exited.

use super::{Talk, held::Waits};
use crate::protocol::{Ask, Tell, ask};
use std::time::Duration;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use toolyard::{CallError, ErrorKind, Outcome, Routing};

/// How long the last lines of an agent that has exited are read.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Why an agent makes no more calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// It has said so.
    Bye,
    /// It was told to end.
    Stopped,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Talk<R, W> {
    /// Tells the agent to end, and cancels what it has asked for.
    pub(super) fn stop(&mut self, grace: Duration) {
        self.out.reply(&Tell::Shutdown { grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX) });
        self.closed = Some(Closed::Stopped);
        let waiting = self.apart.stop().into_iter().chain(self.turns.stop());
        for call in waiting.collect::<Vec<_>>() {
            self.give_up(&call, cancelled_early());
        }
    }

    /// The agent has exited: its calls are cancelled, and what it wrote last is still looked at for its result.
    pub(super) async fn exited(&mut self) {
        let mut waiting = self.apart.leave();
        waiting.extend(self.turns.leave());
        for waits in self.held.drain() {
            match waits {
                Waits::Call(call) => waiting.extend(call.ok().map(|asked| asked.call)),
                Waits::Line(asked) => {
                    if let Ok(Ask::Bye(result)) = *asked {
                        self.result = result;
                    }
                }
            }
        }
        for call in waiting {
            let outcome = Outcome::new(&call, Routing::ShortCircuit, Err(cancelled_early().not_started()));
            self.observer.denied(&outcome);
        }
        let last_lines = async {
            while let Ok(Some(line)) = self.lines.next().await {
                if let Ok(Ask::Bye(result)) = ask(line) {
                    self.result = result;
                }
            }
        };
        let _ = timeout(LAST_LINES, last_lines).await; // somebody else may hold its output open
    }
}

impl Closed {
    /// Why a call ends that comes too late.
    pub(super) fn error(self) -> CallError {
        CallError::new(
            ErrorKind::Cancelled,
            match self {
                Self::Bye => "the agent has said bye",
                Self::Stopped => "the agent was told to end",
            },
        )
    }
}

/// Why a call ends that was cancelled before it was begun.
pub(super) fn cancelled_early() -> CallError {
    CallError::new(ErrorKind::Cancelled, "the call was cancelled before it started")
}
