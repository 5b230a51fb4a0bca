//! The containments of this system, for tests of what they have in common.

use toolyard_process::Containment;

/// The program that helps, and that starts others under itself.
#[cfg(target_os = "linux")]
pub(super) const ENGINE: &str = env!("CARGO_BIN_EXE_toolyard-process-engine");

/// A helper, which is another program than the tests.
#[cfg(target_os = "linux")]
pub(super) fn helper() -> Containment {
    Containment::Helper(toolyard_process::Helper::program(ENGINE))
}

/// Every containment of this system.
pub(super) fn all() -> Vec<Containment> {
    #[cfg(target_os = "linux")]
    let all = vec![helper(), Containment::Group];
    #[cfg(not(target_os = "linux"))]
    let all = vec![Containment::Group];
    all
}
