//! What a call needs to run, and the request for it.

use crate::{
    ids::{EntryId, LeaseId, UnitId},
    slab::Key,
};

/// Everything a call needs, all at once (CC-1): counting units, and a lease if it is serial. It is kept small because
/// every call that waits or runs holds one.
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, Need, UnitKind};
/// use toolyard_core::ToolClass;
/// let admission = Admission::new([20, 1, 10], 1_000, 100);
/// let [tree, threads] = [UnitKind::Tree, UnitKind::Threads].map(|limit| admission.open(limit, 4));
/// let need = Need::of(admission.open_class(ToolClass::Read), None, None).in_tree(tree).on_thread(threads);
/// assert!(admission.try_admit(1, need).is_some());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Need {
    /// The class unit or, marked, the lease: a serial call has a lease instead.
    class: Option<Key>,
    /// Tool limit, session cap, tree cap and threads.
    units: [Option<UnitId>; 4],
}

impl Need {
    const TREE: usize = 2;
    const THREADS: usize = 3;

    /// The need of a call that is not serial: the unit of its class and, if they are bounded, those of its tool and of
    /// its session.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, UnitKind};
    /// use toolyard_core::ToolClass;
    /// let admission = Admission::new([20, 1, 10], 1_000, 100);
    /// let session = admission.open(UnitKind::Session, 1);
    /// let need = Need::of(admission.open_class(ToolClass::Read), None, Some(session));
    /// let first = admission.try_admit(1, need);
    /// assert!(first.is_some() && admission.try_admit(1, need).is_none());
    /// ```
    #[inline]
    pub fn of(UnitId(class): UnitId, tool: Option<UnitId>, session: Option<UnitId>) -> Self {
        Self { class: Some(class), units: [tool, session, None, None] }
    }

    /// The need of a serial call: a lease instead of a class unit.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, Scope};
    /// let admission = Admission::new([20, 1, 10], 1_000, 100);
    /// let need = Need::serial(admission.open_lease(Scope::Tree), None, None);
    /// let first = admission.try_admit(1, need);
    /// assert!(first.is_some() && admission.try_admit(1, need).is_none(), "one after the other");
    /// ```
    #[inline]
    pub fn serial(LeaseId(lease): LeaseId, tool: Option<UnitId>, session: Option<UnitId>) -> Self {
        Self { class: Some(lease.marked()), units: [tool, session, None, None] }
    }

    /// Adds a tree cap.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, UnitKind};
    /// use toolyard_core::ToolClass;
    /// let admission = Admission::new([20, 1, 10], 1_000, 100);
    /// let need = Need::of(admission.open_class(ToolClass::Read), None, None);
    /// assert_ne!(need.in_tree(admission.open(UnitKind::Tree, 8)), need);
    /// ```
    #[must_use]
    #[inline]
    pub fn in_tree(mut self, tree: UnitId) -> Self {
        self.units[Self::TREE] = Some(tree);
        self
    }

    /// Adds a thread for a blocking handler.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, UnitKind};
    /// use toolyard_core::ToolClass;
    /// let admission = Admission::new([20, 1, 10], 1_000, 100);
    /// let threads = admission.open(UnitKind::Threads, 1);
    /// let need = Need::of(admission.open_class(ToolClass::Read), None, None).on_thread(threads);
    /// let first = admission.try_admit(1, need);
    /// assert!(first.is_some() && admission.try_admit(1, need).is_none());
    /// ```
    #[must_use]
    #[inline]
    pub fn on_thread(mut self, threads: UnitId) -> Self {
        self.units[Self::THREADS] = Some(threads);
        self
    }

    /// Whether its handler has a thread of its own.
    #[inline]
    pub(crate) fn is_on_thread(self) -> bool {
        self.units[Self::THREADS].is_some()
    }

    #[inline(always)]
    pub(crate) fn units(self) -> impl Iterator<Item = UnitId> {
        // Most calls need their class alone, and then the others are not gone through.
        let [tool, session, tree, threads] = self.units;
        let is_alone = tool.is_none() & session.is_none() & tree.is_none() & threads.is_none();
        let others = (!is_alone).then(|| self.units.into_iter().flatten());
        Units { class: self.class(), others }
    }

    #[inline]
    pub(crate) fn class(self) -> Option<UnitId> {
        self.class.filter(|class| !class.is_marked()).map(UnitId)
    }

    #[inline]
    pub(crate) fn lease(self) -> Option<LeaseId> {
        self.class.filter(|class| class.is_marked()).map(|lease| LeaseId(lease.unmarked()))
    }

    #[inline]
    pub(crate) fn has(&self, unit: UnitId) -> bool {
        self.class() == Some(unit) || self.units.contains(&Some(unit))
    }

    /// Whether some unit or lease is in both.
    pub(crate) fn shares_with(self, other: Self) -> bool {
        self.units().any(|unit| other.has(unit)) || (self.lease().is_some() && self.lease() == other.lease())
    }

    /// The units that `keep` selects, without the lease.
    pub(crate) fn only(self, keep: impl Fn(UnitId) -> bool) -> Self {
        let class = self.class().filter(|class| keep(*class)).map(|UnitId(class)| class);
        Self { class, units: self.units.map(|unit| unit.filter(|unit| keep(*unit))) }
    }

    /// The same units with this lease, or with none.
    pub(crate) fn with_lease(self, lease: Option<LeaseId>) -> Self {
        let class = self.class().map(|UnitId(class)| class);
        Self { class: lease.map(|LeaseId(lease)| lease.marked()).or(class), ..self }
    }

    /// Splits the units into those that `keep` selects and the rest. Neither has the lease: its entry stands for it.
    pub(crate) fn split(self, keep: impl Fn(UnitId) -> bool) -> (Self, Self) {
        (self.only(&keep), self.only(|unit| !keep(unit)))
    }
}

/// The units of a need: its class first.
struct Units<O> {
    class: Option<UnitId>,
    others: Option<O>,
}

impl<O: Iterator<Item = UnitId>> Iterator for Units<O> {
    type Item = UnitId;

    #[inline(always)]
    fn next(&mut self) -> Option<UnitId> {
        match self.class.take() {
            None => self.others.as_mut()?.next(),
            class => class,
        }
    }
}

/// A request to run a call.
///
/// # Examples
/// ```
/// use toolyard_admission::{Ask, Need};
/// let nested = Ask { depth: 1, ..Ask::of_root(7, Need::default()) };
/// assert_eq!((nested.root, nested.depth, nested.lineage), (7, 1, None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The number of the root session. Fairness is among root sessions.
    pub root: u64,
    /// How deep the call is nested. Within a root session deeper calls are granted first.
    pub depth: u8,
    /// The nearest ancestor that has an entry on any lease.
    pub lineage: Option<EntryId>,
    /// What it needs.
    pub need: Need,
}

impl Ask {
    /// A call at the root, not made by another call.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Ask, Need};
    /// assert_eq!(Ask::of_root(7, Need::default()).depth, 0);
    /// ```
    pub fn of_root(root: u64, need: Need) -> Self {
        Self { root, depth: 0, lineage: None, need }
    }
}
