//! The steps of the state machine, and the units that it has.

use proptest::prelude::*;
use toolyard_core::ToolClass;

/// An operation on the table. Numbers choose among the calls that it is possible for.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Calls of a root session or of a parked handler, one directly behind the other.
    Ask {
        root: u64,
        parent: usize,
        nested: bool,
        need: usize,
        calls: usize,
    },
    Park(usize),
    Resume(usize),
    End(usize),
    /// A parked handler is dropped; the calls it awaited may continue.
    Abandon(usize),
    GiveUp(usize),
    ZombieEnds(usize),
    Cancel(usize),
    Time(u64),
    Weight {
        root: u64,
        weight: u8,
    },
    Resize {
        unit: usize,
        width: usize,
    },
    /// The concurrent pools of all agents.
    ResizeAll(usize),
    /// The next slice of what earlier changes have left.
    Slice,
    Pause {
        class: ToolClass,
        paused: bool,
    },
}

pub(super) const ROOTS: u64 = 3;
/// The read unit, a tool unit and the threads of the engine.
pub(super) const SHARED: usize = 3;
/// For each root session a concurrent unit, a session unit, a tree unit and a tool unit.
pub(super) const OWN: usize = 4;
/// All of them.
pub(super) const UNITS: usize = SHARED + ROOTS as usize * OWN;
/// The widths of: read, the engine's tool, the threads, and those of a root session.
pub(super) type Widths = [usize; SHARED + OWN];
/// The kinds of needs: five classes and scopes; none, the engine's or the agent's tool; session cap; tree cap; a thread.
const NEEDS: usize = 5 * 3 * 2 * 2 * 2;

/// The concurrent unit of a root session. The others follow.
pub(super) fn own(root: usize) -> usize {
    SHARED + root * OWN
}

pub(super) fn is_concurrent(unit: usize) -> bool {
    unit >= SHARED && (unit - SHARED).is_multiple_of(OWN)
}

/// A zombie that does not read keeps these (SC-6). Every zombie keeps its thread.
pub(super) fn is_kept(unit: usize) -> bool {
    matches!(unit, 1 | 2) || is_concurrent(unit) || (unit >= SHARED && (unit - SHARED) % OWN == 3)
}

/// One lease per tree and two named ones, in order of rank.
pub(super) const RANKS: [u32; 5] = [0, 0, 0, 1, 2];

pub(super) fn step() -> impl Strategy<Value = Step> {
    let number = any::<usize>;
    prop_oneof![
        10 => (0..ROOTS, number(), any::<bool>(), 0..NEEDS, prop_oneof![4 => Just(1), 1 => 2..7usize])
            .prop_map(|(root, parent, nested, need, calls)| Step::Ask { root, parent, nested, need, calls }),
        4 => number().prop_map(Step::Park),
        4 => number().prop_map(Step::Resume),
        6 => number().prop_map(Step::End),
        1 => number().prop_map(Step::Abandon),
        1 => number().prop_map(Step::GiveUp),
        1 => number().prop_map(Step::ZombieEnds),
        2 => number().prop_map(Step::Cancel),
        3 => (1..1500u64).prop_map(Step::Time),
        1 => (0..ROOTS, prop_oneof![Just(1u8), Just(2), Just(4)])
            .prop_map(|(root, weight)| Step::Weight { root, weight }),
        1 => (1..UNITS, 1..3usize).prop_map(|(unit, width)| Step::Resize { unit, width }),
        1 => (1..3usize).prop_map(Step::ResizeAll),
        2 => Just(Step::Slice),
        1 => (0..3usize, any::<bool>())
            .prop_map(|(class, paused)| Step::Pause { class: ToolClass::ALL[class], paused }),
    ]
}
