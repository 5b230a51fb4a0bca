//! What a session goes on from that was open in an earlier life of the engine (JR-10).

use crate::{
    call::{refusals::interrupted_error, session::SessionCore},
    keys::{Ended, Fingerprint, Name, Retain, RetainedResult},
    record::{Past, PastKey, PastKeyEnd, PastKeyState},
};
use std::sync::Arc;
use toolyard_core::{CallError, EventKind, Sandbox, ToolOutput};

impl SessionCore {
    /// Goes on from what its name has done: its numbers, and the keys under which something has run. Runs no code of the
    /// embedder.
    pub(crate) fn go_on_from(&self, past: &Past) {
        self.numbers().go_on_from(past);
        if let Some(records) = &self.records
            && past.is_known
        {
            records.recovers(past);
        }
        past.keys.iter().for_each(|key| self.restore_key(key));
    }

    /// The event that it goes on from earlier lives of the engine, if it does.
    pub(crate) fn recovered(&self) -> Option<EventKind> {
        let (interrupted, open) = self.records.as_ref()?.recovered()?;
        Some(EventKind::SessionRecovered { epoch: self.engine.epoch, interrupted, open })
    }

    /// Forgets a key whose call is to run again.
    pub(crate) fn release_key(&self, tool: &Arc<str>, key: &Arc<str>) {
        self.keys().release(&Name::new(tool.clone(), key.clone()));
    }

    /// Makes one such key known.
    pub(crate) fn restore_key(&self, key: &PastKey) {
        let name = Name::new(key.tool.clone(), key.key.clone());
        let now;
        let (version, is_repeatable, end) = match &key.state {
            PastKeyState::Started { version, is_repeatable, end } => (version.as_str(), *is_repeatable, end),
            PastKeyState::Unsure if self.keys().knows(&name) => return, // what another call has done under it is known
            PastKeyState::Unsure => {
                // Its tool is taken for what it is now.
                now = self.engine.registry.get(&key.tool);
                let spec = now.as_deref().map(|entry| entry.spec());
                let (version, is_repeatable) =
                    spec.map_or(("", false), |spec| (&*spec.version, spec.is_repeatable()));
                (version, is_repeatable, &PastKeyEnd::Open)
            }
        };
        let fingerprint = Fingerprint::of(&key.arguments, version);
        let is_lasting = !is_repeatable;
        let now = self.engine.clock.now();
        let kept = match end {
            PastKeyEnd::Expired => None,
            // It runs again.
            PastKeyEnd::Open if is_repeatable => return,
            PastKeyEnd::Open => {
                let error = interrupted_error(1);
                Some(kept(&Err(Box::new(error)), 1, Sandbox::Host))
            }
            PastKeyEnd::Ended { status, attempts, sandbox, no_side_effect } => {
                let ended = Ended {
                    error: status.as_ref().err().map(|error| error.kind),
                    started: *attempts > 0,
                    repeatable: is_repeatable,
                    no_side_effect: *no_side_effect,
                };
                if ended.retain() == Retain::Forget {
                    return;
                }
                Some(kept(&status.clone().map_err(Box::new), *attempts, *sandbox))
            }
        };
        self.keys().restore(name, fingerprint, is_lasting, kept, now);
    }
}

/// A result to be kept, and its size in bytes.
fn kept(
    status: &Result<ToolOutput, Box<CallError>>,
    attempts: u32,
    sandbox: Sandbox,
) -> (RetainedResult, usize) {
    let bytes = match status {
        Ok(output) => output.footprint(),
        Err(error) => error.footprint(),
    };
    (RetainedResult::of(status, attempts, sandbox), bytes)
}
