//! The life of a server: its process, its start, its restarts and its end.

pub(crate) mod changes;
pub(crate) mod child;
pub(crate) mod complaint;
#[cfg(target_os = "linux")]
mod confined;
pub(crate) mod environment;
pub(crate) mod restarts;
pub(crate) mod running;
pub(crate) mod start;
pub(crate) mod stderr;
pub(crate) mod supervisor;

pub use environment::is_inherited;
pub(crate) use running::Running;
pub(crate) use start::Starter;
pub(crate) use supervisor::{StartRequest, Supervisor};
