//! What sees to it that no process of a command is left.

/// What sees to it that no process of a command is left. What each covers, and what none does, is told at the
/// [module](super).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Containment {
    /// A process of its own, which adopts all that the command starts. Linux.
    #[cfg(target_os = "linux")]
    Supervisor(Supervisor),
    /// The process group of the command: what leaves it is not found.
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

    /// The first argument of a program that is to be a supervisor; the command is the second.
    pub(in super::super) const ARGUMENT: &str = "--toolyard-supervise-command";

    /// The program that runs, whatever has come to lie at its path since.
    const THIS_PROGRAM: &str = "/proc/self/exe";

    /// Whether this program has asked at its start if it is to be a supervisor.
    static CLAIMED: AtomicBool = AtomicBool::new(false);

    pub(in super::super) fn claim() {
        CLAIMED.store(true, Ordering::Relaxed);
    }

    /// A program that is a supervisor when it is started as one, because its `main` begins with
    /// [`supervise_if_asked`](super::super::supervise_if_asked).
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Supervisor {
        program: PathBuf,
    }

    impl Supervisor {
        /// The program that runs, once more.
        ///
        /// # Errors
        /// [`NotClaimed`] where its `main` did not begin with `supervise_if_asked`: started again it would do all its
        /// own work again, instead of looking after a command.
        pub fn this_program() -> Result<Self, NotClaimed> {
            match CLAIMED.load(Ordering::Relaxed) {
                true => Ok(Self { program: THIS_PROGRAM.into() }),
                false => Err(NotClaimed),
            }
        }

        /// Another program whose `main` begins with `supervise_if_asked`, by its absolute path: for a library that
        /// has no say in the `main` it is part of.
        pub fn program(path: impl Into<PathBuf>) -> Self {
            Self { program: path.into() }
        }

        pub(in super::super) fn path(&self) -> &Path {
            &self.program
        }
    }

    /// The program did not ask at its start whether it is to be a supervisor.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[error(
        "this program cannot supervise commands: its main has to begin with toolyard_tools::shell::supervise_if_asked()"
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
