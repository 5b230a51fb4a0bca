//! How the processes that this program starts are kept together.

use toolyard_process::Containment;

/// On Linux they run under a second process of this program, elsewhere in a process group.
#[cfg(target_os = "linux")]
pub(crate) fn of_this_program() -> Containment {
    // Fails only in unit tests, whose `main` cannot help; they start nothing.
    toolyard_process::Helper::this_program().map_or(Containment::Group, Containment::Helper)
}

/// On Linux they run under a second process of this program, elsewhere in a process group.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of_this_program() -> Containment {
    Containment::Group
}
