//! Shrinks a failing program.

use super::{Program, play, program::smaller};

/// Returns the smallest program found in at most `runs_max` runs that still breaks `rule`.
///
/// Removing a part changes the order in which the rest runs, so each candidate is tried with several seeds of shaking.
pub fn shrink(program: &Program, rule: &str, runs_max: usize) -> Program {
    let (mut best, mut runs) = (program.clone(), 0);
    'again: loop {
        for candidate in smaller(&best) {
            for shaken in shakes(&candidate) {
                if runs == runs_max {
                    return best;
                }
                runs += 1;
                if play(&shaken).violations.iter().any(|violation| violation.rule == rule) {
                    best = shaken;
                    continue 'again;
                }
            }
        }
        return best;
    }
}

fn shakes(program: &Program) -> impl Iterator<Item = Program> {
    let tries = if program.chaos.yields + program.chaos.naps == 0 { 1 } else { 3 };
    (0..tries).map(|at| {
        let mut shaken = program.clone();
        shaken.chaos.seed = program.chaos.seed.wrapping_add(at);
        shaken
    })
}
