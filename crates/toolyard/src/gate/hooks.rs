//! Runs an embedder's hooks: each is bounded in time, and a panic in one does not end the turn (V1).

use crate::{
    agent::Services,
    tasks::{Caught, Panic, Tasks, outside},
};
use futures::{
    FutureExt,
    future::{BoxFuture, lazy},
};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use toolyard_core::{Abort, Call, CallError, Caller, ErrorKind, Outcome};

/// How long a hook may take.
const HOOK_WITHIN: Duration = Duration::from_secs(5);

/// How a hook ended.
enum HookResult<T> {
    Done(T),
    Panicked(Panic),
    TooSlow,
}

impl<T> From<Result<T, Panic>> for HookResult<T> {
    fn from(done: Result<T, Panic>) -> Self {
        done.map_or_else(Self::Panicked, Self::Done)
    }
}

/// A hook after its first poll. Most are done by then, and only one that waits needs a timer, and memory for that.
pub(crate) enum Begun<'h, T> {
    Done(T),
    Waits(BoxFuture<'h, T>),
}

/// Runs a hook. Its future is made at its first poll, so that a panic before the first await is caught too.
async fn bounded<'h, T: Send>(
    tasks: &'h Tasks,
    hook: impl FnOnce() -> BoxFuture<'h, T> + Send + Unpin + 'h,
) -> HookResult<T> {
    let mut hook = Some(hook);
    let begun = poll_fn(|cx| Poll::Ready(begin(tasks, hook.take().expect("polled once"), cx))).await;
    match begun {
        Begun::Done(result) => result,
        Begun::Waits(rest) => rest.await,
    }
}

/// Polls a hook for the first time.
fn begin<'h, T: Send>(
    tasks: &'h Tasks,
    hook: impl FnOnce() -> BoxFuture<'h, T> + Send + Unpin + 'h,
    cx: &mut Context<'_>,
) -> Begun<'h, HookResult<T>> {
    let mut hook = Caught::new(outside(lazy(|_| hook()).flatten()));
    // Whoever polls may be outside of tokio, but a hook may use timers.
    let _runtime = tasks.enter();
    match Pin::new(&mut hook).poll(cx) {
        Poll::Ready(done) => Begun::Done(done.into()),
        Poll::Pending => Begun::Waits(Box::pin(async move {
            match tasks.timeout(HOOK_WITHIN, hook).await {
                Some(done) => done.into(),
                None => HookResult::TooSlow,
            }
        })),
    }
}

/// Begins the first hook. If it refuses, the call is `aborted`.
pub(crate) fn before<'h>(
    engine: &'h Services,
    call: &'h Call,
    caller: &'h Caller<'h>,
    cx: &mut Context<'_>,
) -> Begun<'h, Result<(), CallError>> {
    let Some(hooks) = &engine.hooks else { return Begun::Done(Ok(())) };
    match begin(&engine.tasks, || hooks.on_tool_call(call, caller), cx) {
        Begun::Done(result) => Begun::Done(let_through(engine, call, result)),
        Begun::Waits(rest) => Begun::Waits(Box::pin(async move { let_through(engine, call, rest.await) })),
    }
}

/// What the first hook means for its call.
fn let_through(
    engine: &Services,
    call: &Call,
    result: HookResult<Result<(), Abort>>,
) -> Result<(), CallError> {
    let message = match result {
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
