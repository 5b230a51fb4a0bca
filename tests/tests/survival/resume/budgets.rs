//! RT-11, JR-8: budgets begin anew with each life of an engine.

use super::{life_with, no_hang};
use std::time::Duration;
use toolyard::{Budget, Budgets, ErrorKind, ToolClass};
use toolyard_tests::{Ledger, call, kinds};

/// RT-11: a call whose attempts were all made in earlier lives has spent nothing in this one, if it is cancelled before it is
/// tried again.
#[tokio::test(start_paused = true)]
async fn what_earlier_lives_have_started_is_not_spent_here() {
    let once = || Budgets::default().session(Budget::calls(1));
    let ledger = Ledger::default();
    let first = life_with(&ledger, |builder, _| builder.budgets(once())).await;
    let session = first.engine.session("s");
    let running = tokio::spawn(async move { session.dispatch(vec![call("a", "idem", 10, "ok")]).await });
    tokio::time::sleep(Duration::from_millis(5)).await;
    let left = ledger.crashed();
    running.abort();

    let next = life_with(&left, |builder, _| builder.budgets(once())).await;
    next.engine.pause(ToolClass::Concurrent).await.unwrap();
    let session = next.engine.session("s");
    let resumed = session.resume(1).await.unwrap();
    let turn = resumed.turn().clone();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        turn.cancel();
    };
    let (ended, ()) = no_hang(async { tokio::join!(resumed.finish(), cancel) }).await;
    assert_eq!((kinds(&ended[0]), ended[0][0].attempts), (vec![Some(ErrorKind::Cancelled)], 1));
    next.engine.resume(ToolClass::Concurrent).await.unwrap();
    assert!(session.call(call("b", "idem", 1, "ok")).await.success(), "its budget is there still");
    let spent = session.call(call("c", "idem", 1, "ok")).await;
    assert_eq!(kinds(&[spent]), [Some(ErrorKind::BudgetExceeded)]);
    assert_eq!(next.log.started(), ["b"]);
}
