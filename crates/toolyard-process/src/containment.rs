//! The mechanism that leaves no process of a program behind.

/// The mechanism that leaves no process of a program behind. The [crate](crate) says what each covers, and what neither
/// does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Containment {
    /// A separate process that adopts every process that the program starts. Linux only.
    #[cfg(target_os = "linux")]
    Helper(crate::Helper),
    /// The process group of the program: a process that leaves it is not found. The default. So that the program inherits
    /// no descriptor, those of this process from 3 on are marked close-on-exec when it is started (unix), and so are not
    /// inherited by other children either; but for what `keep_open` was given.
    #[default]
    Group,
}
