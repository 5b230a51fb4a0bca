//! A log of what handlers did, in virtual time.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::time::Instant;

/// Records when handlers run. Clones share one log.
#[derive(Debug, Clone)]
pub struct Log {
    started_at: Instant,
    state: Arc<Mutex<LogState>>,
}

#[derive(Debug, Default)]
struct LogState {
    spans: Vec<Span>,
    running: usize,
    most: usize,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Span {
    call: String,
    from: u128,
    to: Option<u128>,
}

impl Log {
    /// An empty log; time counts from now.
    pub fn new() -> Self {
        Self { started_at: Instant::now(), state: Arc::default() }
    }

    /// Milliseconds since the log was created.
    pub fn now(&self) -> u128 {
        self.started_at.elapsed().as_millis()
    }

    /// Records that a handler has started; dropping the guard records its end.
    pub fn start(&self, call: &str) -> Running {
        let mut state = self.state.lock();
        state.spans.push(Span { call: call.to_owned(), from: self.now(), to: None });
        state.running += 1;
        state.most = state.most.max(state.running);
        Running { log: self.clone(), at: state.spans.len() - 1 }
    }

    /// The calls in the order in which their handlers started.
    pub fn started(&self) -> Vec<String> {
        self.state.lock().spans.iter().map(|span| span.call.clone()).collect()
    }

    /// One line per handler, in order of start: `call from..to`, in milliseconds.
    pub fn spans(&self) -> Vec<String> {
        let line = |span: &Span| match span.to {
            Some(to) => format!("{} {}..{to}", span.call, span.from),
            None => format!("{} {}..", span.call, span.from),
        };
        self.state.lock().spans.iter().map(line).collect()
    }

    /// Records a note from a handler.
    pub fn note(&self, line: impl Into<String>) {
        self.state.lock().notes.push(line.into());
    }

    /// The notes of the handlers, in order.
    pub fn notes(&self) -> Vec<String> {
        self.state.lock().notes.clone()
    }

    /// The largest number of handlers that ran at once.
    pub fn most_at_once(&self) -> usize {
        self.state.lock().most
    }

    /// The number of handlers running now.
    pub fn running(&self) -> usize {
        self.state.lock().running
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

/// The guard of a running handler; dropping it records the end.
#[derive(Debug)]
pub struct Running {
    log: Log,
    at: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = self.log.now();
        let mut state = self.log.state.lock();
        state.spans[self.at].to = Some(now);
        state.running -= 1;
    }
}
