//! The cases that are counted.

use toolyard_bench::count::Run;

/// A contender of `toolyard bench`, in batches of some size.
pub(crate) struct Case {
    /// Its name in the figures.
    pub(crate) name: &'static str,
    /// The run to count.
    pub(crate) run: Run<'static>,
}

const fn case(name: &'static str, contender: &'static str, calls: usize) -> Case {
    Case { name, run: batches("ways", contender, calls) }
}

/// The same for somebody who is told of calls.
const fn told(name: &'static str, contender: &'static str, calls: usize) -> Case {
    Case { name, run: batches("record", contender, calls) }
}

/// Returns a run with as many batches of this size as make the figure stable.
pub(crate) const fn batches<'a>(axis: &'a str, contender: &'a str, calls: usize) -> Run<'a> {
    let (before, more) = match calls {
        0..10 => (200, 1000),
        10..100 => (20, 50),
        _ => (2, 4),
    };
    Run { axis, contender, calls, before, more }
}

pub(crate) const CASES: &[Case] = &[
    case(FLOOR, "floor", 1),
    case("full 1", "full", 1),
    case("full 40", "full", 40),
    case("full 1000", "full", 1000),
    case("inline 1", "inline", 1),
    case("guarded 1", "guarded", 1),
    case("keyed 1", "keyed", 1),
    told("hooks 1", "hooks", 1),
    told("hooks 40", "hooks", 40),
    told("key 40", "a key", 40),
    told("sink 1", "a sink", 1),
    told("sink 40", "a sink", 40),
    told("listener 40", "a subscriber", 40),
];

/// The case that contains none of our code.
pub(crate) const FLOOR: &str = "floor 1";
