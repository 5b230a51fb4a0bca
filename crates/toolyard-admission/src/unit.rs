//! What units bound, and for whom.

use toolyard_core::ToolClass;

/// What a unit bounds.
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, Need, Reach, UnitKind};
/// use toolyard_core::ToolClass;
/// let admission = Admission::new([20, 1, 10], 1_000, 100);
/// let read = admission.open_class(ToolClass::Read);
/// let search = admission.open(UnitKind::Tool(Reach::Agent), 1);
/// let need = Need::of(read, Some(search), None);
/// let first = admission.try_admit(1, need);
/// assert!(first.is_some() && admission.try_admit(1, need).is_none(), "one search at a time");
///
/// // An abandoned handler of a writing tool keeps the units that bound what it may still do.
/// let keeps = |kind| matches!(kind, UnitKind::Class(_) | UnitKind::Tool(_));
/// assert!(keeps(UnitKind::Class(ToolClass::Concurrent)));
/// assert!(!keeps(UnitKind::Session));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitKind {
    /// The pool of a class. Serial calls have a lease instead.
    Class(ToolClass),
    /// Calls of one tool, in the engine, in one tree or in one agent.
    Tool(Reach),
    /// Calls of one session.
    Session,
    /// Calls of a session and everything under it.
    Tree,
    /// Blocking handlers, which have a thread each.
    Threads,
}

/// How far a unit or a lease reaches. What reaches only one tree or one agent is needed by calls of one root session.
///
/// # Examples
/// ```
/// use toolyard_admission::Reach;
/// assert!(Reach::Engine < Reach::Tree && Reach::Tree < Reach::Agent, "the wider, the less");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// All sessions.
    Engine,
    /// A root session and everything under it.
    Tree,
    /// One agent.
    Agent,
}

impl Reach {
    pub(crate) const ALL: [Self; 3] = [Self::Engine, Self::Tree, Self::Agent];
}

impl UnitKind {
    /// How far a unit of this kind reaches: everybody reads in one pool, and each agent has a concurrent one.
    pub(crate) fn reach(self) -> Reach {
        match self {
            Self::Tool(reach) => reach,
            Self::Class(ToolClass::Read) | Self::Threads => Reach::Engine,
            Self::Tree => Reach::Tree,
            Self::Class(ToolClass::Serial | ToolClass::Concurrent) | Self::Session => Reach::Agent,
        }
    }
}
