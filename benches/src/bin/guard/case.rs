//! The cases that are counted.

use toolyard_bench::count::Run;

/// A contender of `toolyard bench`, in batches of some size.
pub(crate) struct Case {
    /// Its name in the figures.
    pub(crate) name: &'static str,
    /// The run to count.
    pub(crate) run: Run<'static>,
}

const fn case(name: &'static str, axis: &'static str, contender: &'static str, calls: usize) -> Case {
    Case { name, run: batches(axis, contender, calls) }
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

const WAYS: &str = "ways";
const LISTENERS: &str = "listeners";

pub(crate) const CASES: &[Case] = &[
    case(FLOOR, WAYS, "floor", 1),
    case("full 1", WAYS, "full", 1),
    case("full 40", WAYS, "full", 40),
    case("full 1000", WAYS, "full", 1000),
    case("inline 1", WAYS, "inline", 1),
    case("guarded 1", WAYS, "guarded", 1),
    case("keyed 1", WAYS, "keyed", 1),
    case("hooks 1", LISTENERS, "hooks", 1),
    case("hooks 40", LISTENERS, "hooks", 40),
    case("key 40", LISTENERS, "a key", 40),
    case("sink 1", LISTENERS, "a sink", 1),
    case("sink 40", LISTENERS, "a sink", 40),
    case("recorder 40", LISTENERS, "a recorder", 40),
    case("listener 40", LISTENERS, "a subscriber", 40),
];

/// The case that contains none of our code.
pub(crate) const FLOOR: &str = "floor 1";
