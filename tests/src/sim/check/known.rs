//! Faults of the engine that are known and not yet repaired. Each is as narrow as it can be and goes with its repair.

use crate::sim::program::{Node, Where};
use toolyard::ErrorKind;

/// A blocking call that is cancelled before its thread has taken it up ends as `internal`, as if the thread had been
/// lost; it is to end as `cancelled`, not started.
pub(super) fn cancelled_before_its_thread(
    node: &Node<'_>,
    code: Option<ErrorKind>,
    is_cancelled: bool,
) -> bool {
    let is_blocking = node.tool.is_some_and(|tool| tool.placement == Where::Blocking);
    is_blocking && is_cancelled && code == Some(ErrorKind::Internal)
}
