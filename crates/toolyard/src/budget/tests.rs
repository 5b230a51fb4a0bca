use super::*;
use proptest::prelude::*;
use std::{sync::Barrier, thread};

fn accounts<'a>(turn: &'a Arc<Allowance>, tool: Option<&'a Arc<Allowance>>) -> CallAllowances<'a> {
    CallAllowances { turn: Some(turn), tool: tool.map(Arc::as_ref) }
}

fn open(budget: Budget, parent: Option<&Arc<Allowance>>) -> Arc<Allowance> {
    Books::default().open(BudgetOwner::Tree, budget, parent).unwrap()
}

/// T16, RT-11: of 50 calls at once 10 start, and refunds let later calls run.
#[test]
fn of_fifty_at_once_ten_start() {
    let books = Books::default();
    let tree = books.open(BudgetOwner::Tree, Budget::calls(10), None).unwrap();
    let turn = books.open(BudgetOwner::Turn, Budget::calls(40), Some(&tree)).unwrap();
    let start = Barrier::new(50);
    let results: Vec<_> = thread::scope(|scope| {
        let come = || {
            start.wait();
            accounts(&turn, None).reserve(0)
        };
        let threads: Vec<_> = (0..50).map(|_| scope.spawn(come)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let spent = Spent { owner: BudgetOwner::Tree, unit: Unit::Calls, limit: 10, left: 0 };
    let (started, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((started.len(), refused.len()), (10, 40));
    assert!(refused.iter().all(|result| result.as_ref().err() == Some(&spent)));
    assert_eq!((tree.left().calls, turn.left().calls), (Some(0), Some(30)));
    (0..3).for_each(|_| accounts(&turn, None).refund(0));
    assert_eq!((tree.left().calls, turn.left().calls), (Some(3), Some(33)));
}

/// RT-11: a refund returns everything; what is not refunded stays spent.
#[test]
fn a_call_that_never_started_costs_nothing() {
    let tree = open(Budget::calls(3).with_cost(10), None);
    assert_eq!(accounts(&tree, None).reserve(4), Ok(true));
    assert_eq!(accounts(&tree, None).reserve(6), Ok(true));
    accounts(&tree, None).refund(6);
    assert_eq!(tree.left(), Budget::calls(2).with_cost(6));
}

/// RT-11: a call draws on its turn, its session, everything above and its tool: on all of them or on none.
#[test]
fn all_or_nothing_is_taken() {
    let books = Books::default();
    let tree = books.open(BudgetOwner::Tree, Budget::cost(100), None).unwrap();
    let session = books.open(BudgetOwner::Session, Budget::calls(5), Some(&tree)).unwrap();
    let turn = books.open(BudgetOwner::Turn, Budget::calls(3).with_cost(50), Some(&session)).unwrap();
    let tool = books.open(BudgetOwner::Tool, Budget::calls(1), None).unwrap();
    let all = || [&tree, &session, &turn, &tool].map(|allowance| allowance.left());
    let drawn = accounts(&turn, Some(&tool));
    assert_eq!(drawn.reserve(10), Ok(true));
    assert_eq!(all(), [Budget::cost(90), Budget::calls(4), Budget::calls(2).with_cost(40), Budget::calls(0)]);
    let before = all();
    let spent = drawn.reserve(10).unwrap_err();
    assert_eq!(spent, Spent { owner: BudgetOwner::Tool, unit: Unit::Calls, limit: 1, left: 0 });
    assert_eq!(spent.to_string(), "the budget of this tool does not cover this call: 0 of 1 calls left");
    assert_eq!(all(), before);
    let spent = accounts(&turn, None).reserve(41).unwrap_err();
    assert_eq!(spent, Spent { owner: BudgetOwner::Turn, unit: Unit::Cost, limit: 50, left: 40 });
    assert_eq!(all(), before);
    drawn.refund(10);
    assert_eq!(all()[0], Budget::cost(100));
}

/// RT-11: a budget of zero lets no call start, and a call without cost starts even if no cost is left.
#[test]
fn zero_is_a_bound() {
    assert!(accounts(&open(Budget::calls(0), None), None).reserve(0).is_err());
    let free = open(Budget::cost(0), None);
    assert!(accounts(&free, None).reserve(1).is_err());
    assert!(accounts(&free, None).reserve(0).is_ok());
    assert!(accounts(&open(Budget::cost(5), None), None).reserve(u64::MAX).is_err());
}

/// RT-11: without any bound there is no allowance.
#[test]
fn what_bounds_nothing_is_nothing() {
    let books = Books::default();
    assert!(books.open(BudgetOwner::Tree, Budget::UNLIMITED, None).is_none());
    let tree = books.open(BudgetOwner::Tree, Budget::calls(1), None).unwrap();
    let turn = books.open(BudgetOwner::Turn, Budget::UNLIMITED, Some(&tree)).unwrap();
    assert!(Arc::ptr_eq(&turn, &tree));
    assert_eq!(CallAllowances { turn: None, tool: None }.reserve(u64::MAX), Ok(false));
}

/// RT-11: a call that is refused elsewhere does not cause a refusal here: the last place of a turn goes to a call
/// that can use it.
#[test]
fn nobody_is_refused_for_what_is_given_back() {
    let books = Books::default();
    let turn = books.open(BudgetOwner::Turn, Budget::calls(1), None).unwrap();
    let spent = books.open(BudgetOwner::Tool, Budget::calls(0), None).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (0..5_000).for_each(|_| assert!(accounts(&turn, Some(&spent)).reserve(0).is_err())));
        scope.spawn(|| {
            for _ in 0..5_000 {
                assert_eq!(accounts(&turn, None).reserve(0), Ok(true));
                accounts(&turn, None).refund(0);
            }
        });
    });
    assert_eq!(turn.left().calls, Some(1));
}

/// RT-11, I13: an agent made by a handler of another tree draws on that handler's turn, concurrently with the calls
/// of both trees. No update is lost between the two.
#[test]
fn trees_that_meet_count_every_call() {
    let (here, there) = (Books::default(), Books::default());
    let plenty = |owner| (owner, Budget::calls(1_000_000).with_cost(1_000_000));
    let open = |books: &Books, (owner, budget), parent| books.open(owner, budget, parent).unwrap();
    let turn = open(&here, plenty(BudgetOwner::Turn), None);
    let agent = open(&there, plenty(BudgetOwner::Session), Some(&turn));
    let [tool_here, tool_there] = [&here, &there].map(|books| open(books, plenty(BudgetOwner::Tool), None));
    let drawn = [
        accounts(&turn, Some(&tool_here)),
        accounts(&agent, Some(&tool_there)),
        accounts(&turn, Some(&tool_there)),
        CallAllowances { turn: None, tool: Some(&*tool_there) },
        // The calls of an agent whose own tree has no bound.
        accounts(&turn, None),
        accounts(&agent, Some(&tool_here)),
    ];
    let start = Barrier::new(drawn.len());
    thread::scope(|scope| {
        for drawn in drawn {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for _ in 0..20_000 {
                    assert_eq!(drawn.reserve(3), Ok(true));
                    drawn.refund(3);
                }
                assert_eq!(drawn.reserve(3), Ok(true));
            });
        }
    });
    let spent = |calls: u64| Budget::calls(1_000_000 - calls).with_cost(1_000_000 - 3 * calls);
    let left = [&turn, &agent, &tool_here, &tool_there].map(|allowance| allowance.left());
    assert_eq!(left, [5, 2, 2, 3].map(spent));
}

/// What is left of calls and cost, as plain numbers, for a turn and a tool that draw on a session and a tree.
type Model = [(Option<u64>, Option<u64>); 4];

fn is_enough(left: Option<u64>, wanted: u64) -> bool {
    left.is_none_or(|left| left >= wanted)
}

#[derive(Debug, Clone)]
enum Step {
    Reserve { with_tool: bool, cost: u64 },
    Settle(usize),
    Refund(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (any::<bool>(), 0..6u64).prop_map(|(with_tool, cost)| Step::Reserve { with_tool, cost }),
        2 => any::<usize>().prop_map(Step::Settle),
        3 => any::<usize>().prop_map(Step::Refund),
    ]
}

fn budget() -> impl Strategy<Value = Budget> {
    let bound = || proptest::option::weighted(0.8, 0..12u64);
    (bound(), bound()).prop_map(|(calls, cost)| {
        let mut budget = Budget::UNLIMITED;
        (budget.calls, budget.cost) = (calls, cost);
        budget
    })
}

proptest! {
    /// I13, RT-11: after any steps, what is left equals the model and is never negative.
    #[test]
    fn allowances_do_as_the_model_does(
        budgets in proptest::array::uniform4(budget()),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let books = Books::default();
        let tree = books.open(BudgetOwner::Tree, budgets[0], None);
        let session = books.open(BudgetOwner::Session, budgets[1], tree.as_ref());
        let turn = books.open(BudgetOwner::Turn, budgets[2], session.as_ref());
        let tool = books.open(BudgetOwner::Tool, budgets[3], None);
        let mut model: Model = budgets.map(|budget| (budget.calls, budget.cost));
        let mut held = Vec::new();
        for step in steps {
            match step {
                Step::Reserve { with_tool, cost } => {
                    let drawn = if with_tool { 4 } else { 3 };
                    let mut fits = model[..drawn].iter();
                    let fits = fits.all(|left| is_enough(left.0, 1) && is_enough(left.1, cost));
                    let tool = tool.as_deref().filter(|_| with_tool);
                    let draws = CallAllowances { turn: turn.as_deref(), tool };
                    let reserved = draws.reserve(cost);
                    prop_assert_eq!(reserved.is_ok(), fits);
                    if reserved.is_ok() {
                        for left in &mut model[..drawn] {
                            *left = (left.0.map(|calls| calls - 1), left.1.map(|all| all - cost));
                        }
                        held.push((draws, drawn, cost));
                    }
                }
                Step::Settle(at) if !held.is_empty() => {
                    held.swap_remove(at % held.len());
                }
                Step::Refund(at) if !held.is_empty() => {
                    let (draws, drawn, cost) = held.swap_remove(at % held.len());
                    draws.refund(cost);
                    for left in &mut model[..drawn] {
                        *left = (left.0.map(|calls| calls + 1), left.1.map(|all| all + cost));
                    }
                }
                Step::Settle(_) | Step::Refund(_) => {}
            }
            for (at, allowance) in [&tree, &session, &turn, &tool].into_iter().enumerate() {
                // An allowance without a bound is the one above it.
                let Some(allowance) = allowance.as_ref().filter(|_| !budgets[at].is_unlimited()) else { continue };
                let left = allowance.left();
                prop_assert_eq!((left.calls, left.cost), model[at]);
            }
        }
    }
}
