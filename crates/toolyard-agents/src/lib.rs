#![doc = include_str!("../README.md")]

mod audit;
mod deltas;
mod end;
mod lines;
mod models;
mod observe;
mod process;
mod profile;
pub mod protocol;
mod recorded;
mod room;
mod stderr;
mod supervisor;
mod talk;
mod tools;

pub use audit::Audit;
pub use end::{AgentEnd, AgentReport};
pub use models::ModelUse;
pub use observe::AgentCounts;
pub use process::Means;
pub use profile::{AgentLimits, Channel, Model, Place, Profile};
pub use recorded::Recorded;
pub use supervisor::{AgentHandle, AgentPhase, AgentStatus, StartError, Supervisor, SupervisorOptions};
pub use tools::HostPaths;
pub use toolyard_process::TERM_GRACE;
