//! Tools that are replaced or removed while calls wait for them (CL-8, PO-3).

use crate::{SECOND, no_hang};
use std::time::Duration;
use toolyard::{
    Confirmations, Drain, Engine, ErrorKind, Outcome, PoolWidths, SideEffects, ToolConfig, ToolSettings,
    ToolSpec,
};
use toolyard_tests::{Log, Recorder, call, kinds, scripted, shape, yard};

fn limited(name: &str, n: usize, log: &Log) -> impl toolyard::ToolFactory + use<> {
    scripted(ToolSpec::read(name).max_concurrency(n), log)
}

/// CL-8, CC-1: ten thousand calls waiting for a tool that is removed are all answered, without recursion on the stack.
#[tokio::test(start_paused = true)]
async fn a_tool_is_removed_under_ten_thousand_calls() {
    let yard = yard(|builder, _| builder.pools(PoolWidths::new(1, 1))).await;
    let session = yard.engine.session("s");
    let batch: Vec<_> = (0..10_000).map(|n| call(&format!("c{n}"), "read", 300, "ok")).collect();
    let go = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(yard.engine.registry().unregister("read"));
    };
    let (outcomes, ()) = tokio::join!(no_hang(session.dispatch(batch)), go);
    assert!(outcomes[0].success(), "the one in flight finishes");
    assert_eq!(kinds(&outcomes[1..]), [Some(ErrorKind::NotFound); 9_999]);
    assert_eq!(yard.log.started(), ["c0"]);
    let status = yard.engine.status().await.unwrap();
    assert!(status.pools.iter().all(|pool| pool.running == 0 && pool.queued == 0), "{status:?}");
    yard.events.check();
}

/// CL-8: calls that wait for a replaced tool are also `not_found` when its successor is removed.
#[tokio::test(start_paused = true)]
async fn a_replaced_tool_is_removed_with_its_successor() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let batch: Vec<_> = (0..22).map(|n| call(&format!("c{n}"), "read", 1000, "ok")).collect();
    let go = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        yard.engine.registry().replace(scripted(ToolSpec::read("read"), &yard.log)).unwrap();
        assert!(yard.engine.registry().unregister("read"));
    };
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), go);
    assert!(outcomes[..20].iter().all(Outcome::success));
    assert_eq!(shape(&outcomes[20..]), "c20 not_found, c21 not_found");
    assert_eq!(yard.log.started().len(), 20);
    yard.events.check();
}

/// CL-6, CL-8: the limit of a replacing tool, narrower or wider, applies to later calls.
#[tokio::test(start_paused = true)]
async fn a_replacing_tool_has_its_own_limit() {
    let yard = yard(|builder, log| builder.tool(limited("narrow", 5, log))).await;
    let session = yard.engine.session("s");
    let batch = || (0..12).map(|n| call(&format!("c{n}"), "narrow", 10, "ok")).collect::<Vec<_>>();
    session.dispatch(batch()).await;
    assert_eq!(yard.log.most_at_once(), 5);
    for width in [1, 7] {
        let log = Log::new();
        yard.engine.registry().replace(limited("narrow", width, &log)).unwrap();
        assert!(session.dispatch(batch()).await.iter().all(Outcome::success));
        assert_eq!(log.most_at_once(), width);
    }
    yard.events.check();
}

/// CL-6, CL-8: calls in flight of the replaced tool count towards the new limit.
#[tokio::test(start_paused = true)]
async fn calls_of_the_replaced_tool_count_towards_the_new_limit() {
    let yard = yard(|builder, log| builder.tool(limited("narrow", 3, log))).await;
    let session = yard.engine.session("s");
    let old = (0..3).map(|n| call(&format!("old{n}"), "narrow", 1000, "ok")).collect::<Vec<_>>();
    let new = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        yard.engine.registry().replace(limited("narrow", 1, &yard.log)).unwrap();
        let new = (0..2).map(|n| call(&format!("new{n}"), "narrow", 1000, "ok")).collect::<Vec<_>>();
        session.dispatch(new).await
    };
    let (old, new) = tokio::join!(session.dispatch(old), new);
    assert!(old.iter().chain(&new).all(Outcome::success));
    assert_eq!(yard.log.spans()[3..], ["new0 1000..2000", "new1 2000..3000"]);
    yard.events.check();
}

/// PO-3: the operator's configuration of a name applies to any tool with that name: a tool that declares itself
/// harmless after a replace is still asked about.
#[tokio::test(start_paused = true)]
async fn operator_settings_outlive_a_replace() {
    let (log, events) = (Log::new(), Recorder::default());
    let settings = ToolSettings { timeout: Some(SECOND), ..ToolSettings::default() };
    let config = ToolConfig { side_effects: Some(SideEffects::Network), settings };
    let engine = Engine::builder()
        .tool(scripted(ToolSpec::read("fetch"), &log))
        .tool_config("fetch", config)
        .confirmations(Confirmations::default())
        .events(events.clone())
        .build()
        .await
        .unwrap();
    let session = engine.session("s");
    let registry = engine.registry();
    let denied = || async { shape(&[session.call(call("c", "fetch", 0, "ok")).await]) };
    assert_eq!(denied().await, "c user_denied");
    registry.replace(scripted(ToolSpec::read("fetch"), &log)).unwrap();
    assert_eq!(denied().await, "c user_denied", "after a replace");
    assert!(registry.unregister("fetch"));
    assert_eq!(denied().await, "c not_found");
    registry.register(scripted(ToolSpec::pure("fetch"), &log)).unwrap();
    assert_eq!(denied().await, "c user_denied", "after it was removed and added again");
    let spec = registry.get("fetch").unwrap().spec().clone();
    assert_eq!((spec.side_effects, spec.settings.timeout), (SideEffects::Network, Some(SECOND)));
    assert!(log.started().is_empty());
    engine.shutdown(Drain::default()).await;
    events.check();
}
