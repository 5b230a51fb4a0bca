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

use super::arguments;
use crate::{
    agent::Services,
    tasks::{OnDrop, caught},
    tool::{Exhausted, ToolEntry, Validated},
};
use serde_json::Value;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::{sync::oneshot, time::Instant};
use toolyard_core::{CallError, ErrorKind, wording};

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

/// By when the validations of a batch that begin now must have ended.
pub(crate) fn validations_end(engine: &Services, now: Instant) -> Option<Instant> {
    now.checked_add(engine.limits.validation_timeout)
}

/// Validates arguments however long it takes, up to `until`.
///
/// # Errors
/// `invalid_input` if they do not fit, or if that is not known in time; `overloaded` if too many others wait.
///
/// # Cancel safety
/// Dropping the future ends the validation.
pub(crate) async fn validate_at_length(
    engine: &Services,
    unvalidated: Unvalidated,
    until: Option<Instant>,
) -> Result<(), CallError> {
    let Unvalidated { entry, args } = unvalidated;
    let validated = entry.clone();
    let validate = move |given_up| validated.schema().validate_at_length(&args, Some(given_up));
    at_length(engine, &entry, until, validate).await
}

async fn at_length(
    engine: &Services,
    entry: &ToolEntry,
    until: Option<Instant>,
    validate: impl FnOnce(Arc<AtomicBool>) -> Validated + Send + 'static,
) -> Result<(), CallError> {
    let given_up = Arc::new(AtomicBool::new(false));
    // Ends the validation when nobody waits for it any more.
    let _give_up = OnDrop::new({
        let given_up = given_up.clone();
        move || given_up.store(true, Ordering::Relaxed)
    });
    let (answer, answered) = oneshot::channel();
    let work = move || {
        let _ = answer.send(caught(|| validate(given_up))); // the call may be gone
    };
    if !engine.lengthy.start(Box::new(work)) {
        let message = "too many calls wait for the validation of their arguments";
        return Err(CallError::new(ErrorKind::Overloaded, message));
    }
    let validated = match until {
        None => answered.await,
        Some(until) => engine.tasks.timeout_at(until, answered).await.unwrap_or(Ok(Ok(Err(Exhausted)))),
    };
    match validated {
        Ok(Ok(Ok(Ok(())))) => return Ok(()),
        Ok(Ok(Ok(Err(misfits)))) => return Err(arguments::misfit(entry, misfits)),
        Ok(Ok(Err(Exhausted))) => return Err(took_too_long(engine, entry)),
        Ok(Err(panic)) => {
            let what = "the validation of arguments panicked";
            panic.log(what, Some(entry.name()), engine.redactor.as_ref());
        }
        Err(_lost) => tracing::error!(tool = entry.name(), "the thread of a validation was lost"),
    }
    Err(CallError::new(ErrorKind::Internal, "the validation of the arguments failed").not_started())
}

fn took_too_long(engine: &Services, entry: &ToolEntry) -> CallError {
    let limit = wording::Span(engine.limits.validation_timeout);
    arguments::invalid(format!(
        "Whether the arguments of '{}' fit its schema was not known within {limit}",
        entry.name()
    ))
    .with_advice("Send shorter or simpler arguments, or use another tool.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Redactor, ToolSpec,
        engine::Engine,
        tasks::logged,
        tool::{Guards, tool_fn},
    };

    /// V5, PO-7: a validation that panics ends its call as `internal`, and is logged with its message, whose secrets are
    /// replaced.
    #[test]
    fn a_validation_that_panics_is_logged() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let spec = ToolSpec::read("t");
        let factory = tool_fn(spec.clone(), |(): (), _| async { Ok(()) });
        let entry = ToolEntry::new(Arc::new(factory), spec, &Guards::default(), &[]).unwrap();
        let redactor = Redactor::new().with_secret("swordfish-1984").unwrap();
        let (done, lines) = logged(|| {
            runtime.block_on(async {
                let engine = Engine::builder().redact(redactor).build().await.unwrap();
                let panics = |_| panic!("lost swordfish-1984");
                at_length(&engine.session("s").core.engine, &entry, None, panics).await
            })
        });
        assert_eq!(done.unwrap_err().kind, ErrorKind::Internal);
        let line = "ERROR message=the validation of arguments panicked tool=\"t\" panic=\"lost [redacted]\" location=";
        assert!(lines.contains(line), "{lines}");
    }
}
