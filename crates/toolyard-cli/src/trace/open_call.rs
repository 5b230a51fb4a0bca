//! A call that has not ended, as slices on its lane.

use crate::display::clip;
use serde_json::{Value, json};
use toolyard::{Event, EventKind};

/// Shorter waits are work of the engine itself: they are left blank.
const WAIT_MIN_US: u64 = 100;

/// The longest error message that is shown.
const MESSAGE_CHARS: usize = 200;

/// Where a slice lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lane {
    /// The agent's number.
    pub(super) pid: u64,
    /// The lane's: no other lane and no agent has it, because some viewers know a thread by this number alone.
    pub(super) tid: u64,
}

/// An open call.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) lane: Lane,
    /// A number that no other call has, for the flow from its wait to its first attempt.
    flow: u64,
    received: u64,
    /// What it does until it can be queued or asked about.
    early: &'static str,
    /// Up to when its time is told.
    told: u64,
    /// What it is in: a question, an attempt, a backoff.
    current: Option<(String, u64)>,
    has_queued: bool,
    pub(super) is_running: bool,
    tool: String,
    slices: Vec<Value>,
}

impl OpenCall {
    pub(super) fn new(lane: Lane, flow: u64, event: &Event) -> Self {
        let at = event.mono_us;
        Self {
            lane,
            flow,
            received: at,
            early: if event.run.unwrap_or_default() > 0 { "earlier calls" } else { "checks" },
            told: at,
            current: None,
            has_queued: false,
            is_running: false,
            tool: event.kind.tool_name().map_or("call", |name| name).to_owned(),
            slices: Vec::new(),
        }
    }

    /// Takes an event that does not end it.
    pub(super) fn read(&mut self, event: &Event) {
        let at = event.mono_us;
        match &event.kind {
            EventKind::ConfirmationRequested(_) => {
                self.wait(self.early, self.told, at);
                self.current = Some(("question".to_owned(), at));
            }
            EventKind::ConfirmationResolved(_) => self.close_current(at, json!({})),
            EventKind::Called { queue_ms, class, .. } => {
                self.is_running = true;
                let ready = at.saturating_sub(queue_ms * 1000).max(self.told);
                self.wait(self.early, self.told, ready);
                if self.wait("queued", ready, at) {
                    self.has_queued = true;
                    self.slices.push(self.flow_event("s", ready, json!(class)));
                }
            }
            EventKind::Attempt => {
                self.close_current(at, json!({}));
                if std::mem::take(&mut self.has_queued) {
                    self.slices.push(self.flow_event("f", at, json!(null)));
                }
                let number = event.attempt.unwrap_or(1);
                self.current = Some((format!("attempt {number}"), at));
            }
            EventKind::Retry { code, .. } => {
                self.close_current(at, json!({"code": code}));
                self.current = Some(("backoff".to_owned(), at));
            }
            _ => {}
        }
    }

    /// All its slices, once it has ended; without an event, it was still open at the end of the trace.
    pub(super) fn end(mut self, at: u64, event: Option<&Event>) -> Vec<Value> {
        self.close_current(at, json!({}));
        if !self.is_running {
            self.wait("waited", self.told, at);
        }
        let mut args = json!({"unfinished": true});
        if let Some(event) = event {
            args = json!({"call_id": event.call_id, "turn": event.turn, "run": event.run, "end": event.kind.name()});
            if let Some(failure) = event.kind.failure() {
                args["code"] = json!(failure.code);
                args["message"] = clip(&failure.message, MESSAGE_CHARS).into();
            }
        }
        let whole = self.slice("call", &self.tool, self.received, at, args);
        self.slices.insert(0, whole);
        self.slices
    }

    /// Adds a wait, unless it is too short to be one.
    fn wait(&mut self, name: &str, from: u64, to: u64) -> bool {
        self.told = to.max(self.told);
        let is_wait = to.saturating_sub(from) >= WAIT_MIN_US;
        if is_wait {
            self.slices.push(self.slice("wait", name, from, to, json!({})));
        }
        is_wait
    }

    fn close_current(&mut self, at: u64, args: Value) {
        if let Some((name, from)) = self.current.take() {
            let category = if name.starts_with("attempt") { "attempt" } else { "wait" };
            self.slices.push(self.slice(category, &name, from, at, args));
            self.told = at;
        }
    }

    fn slice(&self, category: &str, name: &str, from: u64, to: u64, args: Value) -> Value {
        let Lane { pid, tid } = self.lane;
        let took = to.saturating_sub(from);
        json!({"ph": "X", "cat": category, "name": name, "ts": from, "dur": took, "pid": pid, "tid": tid, "args": args})
    }

    fn flow_event(&self, phase: &str, at: u64, class: Value) -> Value {
        let Lane { pid, tid } = self.lane;
        let mut flow = json!({"ph": phase, "cat": "flow", "name": "permit", "id": self.flow, "ts": at, "pid": pid, "tid": tid});
        match phase {
            "f" => flow["bp"] = "e".into(),
            _ => flow["args"] = json!({"pool": class}),
        }
        flow
    }
}
