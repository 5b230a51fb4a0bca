//! KT-16: keys that tools derive from their calls.

use super::{SECOND, no_hang};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use toolyard::{
    Answer, Call, Dedupe, Engine, ErrorKind, ForkPolicy, KeySource, ToolContext, ToolSettings, ToolSpec,
    tool_fn,
};
use toolyard_tests::{Yard, scripted, yard};

/// An engine with a tool `pay` that derives the keys of its calls.
async fn pays() -> Yard {
    yard(|builder, log| {
        builder.tool(scripted(ToolSpec::network("pay").concurrent().key(KeySource::Derive), log))
    })
    .await
}

fn pay(id: &str, ms: u64) -> Call {
    Call::new(id, "pay", json!({"ms": ms, "end": "ok"}))
}

/// KT-16: equal calls of a session tree run once, however they are spelt, in a batch, in later turns and in forks;
/// calls with other arguments and of other sessions run.
#[tokio::test(start_paused = true)]
async fn equal_calls_of_a_tree_run_once() {
    let yard = pays().await;
    let session = yard.engine.session("s");
    let spelt = Call::new("b", "pay", r#"{ "end": "ok", "ms": 10.0 }"#);
    let first = no_hang(session.dispatch(vec![pay("a", 10), spelt, pay("c", 11)])).await;
    let later = no_hang(session.call(pay("d", 10))).await;
    let fork = no_hang(session.fork(ForkPolicy::default()).unwrap().call(pay("e", 10))).await;
    let other = no_hang(yard.engine.session("other").call(pay("f", 10))).await;
    assert_eq!(yard.log.started(), ["a", "c", "f"]);
    let outcomes = [&first[0], &first[1], &first[2], &later, &fork, &other];
    assert_eq!(outcomes.map(|outcome| outcome.to_text()), ["a", "a", "c", "a", "a", "f"]);
    let dedupe = outcomes.map(|outcome| outcome.dedupe);
    let (fresh, replayed) = (Dedupe::Fresh, Dedupe::Replayed);
    assert_eq!(dedupe, [fresh, Dedupe::Joined, fresh, replayed, replayed, fresh]);
    yard.events.check();
}

/// KT-16, ID-6: what is no longer kept is not run again; a caller's own key says that a call is another one.
#[tokio::test(start_paused = true)]
async fn an_equal_call_never_runs_again_unless_its_caller_says_so() {
    let yard = pays().await;
    let session = yard.engine.session("s");
    assert!(no_hang(session.call(pay("a", 10))).await.success());
    tokio::time::sleep(61 * SECOND).await;
    let again = no_hang(session.call(pay("b", 10))).await;
    assert_eq!(again.error().unwrap().kind, ErrorKind::AlreadyExecuted);
    let meant = no_hang(session.call(pay("c", 10).idempotency_key("second-payment"))).await;
    assert_eq!((meant.dedupe, yard.log.started()), (Dedupe::Fresh, vec!["a".to_owned(), "c".to_owned()]));
    yard.events.check();
}

/// KT-16, RT-9: the handler has the key, and equal calls have equal ones.
#[tokio::test]
async fn handlers_see_the_key() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let spec = ToolSpec::write("note").key(KeySource::Derive);
    let note = tool_fn(spec, move |args: serde_json::Map<String, serde_json::Value>, cx: ToolContext| {
        kept.lock().push(cx.idempotency_key().map(str::to_owned));
        async move { Ok(args.len().to_string()) }
    });
    let engine = Engine::builder().tool(note).approver(Answer::allow("test")).build().await.unwrap();
    for session in ["one", "two"] {
        assert!(engine.session(session).call(Call::new("a", "note", json!({"n": 1}))).await.success());
    }
    let seen = seen.lock();
    assert!(seen[0].as_ref().is_some_and(|key| key.starts_with("tk1_")), "{seen:?}");
    assert_eq!(seen[0], seen[1]);
}

/// KT-16: a tool that only reads has no derived keys, whoever says so.
#[tokio::test]
async fn a_tool_that_only_reads_derives_no_key() {
    let look = |spec: ToolSpec| tool_fn(spec, |(): (), _: ToolContext| async { Ok("seen") });
    let built = Engine::builder().tool(look(ToolSpec::read("look").key(KeySource::Derive))).build().await;
    let error = built.err().unwrap().to_string();
    assert!(error.starts_with("tool 'look': key = derive is for tools that change something"), "{error}");
    let derive = ToolSettings { key: Some(KeySource::Derive), ..ToolSettings::default() };
    let built = Engine::builder().tool(look(ToolSpec::pure("look"))).tool_config("look", derive);
    assert!(built.build().await.is_err());
}
