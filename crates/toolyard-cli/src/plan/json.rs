//! A plan as JSON.

use super::{Planned, is_invalid};
use serde_json::{Value, json};
use toolyard::{PlannedCall, PlannedRun};
use toolyard_wire::error_to_json;

/// One batch.
pub(super) fn batch(planned: &Planned<'_>) -> Value {
    let plan = planned.plan;
    let mut value = match planned.turn {
        Some((id, turn)) => json!({"id": id, "turn": turn}),
        None => json!({}),
    };
    value["runs"] = plan.runs.iter().map(|run| self::run(run, &plan.calls)).collect();
    let calls = plan.calls.iter().zip(&planned.approval);
    value["calls"] = calls.map(|(call, approval)| self::call(call, *approval)).collect();
    let invalid = plan.calls.iter().filter(|call| is_invalid(call));
    value["invalid_calls"] = invalid.map(|call| call.call_id.as_str()).collect();
    value
}

fn run(run: &PlannedRun, calls: &[PlannedCall]) -> Value {
    let calls: Value = calls[run.calls.clone()].iter().map(|call| call.call_id.as_str()).collect();
    json!({"routing": run.routing, "calls": calls})
}

fn call(call: &PlannedCall, approval: Option<&str>) -> Value {
    let mut value = json!({
        "call_id": call.call_id.as_str(),
        "name": call.tool.as_ref(),
        "routing": call.routing,
        "why": call.why,
    });
    if let Some(approval) = approval {
        value["approval"] = approval.into();
    }
    if let Some(error) = &call.refusal {
        value["error"] = error_to_json(error);
    }
    value
}
