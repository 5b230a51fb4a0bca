//! Programs that broke earlier forms of the rules.

use super::programs::{Call, Class, Program, Sizes};
use super::search::search;
use super::starve::starves;
use super::world::Budget;

const A: Class = Class::Serial(Some(0));
const B: Class = Class::Serial(Some(1));
const TREE: Class = Class::Serial(None);

const ONE_OF_EACH: Sizes =
    Sizes { read: 1, concurrent: 1, tool: 1, session: None, tree: None, tool_of_engine: false };

/// A call whose handler dispatches batches of one call each, side by side.
fn call(class: Class, children: &[usize]) -> Call {
    let step: Vec<_> = children.iter().map(|child| vec![*child]).collect();
    let body = if step.is_empty() { vec![] } else { vec![step] };
    Call { class, tool: false, fork: false, body }
}

fn of_tool(call: Call) -> Call {
    Call { tool: true, ..call }
}

/// Each call is a batch of its own in the only root session.
fn batches(calls: &[usize]) -> Vec<(usize, Vec<usize>)> {
    calls.iter().map(|call| (0, vec![*call])).collect()
}

/// CC-8: two scopes held alternately. If a call could wait for any lease that its lineage holds, and not only for
/// that of its nearest ancestor, then 4 would wait for B, held by 3, whose child 5 would wait for A, held by 2, which
/// awaits 4.
#[test]
fn a_call_does_not_wait_for_a_scope_held_higher_up() {
    let calls =
        vec![call(A, &[1]), call(B, &[2, 3]), call(A, &[4]), call(B, &[5]), call(B, &[]), call(A, &[])];
    let program = Program::new(calls, batches(&[0]), ONE_OF_EACH);
    let (_, nested) = search(&program, Budget::default(), 100_000);
    assert!(nested > 0, "4 or 5 ends");
    search(&program, Budget { zombies: 1, cancels: 1, drops: 1 }, 5_000);
}

/// CC-8: a nested call of another scope whose tool is in use while the lease is free. Ending it would be needless
/// because only a unit is missing, and the search fails if a call ends that could push onto its lease.
#[test]
fn a_call_that_misses_only_a_unit_waits() {
    for class in [A, B] {
        let calls = vec![call(class, &[1]), of_tool(call(A, &[])), of_tool(call(Class::Read, &[]))];
        let sizes = Sizes { tool_of_engine: true, ..ONE_OF_EACH };
        let program = Program::new(calls, batches(&[0, 2]), sizes);
        let (_, nested) = search(&program, Budget::default(), 100_000);
        assert_eq!(nested, 0);
    }
}

/// CC-3, CC-3b: a serial call beside an endless supply of deeper ones. Deeper calls go first, so the call would never
/// start if it did not come of age, when even deeper calls may not pass it and the lease is held back for it.
#[test]
fn deeper_serial_calls_without_end_starve_nobody() {
    let concurrent = Class::Concurrent;
    let calls = vec![
        call(TREE, &[]),
        call(concurrent, &[2]),
        call(TREE, &[]),
        call(concurrent, &[4]),
        call(TREE, &[]),
    ];
    let mut program = Program::new(calls, batches(&[0, 1, 3]), Sizes { concurrent: 2, ..ONE_OF_EACH });
    program.endless = vec![1, 2];
    assert_eq!(starves(&program, 30_000), Some(None));
}

/// CC-3b: a serial call whose lease is free only while its tool is in use, and the other way round. If only units
/// were held back for it, another call would take the lease each time the tool is freed.
#[test]
fn a_lease_that_is_free_only_while_the_tool_is_out_starves_nobody() {
    let calls = vec![of_tool(call(TREE, &[])), call(TREE, &[]), of_tool(call(Class::Concurrent, &[]))];
    let mut program = Program::new(calls, batches(&[0, 1, 2]), ONE_OF_EACH);
    program.endless = vec![1, 2];
    assert_eq!(starves(&program, 30_000), Some(None));
}
