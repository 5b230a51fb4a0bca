//! One call: a fresh store, an instance in it, and its end.
//!
//! ```text
//!   Run ─► Guest ─► store ─► instance ─► _start / wasi:cli/run ─┬─ returned, exited ───────────► Exited
//!                                                               ├─ trapped ── by a limit? ─────► Limit, else Trapped
//!                                                               ├─ the run's time is up ───────► Limit
//!                                                               └─ told to stop ───────────────► Stopped
//! ```

use crate::{
    cpu::{Done, Measured},
    ended::{Broken, End, Ended, Limit},
    guest::Guest,
    module::{Loaded, Prepared},
    output::Printed,
    run::{Limits, Run},
};
use parking_lot::Mutex;
use std::{future, pin::pin, sync::Arc, time::Duration};
use wasmtime::{Error, Store, Trap, WasmBacktrace};
use wasmtime_wasi::{I32Exit, ResourceTableError};

/// Runs a module once. Dropping the future drops the store, and with it all that is the guest's.
pub(crate) async fn run(
    loaded: &Loaded,
    mut run: Run,
    stop: impl Future<Output = ()>,
) -> Result<Ended, Broken> {
    let printed = Printed::new(run.output_bytes, run.errors_bytes, run.listener.take());
    let printed = Arc::new(Mutex::new(printed));
    let guest = Guest::new(&mut run, Printed::streams(&printed)).map_err(|why| Broken { why })?;
    let _ticking = loaded.runtime.ticker.tick();
    let mut store = Store::new(&loaded.runtime.engine, guest);
    store.limiter(|guest| &mut guest.memory);
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    let (end, cpu) = bounded(guest_runs(&loaded.code, &mut store), run.limits, stop).await;
    let end = end_of(end, &store.data().memory.refused, printed.lock().is_over)?;
    let memory = &store.data().memory;
    let (refused, memory_peak) = (memory.refused, memory.peak);
    // What it still had open is closed before anybody learns that it has ended.
    drop(store);
    let (output, errors) = printed.lock().finish();
    Ok(Ended { end, refused, output, errors, memory_peak, cpu })
}

/// How far a guest came.
enum Came {
    /// It was never instantiated.
    NotUp(Error),
    /// To the end of its command, which said whether it succeeded.
    Returned(bool),
    /// Somewhere in its command.
    Failed(Error),
    /// To where its time was up, or somebody stopped it.
    Cut(End),
}

/// Makes an instance and runs its command.
async fn guest_runs(code: &Prepared, store: &mut Store<Guest>) -> Came {
    match code {
        Prepared::Command(prepared) => {
            let started = prepared.instantiate_async(&mut *store).await;
            let instance = match started {
                Ok(instance) => instance,
                Err(error) => return Came::NotUp(error),
            };
            let start = match instance.get_typed_func::<(), ()>(&mut *store, "_start") {
                Ok(start) => start,
                Err(error) => return Came::NotUp(error),
            };
            match start.call_async(&mut *store, ()).await {
                Ok(()) => Came::Returned(true),
                Err(error) => Came::Failed(error),
            }
        }
        Prepared::Component(prepared) => match prepared.instantiate_async(&mut *store).await {
            Err(error) => Came::NotUp(error),
            Ok(command) => match command.wasi_cli_run().call_run(&mut *store).await {
                Ok(said) => Came::Returned(said.is_ok()),
                Err(error) => Came::Failed(error),
            },
        },
    }
}

/// Runs it within its times, until it is told to stop. The end of its times comes first, so that a guest which has always
/// something to do does not outrun them.
async fn bounded(
    guest: impl Future<Output = Came>,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> (Came, Duration) {
    let mut guest = Measured::new(guest, limits.cpu_time);
    let came = tokio::select! {
        biased;
        () = stop => Came::Cut(End::Stopped),
        () = after(limits.wall_time) => Came::Cut(End::Limit(Limit::WallTime)),
        done = pin!(&mut guest) => match done {
            Done::Result(came) => came,
            Done::Spent => Came::Cut(End::Limit(Limit::CpuTime)),
        },
    };
    (came, guest.spent())
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => future::pending().await,
    }
}

/// The end of a guest that came this far.
fn end_of(came: Came, refused: &Option<Limit>, is_over: bool) -> Result<End, Broken> {
    let error = match came {
        Came::Cut(end) => return Ok(end),
        // Output is missing: whatever it says of itself, it is not done.
        _ if is_over => return Ok(End::Limit(Limit::Output)),
        Came::Returned(is_success) => return Ok(End::Exited(i32::from(!is_success))),
        Came::NotUp(error) => match refused {
            // It asks for more from its beginning.
            Some(limit) => return Ok(End::Limit(*limit)),
            None if !is_of_guest(&error) => return Err(Broken { why: format!("{error:#}") }),
            None => error,
        },
        Came::Failed(error) => error,
    };
    if let Some(I32Exit(code)) = error.downcast_ref() {
        return Ok(End::Exited(*code));
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return Ok(End::Limit(Limit::OpenFiles));
    }
    // Most programs end themselves by a trap when they get no memory.
    Ok(refused.map_or_else(|| End::Trapped(told(&error)), End::Limit))
}

/// Whether a guest failed as it was instantiated: it may run code by then.
fn is_of_guest(error: &Error) -> bool {
    error.is::<Trap>() || error.is::<I32Exit>() || error.is::<ResourceTableError>()
}

/// What happened, and in which of its functions.
fn told(error: &Error) -> String {
    let what = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    };
    let what = what.strip_prefix("wasm trap: ").unwrap_or(&what);
    let frames = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames).unwrap_or_default();
    match frames.first().and_then(|frame| frame.func_name()) {
        Some(function) => format!("{what}, in '{function}'"),
        None => what.to_owned(),
    }
}
