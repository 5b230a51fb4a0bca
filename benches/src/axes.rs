//! The axes, one per file.

pub(crate) mod agents;
pub(crate) mod classes;
pub(crate) mod contention;
pub(crate) mod decoders;
pub(crate) mod depths;
pub(crate) mod formats;
pub(crate) mod listeners;
pub(crate) mod sizes;
pub(crate) mod spans;
pub(crate) mod stages;
pub(crate) mod waits;
pub(crate) mod ways;
