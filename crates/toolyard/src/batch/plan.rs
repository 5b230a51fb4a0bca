//! What a batch would do, without doing it.

use super::checks::BatchChecks;
use super::router;
use crate::{
    call::SessionCore,
    gate::{self, Fit, NotCleared, Seen},
};
use std::ops::Range;
use toolyard_core::{Batch, CallError, CallId, Routing};

/// What [`Session::dispatch`](crate::session::Session::dispatch) would do with a batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// The calls, in order.
    pub calls: Vec<PlannedCall>,
    /// The runs, in order.
    pub runs: Vec<PlannedRun>,
}

/// One call of a [`Plan`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlannedCall {
    /// The call's id.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: std::sync::Arc<str>,
    /// How it would be routed.
    pub routing: Routing,
    /// Why it would be routed so, in a few words.
    pub why: String,
    /// Why it would be refused, if it would.
    pub refusal: Option<CallError>,
}

/// One run of a [`Plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedRun {
    /// How its calls are routed.
    pub routing: Routing,
    /// The places of its calls in the batch.
    pub calls: Range<usize>,
}

/// Takes every call through the gate, without hooks, and forms the runs.
pub(crate) fn plan(session: &SessionCore, batch: &Batch) -> Plan {
    let engine = &session.engine;
    let rules = engine.rules.current();
    let checks = BatchChecks::of(batch, 0, &engine.limits, None);
    let mut tools = gate::Tools::of(&rules.tools);
    let calls = batch.calls().iter().enumerate().map(|(at, call)| {
        let mut call = call.clone();
        let layered = match engine.registry.has_layers() {
            true => gate::through_layers(&mut call, &rules.tools, session),
            false => gate::Layered::Unchanged,
        };
        let checked = checks.check(&call, at).map_err(NotCleared::from);
        let checked = checked.and_then(|bytes| {
            let seen = Seen { bytes, fit: Fit::Unknown };
            let passed = gate::check(&call, &mut tools, &rules.policy, session, session.keys(), seen);
            match (passed, layered) {
                // A layer refuses what would run; what the gate says of the call comes first, as in a dispatch.
                (Ok(_) | Err(NotCleared::Unvalidated(_)), gate::Layered::Refused(error)) => Err(error.into()),
                (passed, _) => passed,
            }
        });
        let (routing, why, refusal) = match checked {
            Ok(cleared) => (cleared.class.into(), cleared.entry.why(cleared.class), None),
            Err(NotCleared::Refused(error)) => {
                (Routing::ShortCircuit, format!("refused: {}", error.kind), Some(error))
            }
            Err(NotCleared::Answered(class, error)) => {
                (class.into(), format!("refused: {}", error.kind), Some(error))
            }
            Err(NotCleared::Replayed(class, _)) => {
                (class.into(), "a result is kept under its key".to_owned(), None)
            }
            Err(NotCleared::Unvalidated(it)) => {
                let class = it.entry().class_for(it.args(), session.engine.redactor.as_ref());
                (class.into(), "its arguments take long to validate, which is not done here".to_owned(), None)
            }
        };
        let shown = |mut error: CallError| {
            if let Some(redactor) = &session.engine.redactor {
                redactor.error(&mut error);
            }
            error
        };
        let refusal = refusal.map(shown);
        PlannedCall { call_id: call.id.clone(), tool: call.name.clone(), routing, why, refusal }
    });
    let calls: Vec<_> = calls.collect();
    let routing: Vec<_> = calls.iter().map(|call| call.routing).collect();
    let planned = |calls: Range<usize>| PlannedRun { routing: routing[calls.start], calls };
    let runs = router::runs(routing.iter().copied()).map(planned).collect();
    Plan { calls, runs }
}
