//! Searches every order in which the calls of a small program can proceed. No state may be stuck.

use super::programs::Program;
use super::world::{Budget, World};
use std::collections::HashSet;

/// Explores every order, up to `most` states. Returns the number of states, and of calls that ended for CC-8.
///
/// # Panics
/// When a state is stuck or wrong.
pub(super) fn search(program: &Program, budget: Budget, most: usize) -> (usize, u32) {
    let start = World::new(program, budget);
    let mut seen = HashSet::from([start.key()]);
    let (mut todo, mut nested) = (vec![(start, Vec::new())], 0);
    while let Some((world, way)) = todo.pop() {
        let events = world.events();
        assert!(!world.is_stuck(&events), "stuck after {way:?} in {program:#?}: {:?}", world.calls);
        for event in events {
            let mut next = world.clone();
            next.happen(event);
            nested += next.nested - world.nested;
            if seen.len() < most && seen.insert(next.key()) {
                todo.push((next, [way.as_slice(), &[event]].concat()));
            }
        }
    }
    (seen.len(), nested)
}
