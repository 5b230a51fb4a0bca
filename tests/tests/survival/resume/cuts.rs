//! An engine's life ends after each of its records.

use super::{life, resume};
use toolyard::ErrorKind;
use toolyard_tests::{Ledger, check_resumed, known_calls, mixed_calls};

/// I5, JR-1, JR-5, JR-8: wherever a life ends, and the next one too, every call has one result, none that had ended runs
/// again or changes its result, and what changes something starts at most once.
#[tokio::test(start_paused = true)]
async fn no_effect_is_repeated_wherever_the_engine_ends() {
    let whole = Ledger::default();
    let first = life(&whole).await;
    first.engine.session("s").dispatch(mixed_calls()).await;
    let mut interrupted = 0;
    for cut in 0..=whole.len() {
        let ledger = whole.cut(cut);
        let (before, second) = (known_calls(&ledger), life(&ledger).await);
        let open = second.engine.open_turns().unwrap();
        if open.is_empty() {
            assert!(before.values().all(|call| call.end.is_some()), "after {cut} records a turn is lost");
            continue;
        }
        let from = ledger.len();
        let outcomes = resume(&second.engine).await;
        assert_eq!(outcomes.len(), mixed_calls().len());
        check_resumed(cut, &before, &second.log.started(), &outcomes);
        interrupted +=
            outcomes.iter().filter(|it| it.error().is_some_and(|e| e.kind == ErrorKind::Interrupted)).count();
        second.events.check();
        // The second life ends too.
        for cut in from..=ledger.len() {
            let ledger = ledger.cut(cut);
            let (before, third) = (known_calls(&ledger), life(&ledger).await);
            if third.engine.open_turns().unwrap().is_empty() {
                assert!(before.values().all(|call| call.end.is_some()), "after {cut} records a turn is lost");
                continue;
            }
            let outcomes = resume(&third.engine).await;
            check_resumed(cut, &before, &third.log.started(), &outcomes);
        }
    }
    assert!(interrupted > 4, "{interrupted}");
}
