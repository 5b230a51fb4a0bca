//! JR-5, JR-10: what handlers had dispatched, and the turns of sub-agents.

use super::{life_with, resume, resume_in};
use std::time::Duration;
use toolyard::{Batch, EngineBuilder, ErrorKind, ForkPolicy, ResumeError, ToolContext, ToolSpec, tool_fn};
use toolyard_tests::{Ledger, Log, call, kinds, shape};

/// A read `nests` that dispatches a read of a second.
fn nests(builder: EngineBuilder, _: &Log) -> EngineBuilder {
    let nest = |cx: ToolContext| async move {
        let inner = cx.dispatch(Batch::new(vec![call("inner", "read", 1000, "ok")])).await;
        Ok(shape(&inner))
    };
    builder.tool(tool_fn(ToolSpec::read("nests"), move |(): (), cx| nest(cx)))
}

/// JR-5: a call whose handler has dispatched something is not repeated; what it had dispatched ends with it.
#[tokio::test(start_paused = true)]
async fn a_handler_that_has_dispatched_is_not_repeated() {
    let ledger = Ledger::default();
    let first = life_with(&ledger, nests).await;
    let session = first.engine.session("s");
    tokio::spawn(async move { session.dispatch(vec![toolyard::Call::new("n", "nests", "{}")]).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let left = ledger.crashed();
    let second = life_with(&left, nests).await;
    assert_eq!(kinds(&resume(&second.engine).await), [Some(ErrorKind::Interrupted)]);
    assert_eq!(second.log.started(), Vec::<String>::new());
    let third = life_with(&left.crashed(), nests).await;
    assert!(third.engine.open_turns().unwrap().is_empty(), "nothing is open any more");
}

/// JR-10: a named agent is found by its name; the turns of one that nobody has named end with those of its parent.
#[tokio::test(start_paused = true)]
async fn agents_are_found_by_their_names() {
    let ledger = Ledger::default();
    let first = life_with(&ledger, |builder, _| builder).await;
    let session = first.engine.session("s");
    let named = session.fork(ForkPolicy::default().name("ada")).unwrap();
    let unnamed = session.fork(ForkPolicy::default()).unwrap();
    for (agent, id) in [(session.clone(), "root"), (named, "named"), (unnamed, "unnamed")] {
        tokio::spawn(async move { agent.dispatch(vec![call(id, "read", 1000, "ok")]).await });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let left = ledger.crashed();
    let second = life_with(&left, |builder, _| builder).await;
    let open = second.engine.open_turns().unwrap();
    let turn_of = |agent: &str| open.iter().find(|turn| turn.agent.as_str() == agent).unwrap().turn;
    let session = second.engine.session("s");
    let error = session.resume(turn_of("root/ada")).await.unwrap_err();
    assert!(matches!(error, ResumeError::OtherAgent { .. }), "{error}");
    assert_eq!(shape(&resume_in(&session, turn_of("root")).await), "root ok");
    let ada = session.fork(ForkPolicy::default().name("ada")).unwrap();
    assert_eq!(shape(&resume_in(&ada, turn_of("root/ada")).await), "named ok");
    assert_eq!(session.fork(ForkPolicy::default()).unwrap().agent().as_str(), "root/2");
    let third = life_with(&left.crashed(), |builder, _| builder).await;
    assert!(third.engine.open_turns().unwrap().is_empty(), "{:?}", third.engine.open_turns());
}
