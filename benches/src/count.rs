//! Work without a clock, for instruction counters.

use crate::{axis::axis, contender::Contender};
use std::sync::Arc;

/// Batches of one contender of an axis.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The name of the axis.
    pub axis: &'a str,
    /// The name of the contender.
    pub contender: &'a str,
    /// Calls in a batch.
    pub calls: usize,
    /// Batches that every run executes first, so that buffers and tables have reached their size.
    pub before: usize,
    /// Batches that only the long run executes.
    pub more: usize,
}

/// The names of the contenders of an axis.
///
/// # Errors
/// A sentence, if there is no such axis or its contenders cannot be built.
pub fn contenders(axis_name: &str) -> Result<Vec<String>, String> {
    let axis = axis(axis_name)?;
    let contenders = runtime()?.block_on((axis.build)())?;
    Ok(contenders.iter().map(|contender| contender.name().to_owned()).collect())
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.map_err(|error| format!("cannot start the runtime: {error}"))
}

/// Runs the first batches on one thread and, if `long`, the `more` batches too.
///
/// Both variants make all inputs, and inputs that are not run are never freed, so two runs that differ only in `long`
/// differ by exactly the cost of the `more` batches. One thread, because idle workers that search for work would make
/// the instruction count depend on time.
///
/// # Errors
/// A sentence, if there is no such contender or it cannot be built.
pub fn run(run: Run<'_>, long: bool) -> Result<(), String> {
    let Run { axis: axis_name, contender, calls, before, more } = run;
    let runtime = runtime()?;
    let contenders = runtime.block_on((axis(axis_name)?.build)())?;
    let found = contenders.into_iter().find(|each| each.name() == contender);
    let found: Arc<dyn Contender> = found.ok_or_else(|| format!("no contender '{contender}'"))?;
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
