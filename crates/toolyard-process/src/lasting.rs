//! Limits of programs that live long.

/// Limits of a confined program, for as long as it lives; `None` is no limit. There is none of CPU time, which a program that
/// works for many calls uses without end.
///
/// One that this machine does not keep is refused by name, and the program does not start (SB-4).
///
/// # Examples
/// ```
/// use toolyard_process::LastingLimits;
/// let limits = LastingLimits { memory_per_process: Some(1 << 30), ..LastingLimits::default() };
/// assert_eq!(limits.open_files, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastingLimits {
    /// Bytes of memory of all its processes together, with its `/tmp`. At the limit all of them end at once. Needs a
    /// group of cgroup v2.
    pub memory: Option<u64>,
    /// Bytes of address space of each of its processes.
    pub memory_per_process: Option<u64>,
    /// Processes and threads at once. At the limit no other can be started. For root it needs a group of cgroup v2.
    pub processes: Option<u32>,
    /// Open files of each of its processes.
    pub open_files: Option<u32>,
}
