//! Texts and values of servers: made fit to be seen, measured, and bounded.

pub(crate) mod clean;
pub(crate) mod scan;
pub(crate) mod size;

pub(crate) use scan::TooMany;
pub(crate) use size::TooLarge;
