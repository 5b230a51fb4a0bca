//! Random small programs, in every order that each of them allows.

use super::programs::Random;
use super::search::search;
use super::starve::starves;
use super::world::Budget;

/// Searches the programs of these seeds. Returns the number of states, and of calls that ended for CC-8.
fn go_through(seeds: std::ops::Range<u64>, most: usize) -> (usize, u32) {
    let budgets = [(0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 0), (1, 0, 1)];
    let (mut states, mut nested) = (0, 0);
    for seed in seeds {
        let mut random = Random(seed);
        let roots = 1 + random.below(2);
        let program = random.program(6, roots);
        let (zombies, cancels, drops) = budgets[random.below(budgets.len())];
        let (seen, refused) = search(&program, Budget { zombies, cancels, drops }, most);
        (states, nested) = (states + seen, nested + refused);
    }
    (states, nested)
}

/// How many of these programs with endless batches were small enough to prove that no call starves.
fn starve_through(seeds: std::ops::Range<u64>, most: usize) -> usize {
    let mut told = 0;
    for seed in seeds {
        let mut random = Random(seed);
        let mut program = random.program(5, 2);
        if program.batches.len() < 2 {
            continue;
        }
        program.endless = (0..program.batches.len()).filter(|_| random.one_in(2)).collect();
        let starved = starves(&program, most);
        assert!(starved.is_none_or(|call| call.is_none()), "{starved:?} of seed {seed}: {program:#?}");
        told += usize::from(starved.is_some());
    }
    told
}

/// I3, I4, I16, CC-1, CC-7, CC-8: nothing is stuck, nothing overlaps, nothing is left over.
#[test]
fn small_programs_come_to_their_end_whichever_way_they_go() {
    let (states, nested) = go_through(0..1_000, 400);
    assert!(states > 20_000 && nested > 0, "{states} states, {nested} calls ended for CC-8");
}

/// I12, CC-3, CC-3b: no call waits forever, whatever keeps coming.
#[test]
fn nobody_starves_whichever_way_small_programs_go() {
    let told = starve_through(0..300, 1_500);
    assert!(told > 50, "{told} programs were small enough");
}

/// The same with many more programs.
#[test]
#[ignore = "takes minutes"]
fn many_more_programs() {
    go_through(1_000..20_000, 3_000);
    starve_through(1_000..6_000, 6_000);
}
