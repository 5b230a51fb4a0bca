//! Limits of a confined server.

/// Limits of a confined server, for as long as it lives; `None` is no limit. There is none of CPU time, which a server that
/// works for many calls uses without end.
///
/// One that this machine does not keep is refused by name, and the server does not start (SB-4).
///
/// # Examples
/// ```
/// use toolyard_mcp::{ServerConfinement, ServerLimits};
/// let limits = ServerLimits { memory_per_process: Some(1 << 30), ..ServerLimits::default() };
/// let confinement = ServerConfinement::new().limited(limits);
/// assert_eq!(confinement.limits(), limits);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerLimits {
    /// Bytes of memory of all its processes together, with its `/tmp`. At the limit all of them end at once. Needs a
    /// [group](super::ServerConfinement::cgroup).
    pub memory: Option<u64>,
    /// Bytes of address space of each of its processes.
    pub memory_per_process: Option<u64>,
    /// Processes and threads at once. At the limit no other can be started. For root it needs a
    /// [group](super::ServerConfinement::cgroup).
    pub processes: Option<u32>,
    /// Open files of each of its processes.
    pub open_files: Option<u32>,
}
