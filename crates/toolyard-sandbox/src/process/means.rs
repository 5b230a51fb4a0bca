//! By what programs are confined.

use toolyard_core::Sandbox;
use toolyard_process::{Confinement, NotStarted, Program};

/// What to do where a user may make no namespaces.
const INSTEAD: &str = "allow this program namespaces (docs/sandboxes.md says how), or let the rules of these tools say sandbox = \
                       \"landlock\", which is weaker";

/// By what programs are confined: the sandbox *process*, or *landlock*.
///
/// # Examples
/// ```
/// use toolyard_core::Sandbox;
/// use toolyard_sandbox::{Means, ProcessSandbox};
/// assert_eq!(Means::Landlock.sandbox(), Sandbox::Landlock);
/// // The processes of a user are counted in a namespace, or in a group.
/// assert!(ProcessSandbox::lacks(Means::Landlock, "processes", None).is_some());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// Namespaces, and landlock and seccomp within them.
    Namespaces,
    /// Landlock and seccomp alone ([`Confinement::landlock_alone`]).
    Landlock,
}

impl Means {
    /// The sandbox that confines by them.
    pub const fn sandbox(self) -> Sandbox {
        match self {
            Self::Namespaces => Sandbox::Process,
            Self::Landlock => Sandbox::Landlock,
        }
    }

    pub(super) fn confinement(self) -> Confinement {
        match self {
            Self::Namespaces => Confinement::new(),
            Self::Landlock => Confinement::new().landlock_alone(),
        }
    }

    /// Whether a program may have a way out.
    pub(super) fn has_way_out(self) -> bool {
        self == Self::Namespaces
    }

    /// A program that knows where its home is, if that is not told by its confinement.
    pub(super) fn at_home(self, program: Program) -> Program {
        match self {
            Self::Namespaces => program.env("HOME", "/tmp"),
            Self::Landlock => program,
        }
    }
}

/// Why a program was not started, and what to do if that is for want of namespaces.
pub(super) fn why(not_started: &NotStarted) -> String {
    match not_started {
        NotStarted::NoNamespaces(why) => format!("{why}; {INSTEAD}"),
        other => other.to_string(),
    }
}
