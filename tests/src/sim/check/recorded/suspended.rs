//! SM-10: what a drain suspends had arrived before it, has not started and has no end; its caller hears so when that is
//! durable, and which turn to resume.

use super::{Fate, Key, Records, key_of};
use crate::sim::{ResultView, check::handlers::node_of, program::Index};
use toolyard::{ErrorKind, Event, MemoryRecord};

/// What is wrong with the event of a suspended call.
pub(super) fn fault_of_event(
    records: &Records<'_>,
    index: &Index<'_>,
    event: &Event,
    is_draining: bool,
) -> Option<String> {
    let key = key_of(event)?;
    let node = node_of(event).and_then(|number| index.nodes.get(&number));
    let has = |wanted: fn(&MemoryRecord) -> bool| records.of_call(key).iter().any(|it| wanted(it.record));
    let what = match () {
        () if !is_draining => "although nothing is drained",
        () if !index.program.recorder.is_some_and(|recorder| recorder.durable) => {
            "for a recorder that is not durable"
        }
        () if node.is_some_and(|node| node.parent.is_some()) => "although a handler has dispatched it",
        () if has(|it| matches!(it, MemoryRecord::Attempt { .. })) => "although it has started",
        () if has(|it| matches!(it, MemoryRecord::Ended { .. })) => "although it has ended",
        () if !records.batches.contains_key(&(key.0, key.1)) => "although its batch is not recorded",
        () => return None,
    };
    Some(format!("{key:?} was suspended {what}"))
}

/// What is wrong with the result of a suspended call.
pub(super) fn fault_of_result(
    records: &Records<'_>,
    key: Key<'_>,
    at_us: u64,
    result: &ResultView,
) -> Option<String> {
    let batch = records.batches.get(&(key.0, key.1)).and_then(|batch| batch.first());
    let is_durable = match batch.map(|it| it.fate) {
        Some(Fate::Durable(durable_us)) => durable_us <= at_us,
        Some(Fate::Nothing) => true,
        Some(Fate::Fails(_)) | None => false,
    };
    let what = match () {
        () if result.code != Some(ErrorKind::ShuttingDown) || result.attempts > 0 => "with another code",
        () if result.recorded && !is_durable => "before its batch was durable",
        () => return None,
    };
    Some(format!("{key:?} was answered as suspended {what}"))
}
