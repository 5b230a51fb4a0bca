//! Runs an embedder's hooks: each is bounded in time, and a panic in one does not end the turn (V1).

use crate::{
    agent::Services,
    tasks::{Caught, Panic, Tasks, outside},
};
use futures::{
    FutureExt,
    future::{BoxFuture, lazy},
};
use std::time::Duration;
use toolyard_core::{Call, CallError, Caller, ErrorKind, Outcome};

/// How long a hook may take.
const HOOK_WITHIN: Duration = Duration::from_secs(5);

/// How a hook ended.
enum HookResult<T> {
    Done(T),
    Panicked(Panic),
    TooSlow,
}

/// Runs a hook. Its future is made at the first poll, so that a panic before the first await is caught too.
async fn bounded<'h, T>(tasks: &Tasks, hook: impl FnOnce() -> BoxFuture<'h, T>) -> HookResult<T> {
    let hook = Caught::new(outside(lazy(|_| hook()).flatten()));
    match tasks.timeout(HOOK_WITHIN, hook).await {
        Some(Ok(done)) => HookResult::Done(done),
        Some(Err(panic)) => HookResult::Panicked(panic),
        None => HookResult::TooSlow,
    }
}

/// Runs the first hook. If it refuses, the call is `aborted`.
pub(crate) async fn before(engine: &Services, call: &Call, caller: &Caller<'_>) -> Result<(), CallError> {
    let Some(hooks) = &engine.hooks else { return Ok(()) };
    let message = match bounded(&engine.tasks, || hooks.on_tool_call(call, caller)).await {
        HookResult::Done(Ok(())) => return Ok(()),
        HookResult::Done(Err(abort)) => abort.message,
        HookResult::Panicked(panic) => {
            let what = "the hook on_tool_call panicked; the call is refused";
            panic.log(what, Some(&call.name), engine.redactor.as_ref());
            "the hook before this call panicked".to_owned()
        }
        HookResult::TooSlow => {
            format!("the hook before this call took longer than {}s", HOOK_WITHIN.as_secs())
        }
    };
    Err(CallError::new(ErrorKind::Aborted, message))
}

/// Runs the hook right before the permits. It cannot refuse the call.
pub(crate) async fn starting(engine: &Services, call: &Call, caller: &Caller<'_>) {
    if let Some(hooks) = &engine.hooks {
        let result = bounded(&engine.tasks, || hooks.on_tool_start(call, caller)).await;
        log_unless_done(engine, "on_tool_start", &call.name, &result);
    }
}

/// Runs the hook at the call's end. It cannot change the outcome.
pub(crate) async fn ended(engine: &Services, outcome: &Outcome, caller: &Caller<'_>) {
    if let Some(hooks) = &engine.hooks {
        let result = bounded(&engine.tasks, || hooks.on_tool_end(outcome, caller)).await;
        log_unless_done(engine, "on_tool_end", &outcome.tool, &result);
    }
}

fn log_unless_done(engine: &Services, hook: &str, tool: &str, result: &HookResult<()>) {
    match result {
        HookResult::Done(()) => {}
        HookResult::Panicked(panic) => {
            let what = format_args!("the hook {hook} panicked; the call continues");
            panic.log(what, Some(tool), engine.redactor.as_ref());
        }
        HookResult::TooSlow => tracing::warn!(hook, tool, "a hook took too long; the call continues"),
    }
}
