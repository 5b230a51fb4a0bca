//! Asks another tool, which only reads, what became of a call (JR-6).

use super::RECONCILE_WAIT;
use crate::{
    call::SessionCore,
    session::Session,
    tasks::{Caught, caught},
    tool::ToolEntry,
};
use serde_json::Value;
use std::sync::Arc;
use toolyard_core::Reconciled;

/// What the tool that the engine's reconciler names says.
pub(super) async fn ask(core: &Arc<SessionCore>, tool: &str, args: &Value, key: Option<&str>) -> Reconciled {
    let engine = &core.engine;
    let Some(reconciler) = &engine.reconciler else { return Reconciled::Unknown };
    let asked = async {
        let Some(question) = caught(|| reconciler.question(tool, args, key))? else {
            return Ok(Reconciled::Unknown);
        };
        let entry = engine.registry.get(&question.name);
        let reads = |entry: &ToolEntry| entry.spec().side_effects.is_read_only() && !entry.spec().recursive;
        if !entry.as_deref().is_some_and(reads) {
            let asked = &*question.name;
            tracing::warn!(
                tool,
                asked,
                "what became of a call is asked of a tool that is not there, or does not only read"
            );
            return Ok(Reconciled::Unknown);
        }
        let session = Session { core: core.clone() };
        let outcome = Caught::new(Box::pin(session.call(question))).await?;
        caught(|| reconciler.reading(tool, &outcome))
    };
    match engine.tasks.timeout(RECONCILE_WAIT, asked).await {
        Some(Ok(found)) => found,
        Some(Err(panic)) => {
            let what = "what became of a call could not be asked";
            panic.log(what, Some(tool), engine.redactor.as_ref());
            Reconciled::Unknown
        }
        None => Reconciled::Unknown,
    }
}
