//! The mechanism that leaves no process of a command behind.

/// The mechanism that leaves no process of a command behind. The [module](super) says what each covers, and what
/// neither does.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Containment {
    /// A separate process that adopts every process the command starts. Linux only.
    #[cfg(target_os = "linux")]
    Supervisor(Supervisor),
    /// The process group of the command: a process that leaves it is not found.
    Group,
}

#[cfg(target_os = "linux")]
pub(super) use linux::{ARGUMENT, claim};
#[cfg(target_os = "linux")]
pub use linux::{NotClaimed, Supervisor};

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        path::{Path, PathBuf},
        sync::atomic::{AtomicBool, Ordering},
    };

    /// The first argument of a program that is started as a supervisor; the command is the second.
    pub(in super::super) const ARGUMENT: &str = "--toolyard-supervise-command";

    /// The running program, even if the file at its path has been replaced since.
    const THIS_PROGRAM: &str = "/proc/self/exe";

    /// Whether this program called `supervise_if_asked` at its start.
    static CLAIMED: AtomicBool = AtomicBool::new(false);

    pub(in super::super) fn claim() {
        CLAIMED.store(true, Ordering::Relaxed);
    }

    /// A program that can run as a supervisor, because its `main` begins with
    /// [`supervise_if_asked`](super::super::supervise_if_asked).
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Supervisor {
        program: PathBuf,
    }

    impl Supervisor {
        /// The running program, started a second time as a supervisor.
        ///
        /// # Errors
        /// [`NotClaimed`] when its `main` did not begin with `supervise_if_asked`: a second start would then repeat the
        /// program's own work instead of supervising a command.
        pub fn this_program() -> Result<Self, NotClaimed> {
            match CLAIMED.load(Ordering::Relaxed) {
                true => Ok(Self { program: THIS_PROGRAM.into() }),
                false => Err(NotClaimed),
            }
        }

        /// Another program whose `main` begins with `supervise_if_asked`, by its absolute path. For libraries that do
        /// not control the `main` of their program.
        pub fn program(path: impl Into<PathBuf>) -> Self {
            Self { program: path.into() }
        }

        pub(in super::super) fn path(&self) -> &Path {
            &self.program
        }
    }

    /// The error that the program did not call `supervise_if_asked` at its start.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[error(
        "this program cannot supervise commands: its main must begin with toolyard_tools::shell::supervise_if_asked()"
    )]
    pub struct NotClaimed;

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_program_that_did_not_ask_is_no_supervisor() {
            assert_eq!(Supervisor::this_program(), Err(NotClaimed));
            claim();
            assert_eq!(Supervisor::this_program().unwrap().path(), Path::new("/proc/self/exe"));
        }
    }
}
