//! The table's time.

/// When something happens, in microseconds from an origin that is fixed for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Moment(pub(crate) u64);
