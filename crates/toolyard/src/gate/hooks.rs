//! An embedder's hooks, each bounded and none able to take the turn with it (V1).

use super::Gate;
use crate::{nesting::outside, tasks::Tasks};
use futures::FutureExt;
use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
    task::Poll,
    time::Duration,
};
use tokio::{
    task::{coop::has_budget_remaining, unconstrained},
    time::sleep,
};
use toolyard_core::{Call, CallError, Caller, ErrorKind, Outcome};

/// The time a hook has.
const HOOK_WITHIN: Duration = Duration::from_secs(5);

/// What became of a hook.
enum Hooked<T> {
    Done(T),
    Panicked,
    TooSlow,
}

/// Runs a hook. It is made inside, so that one that panics before its first wait is caught too.
async fn bounded<T, F: Future<Output = T>>(tasks: &Tasks, hook: impl FnOnce() -> F) -> Hooked<T> {
    let mut hook = pin!(AssertUnwindSafe(outside(async move { hook().await })).catch_unwind());
    let mut timer = None;
    poll_fn(|cx| {
        // The caller may be outside of tokio, and a hook need not know.
        let _runtime = tasks.enter();
        let had_budget = has_budget_remaining();
        if let Poll::Ready(done) = hook.as_mut().poll(cx) {
            return Poll::Ready(done.map_or(Hooked::Panicked, Hooked::Done));
        }
        // Made now: most hooks do not wait, and need none.
        let timer = timer.get_or_insert_with(|| Box::pin(sleep(HOOK_WITHIN)));
        let late = match had_budget {
            true => pin!(unconstrained(timer.as_mut())).poll(cx), // the hook may have used it up
            false => timer.as_mut().poll(cx),
        };
        late.map(|()| Hooked::TooSlow)
    })
    .await
}

impl Gate {
    /// The hook before everything; its refusal is the call's `aborted`.
    pub(crate) async fn before(&self, call: &Call, caller: &Caller<'_>) -> Result<(), CallError> {
        let Some(hooks) = &self.hooks else { return Ok(()) };
        let message = match bounded(&self.tasks, || hooks.on_tool_call(call, caller)).await {
            Hooked::Done(Ok(())) => return Ok(()),
            Hooked::Done(Err(abort)) => abort.message,
            Hooked::Panicked => "the hook before this call panicked".to_owned(),
            Hooked::TooSlow => {
                format!("the hook before this call took longer than {}s", HOOK_WITHIN.as_secs())
            }
        };
        Err(CallError::new(ErrorKind::Aborted, message))
    }

    /// The hook right before the permits; it cannot refuse.
    pub(crate) async fn starting(&self, call: &Call, caller: &Caller<'_>) {
        if let Some(hooks) = &self.hooks {
            warn_unless_done(
                "on_tool_start",
                &call.name,
                &bounded(&self.tasks, || hooks.on_tool_start(call, caller)).await,
            );
        }
    }

    /// The hook at the end; it cannot change it.
    pub(crate) async fn ended(&self, outcome: &Outcome, caller: &Caller<'_>) {
        if let Some(hooks) = &self.hooks {
            warn_unless_done(
                "on_tool_end",
                &outcome.tool,
                &bounded(&self.tasks, || hooks.on_tool_end(outcome, caller)).await,
            );
        }
    }
}

fn warn_unless_done(hook: &str, tool: &str, hooked: &Hooked<()>) {
    match hooked {
        Hooked::Done(()) => {}
        Hooked::Panicked => tracing::warn!(hook, tool, "a hook panicked; the call goes on"),
        Hooked::TooSlow => tracing::warn!(hook, tool, "a hook took too long; the call goes on"),
    }
}
