//! Validation that takes long, on threads of its own.
//!
//! ```text
//!   gate: validated briefly ─► fits, or does not: the usual case
//!              └ exhausted ─► Lengthy: a few threads ─► fits: the call passes the gate again, with the answer known
//!                              │ a short queue          does not, or takes too long: `invalid_input`
//!                              └ full: `overloaded`
//! ```
//!
//! How long a validation takes depends on a schema that somebody else wrote and on arguments that a model wrote. The
//! task that leads a batch through the gate only waits for it, so it delays no other batch; and these threads are not
//! those of blocking handlers, so no handler waits for one. A validation that nobody waits for any more ends within a
//! step.

use super::{Gate, arguments};
use crate::{
    registry::{Exhausted, ToolEntry, Validated},
    unwind::caught,
};
use serde_json::Value;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};
use toolyard_core::{CallError, ErrorKind, wording};

/// How many validations run at once in an engine.
const THREADS_MAX: usize = 2;

/// How many wait for a thread.
const WAITING_MAX: usize = 64;

/// The stack of a thread, in bytes: more than a validation may use.
const STACK: usize = 2 << 20;

/// Arguments of which is not known whether they fit.
pub(crate) struct Unvalidated {
    pub(super) entry: Arc<ToolEntry>,
    pub(super) args: Arc<Value>,
}

impl Unvalidated {
    /// The tool.
    pub(crate) fn entry(&self) -> &ToolEntry {
        &self.entry
    }

    /// The arguments.
    pub(crate) fn args(&self) -> &Value {
        &self.args
    }
}

type Work = Box<dyn FnOnce() + Send>;

/// Threads that exist while there is work for them.
#[derive(Default)]
pub(crate) struct Lengthy {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
}

impl Lengthy {
    /// Does the work on a thread, at once or later. Returns `false` if too much waits already, or there is no thread.
    fn start(&self, work: Work) -> bool {
        let mut state = locked(&self.state);
        if state.threads == THREADS_MAX {
            let has_room = state.waiting.len() < WAITING_MAX;
            if has_room {
                state.waiting.push_back(work);
            }
            return has_room;
        }
        let builder = thread::Builder::new().name("toolyard-validation".to_owned()).stack_size(STACK);
        let shared = self.state.clone();
        let is_started = builder.spawn(move || work_on(&shared, work)).is_ok();
        state.threads += usize::from(is_started);
        is_started
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does this work, and what waits.
fn work_on(state: &Mutex<State>, first: Work) {
    let mut next = Some(first);
    while let Some(work) = next {
        if let Err(panic) = caught(work) {
            panic.log_drop(); // of what the work has let go of
        }
        let mut state = locked(state);
        next = state.waiting.pop_front();
        state.threads -= usize::from(next.is_none());
    }
}

/// Ends a validation that nobody waits for any more.
struct GiveUp(Arc<AtomicBool>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Gate {
    /// By when the validations of a batch that begin now must have ended.
    pub(crate) fn validations_end(&self, now: Instant) -> Option<Instant> {
        now.checked_add(self.limits.validation_timeout)
    }

    /// Validates arguments however long it takes, up to `until`.
    ///
    /// # Errors
    /// `invalid_input` if they do not fit, or if that is not known in time; `overloaded` if too many others wait.
    ///
    /// # Cancel safety
    /// Dropping the future ends the validation.
    pub(crate) async fn validate_at_length(
        &self,
        unvalidated: Unvalidated,
        until: Option<Instant>,
    ) -> Result<(), CallError> {
        let Unvalidated { entry, args } = unvalidated;
        let validated = entry.clone();
        let validate = move |given_up| validated.schema().validate_at_length(&args, Some(given_up));
        self.at_length(&entry, until, validate).await
    }

    async fn at_length(
        &self,
        entry: &ToolEntry,
        until: Option<Instant>,
        validate: impl FnOnce(Arc<AtomicBool>) -> Validated + Send + 'static,
    ) -> Result<(), CallError> {
        let give_up = GiveUp(Arc::new(AtomicBool::new(false)));
        let (answer, answered) = oneshot::channel();
        let given_up = give_up.0.clone();
        let work = move || {
            let _ = answer.send(caught(|| validate(given_up))); // the call may be gone
        };
        if !self.lengthy.start(Box::new(work)) {
            let message = "too many calls wait for the validation of their arguments";
            return Err(CallError::new(ErrorKind::Overloaded, message));
        }
        let validated = match until {
            None => answered.await,
            Some(until) => {
                let answered = {
                    // A caller outside of tokio has no timer of its own.
                    let _runtime = self.tasks.enter();
                    timeout_at(until, answered)
                };
                answered.await.unwrap_or(Ok(Ok(Err(Exhausted))))
            }
        };
        match validated {
            Ok(Ok(Ok(Ok(())))) => return Ok(()),
            Ok(Ok(Ok(Err(misfits)))) => return Err(arguments::misfit(entry, misfits)),
            Ok(Ok(Err(Exhausted))) => return Err(self.took_too_long(entry)),
            Ok(Err(panic)) => {
                let what = "the validation of arguments panicked";
                panic.log(what, Some(entry.name()), self.redactor.as_ref());
            }
            Err(_lost) => tracing::error!(tool = entry.name(), "the thread of a validation was lost"),
        }
        Err(CallError::new(ErrorKind::Internal, "the validation of the arguments failed").not_started())
    }

    fn took_too_long(&self, entry: &ToolEntry) -> CallError {
        let limit = wording::Span(self.limits.validation_timeout);
        arguments::invalid(format!(
            "Whether the arguments of '{}' fit its schema was not known within {limit}",
            entry.name()
        ))
        .with_advice("Send shorter or simpler arguments, or use another tool.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Redactor, guard::Guards, tool_fn, unwind::logged};
    use std::sync::mpsc;
    use toolyard_core::ToolSpec;

    /// CC-4: two at a time, sixty-four in line, and no thread when there is nothing to do.
    #[test]
    fn validations_are_bounded() {
        let lengthy = Lengthy::default();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let (done, is_done) = mpsc::channel();
        let work = || -> Work {
            let (released, done) = (released.clone(), done.clone());
            Box::new(move || {
                let waited = locked_receiver(&released).recv();
                done.send(()).unwrap();
                waited.unwrap();
            })
        };
        fn locked_receiver(it: &Mutex<mpsc::Receiver<()>>) -> MutexGuard<'_, mpsc::Receiver<()>> {
            it.lock().unwrap_or_else(PoisonError::into_inner)
        }
        let taken = (0..100).filter(|_| lengthy.start(work())).count();
        assert_eq!(taken, THREADS_MAX + WAITING_MAX);
        (0..taken).for_each(|_| release.send(()).unwrap());
        (0..taken).for_each(|_| is_done.recv().unwrap());
        while locked(&lengthy.state).threads > 0 {
            thread::yield_now();
        }
        assert!(lengthy.start(Box::new(|| panic!("of its own"))));
        while locked(&lengthy.state).threads > 0 {
            thread::yield_now();
        }
    }

    /// V5, PO-7: a validation that panics ends its call as `internal`, and is logged with its message, whose secrets are
    /// replaced.
    #[test]
    fn a_validation_that_panics_is_logged() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let spec = ToolSpec::read("t");
        let factory = tool_fn(spec.clone(), |(): (), _| async { Ok(()) });
        let entry = ToolEntry::new(Arc::new(factory), spec, &Guards::default()).unwrap();
        let redactor = Redactor::new().with_secret("swordfish-1984").unwrap();
        let (done, lines) = logged(|| {
            runtime.block_on(async {
                let engine = Engine::builder().redact(redactor).build().await.unwrap();
                let panics = |_| panic!("lost swordfish-1984");
                engine.session("s").core.engine.gate.at_length(&entry, None, panics).await
            })
        });
        assert_eq!(done.unwrap_err().kind, ErrorKind::Internal);
        let line = "ERROR message=the validation of arguments panicked tool=\"t\" panic=\"lost [redacted]\" location=";
        assert!(lines.contains(line), "{lines}");
    }
}
