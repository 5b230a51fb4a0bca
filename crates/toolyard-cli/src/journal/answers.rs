//! What a journal has of the calls of agents, for those that are started again under their names (CL-8).
//!
//! ```text
//!   started, and ended ─────────────────────────────► its result
//!   started, and cut off, and may be repeated ──────► runs
//!   started, and cut off: an agent that has a name ─► runs: that agent's own calls are answered so
//!   started, and cut off, otherwise ────────────────► what is recorded, or `interrupted`
//! ```

use crate::error::chain;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
};
use toolyard::{
    AgentPath, Call, CallError, CallId, Dedupe, Effect, Engine, ErrorKind, Outcome, Reason, Routing,
};
use toolyard_agents::Recorded;
use toolyard_journal::{AttemptRow, CallRow, CallState, JournalError, Reader, StartedCall};

/// The tool by which agents start others.
const AGENT: &str = "Agent";

/// The calls that a session had before this life of the engine.
pub(crate) struct Answers {
    reader: Mutex<Reader>,
    /// Those that were not given yet, by agent and id, the first first.
    calls: Mutex<HashMap<(AgentPath, CallId), VecDeque<StartedCall>>>,
    /// The engine, once it is built.
    engine: Arc<OnceLock<Engine>>,
}

impl Answers {
    /// Looks for those of this session, whose name nobody uses yet in this life of the engine.
    pub(crate) fn of(
        journal: &Path,
        session: &str,
        engine: Arc<OnceLock<Engine>>,
    ) -> Result<Self, JournalError> {
        let reader = Reader::open(journal)?;
        let mut calls: HashMap<_, VecDeque<_>> = HashMap::new();
        for call in reader.started_calls(session)? {
            calls.entry((call.agent.clone(), call.call_id.clone())).or_default().push_back(call);
        }
        Ok(Self { reader: reader.into(), calls: calls.into(), engine })
    }

    /// What is recorded of the first call equal to this one, which is then given.
    fn take(&self, agent: &AgentPath, call: &Call) -> Result<Option<CallRow>, JournalError> {
        let mut all = self.calls.lock();
        let Some(same) = all.get_mut(&(agent.clone(), call.id.clone())) else { return Ok(None) };
        let sent = call.arguments.to_value();
        for at in 0..same.len() {
            let Some(row) = self.reader.lock().started_call(&same[at])? else { continue };
            if row.call.name == call.name && row.call.arguments.to_value() == sent {
                same.remove(at);
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The same; if that one was cut off and may run again, and an equal one follows, it has, and that one is given.
    fn last_of(&self, agent: &AgentPath, call: &Call) -> Result<Option<CallRow>, JournalError> {
        let Some(mut row) = self.take(agent, call)? else { return Ok(None) };
        while self.runs_again(call, &row) {
            let Some(next) = self.take(agent, call)? else { break };
            row = next;
        }
        Ok(Some(row))
    }

    /// Whether a call was cut off, and may run again.
    fn runs_again(&self, call: &Call, row: &CallRow) -> bool {
        let (attempts, end) = match &row.state {
            CallState::NotStarted => (&Vec::new(), None),
            CallState::Attempted { attempts } => (attempts, None),
            CallState::Ended(end) => (&end.attempts, Some(end)),
        };
        let code = end.map(|end| end.status.as_ref().err().map(|error| error.kind));
        let is_cut_off = matches!(
            code,
            None | Some(Some(ErrorKind::Cancelled | ErrorKind::Interrupted | ErrorKind::ShuttingDown))
        );
        is_cut_off && self.may_repeat(call, row, attempts.last())
    }

    /// Whether a call that was cut off may run again (JR-5).
    fn may_repeat(&self, call: &Call, row: &CallRow, last: Option<&AttemptRow>) -> bool {
        if &*call.name == AGENT && call.arguments.to_value()["name"].is_string() {
            return true;
        }
        let entry = self.engine.get().and_then(|engine| engine.registry().get(&call.name));
        let Some(entry) = entry else { return false };
        let is_harmless = entry.spec().is_repeatable() && !row.has_dispatched;
        match last {
            Some(last) => {
                let is_same = entry.spec().version == last.version;
                is_harmless && is_same && last.is_repeatable && !last.is_recursive
            }
            // Its attempt is missing (JR-7).
            None => is_harmless && !entry.spec().recursive,
        }
    }
}

impl Recorded for Answers {
    fn answer(&self, agent: &AgentPath, call: &Call) -> Option<Outcome> {
        let row = match self.last_of(agent, call) {
            Ok(row) => row?,
            Err(error) => {
                let what = format!("what is recorded of this call cannot be read: {}", chain(&error));
                let error = CallError::new(ErrorKind::Internal, what).with_reason(Reason::Journal);
                return Some(Outcome::new(call, Routing::ShortCircuit, Err(unknown(error, 0))));
            }
        };
        if self.runs_again(call, &row) {
            return None;
        }
        let (attempts, end) = match &row.state {
            CallState::NotStarted => (&Vec::new(), None),
            CallState::Attempted { attempts } => (attempts, None),
            CallState::Ended(end) => (&end.attempts, Some(end)),
        };
        let number = attempts.last().map_or(1, |last| last.attempt);
        let mut outcome = match end {
            Some(end) => {
                let mut outcome = Outcome::new(call, end.routing, end.status.clone());
                (outcome.attempts, outcome.sandbox) = (end.started, end.sandbox);
                outcome
            }
            // Of an agent that this one had started: it has ended with the call that had started it.
            None => {
                let what =
                    "the engine's process ended while this call was running: nobody knows what it has done";
                let error = unknown(CallError::new(ErrorKind::Interrupted, what), number);
                let mut outcome = Outcome::new(call, Routing::Serial, Err(error));
                outcome.attempts = number;
                outcome
            }
        };
        outcome.dedupe = Dedupe::Replayed;
        Some(outcome)
    }
}

/// An error after which nobody knows what the call has done.
fn unknown(mut error: CallError, attempts: u32) -> CallError {
    error.set_effect(Effect::Unknown);
    error.after_attempts(attempts)
}

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").finish_non_exhaustive()
    }
}
