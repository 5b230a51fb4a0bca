//! Work without a clock, for counters of instructions.

use crate::{axis::axis, contender::Contender};
use std::sync::Arc;

/// Batches of one contender of an axis.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The axis, by its name.
    pub axis: &'a str,
    /// The contender, by its name.
    pub contender: &'a str,
    /// Calls in a batch.
    pub calls: usize,
    /// Batches that every run has, so that what grows has grown.
    pub before: usize,
    /// Batches that the long run has more.
    pub more: usize,
}

/// The names of those who are measured on an axis.
///
/// # Errors
/// A sentence, when there is no such axis or its contenders cannot be built.
pub fn contenders(axis_name: &str) -> Result<Vec<String>, String> {
    let axis = axis(axis_name)?;
    let contenders = runtime()?.block_on((axis.build)())?;
    Ok(contenders.iter().map(|contender| contender.name().to_owned()).collect())
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.map_err(|error| format!("the runtime cannot be started: {error}"))
}

/// Runs the batches on one thread; those that are `more` too when `long`.
///
/// All inputs are made in either case, and those that are not run are never freed: two runs that differ in `long` alone
/// differ by what `more` batches cost, and by nothing else. On one thread, for a worker that looks for work counts
/// instructions by the hour.
///
/// # Errors
/// A sentence, when there is no such contender or it cannot be built.
pub fn run(run: Run<'_>, long: bool) -> Result<(), String> {
    let Run { axis: axis_name, contender, calls, before, more } = run;
    let runtime = runtime()?;
    let contenders = runtime.block_on((axis(axis_name)?.build)())?;
    let found = contenders.into_iter().find(|each| each.name() == contender);
    let found: Arc<dyn Contender> = found.ok_or_else(|| format!("there is no contender '{contender}'"))?;
    let (first, second) = (found.work(calls, before), found.work(calls, more));
    let worked = runtime.block_on(runtime.spawn(async move {
        first.await;
        if long {
            second.await;
        } else {
            std::mem::forget(second);
        }
    }));
    worked.map_err(|error| format!("'{contender}' failed: {error}"))
}
