//! Nested calls: parking, lending, dropping (CC-6, CC-7).

use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};
use tokio::sync::mpsc;
use toolyard::{
    Abort, Batch, Blocking, Call, Caller, Effect, Hooks, PoolWidths, Reason, Session, Tool, ToolContext,
    ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait, from_fn, tool_fn,
};
use toolyard_tests::{Log, Number, Yard, call, kinds, scripted, shape, yard};

/// A tool that dispatches the calls in its arguments as one batch and returns how they ended.
struct Nests {
    log: Log,
}

/// A call of a nesting tool that makes these calls in one batch.
pub(crate) fn nest(id: &str, tool: &str, calls: Vec<Call>) -> Call {
    Call::new(id, tool, json!({"calls": calls.iter().map(to_json).collect::<Vec<_>>()}))
}

fn to_json(call: &Call) -> Value {
    json!({"id": call.id.as_str(), "tool": &*call.name, "args": call.arguments.to_value()})
}

pub(crate) fn from_json(calls: &Value) -> Batch {
    let one = |call: &Value| {
        Call::new(call["id"].as_str().unwrap(), call["tool"].as_str().unwrap(), call["args"].clone())
    };
    calls.as_array().unwrap().iter().map(one).collect()
}

#[async_trait]
impl Tool for Nests {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.log.note(format!("{} begins", cx.call_id()));
        let outcomes = cx.dispatch(from_json(&args["calls"])).await;
        self.log.note(format!("{} goes on", cx.call_id()));
        Ok(ToolOutput::text(shape(&outcomes)))
    }
}

pub(crate) fn nesting(spec: ToolSpec, log: &Log) -> impl ToolFactory + use<> {
    let log = log.clone();
    from_fn(spec, move || Nests { log: log.clone() })
}

/// An engine with nesting tools of each class, and pools and a session cap of width 1.
async fn narrow() -> Yard {
    yard(|builder, log| {
        let mut widths = PoolWidths::default();
        (widths.read, widths.concurrent) = (1, 1);
        builder
            .pools(widths)
            .max_in_flight(1)
            .tool(nesting(ToolSpec::read("nest_read"), log))
            .tool(nesting(ToolSpec::write("nest_serial"), log))
            .tool(nesting(ToolSpec::write("nest_concurrent").concurrent(), log))
    })
    .await
}

/// CC-6, CC-7: with every pool and cap at 1, a tool of any class can call tools of any class, including itself.
#[tokio::test(start_paused = true)]
async fn tools_of_any_class_call_tools_of_any_class() {
    let yard = narrow().await;
    let session = yard.engine.session("s");
    for outer in ["nest_read", "nest_serial", "nest_concurrent"] {
        for inner in ["nest_read", "nest_serial", "nest_concurrent"] {
            let leaves = || ["read", "serial", "concurrent"].map(|tool| call(tool, tool, 5, "ok")).to_vec();
            let batch = vec![nest("a", outer, vec![nest("b", inner, leaves()), nest("c", inner, leaves())])];
            let outcomes =
                tokio::time::timeout(Duration::from_secs(60), session.dispatch(batch)).await.unwrap();
            assert_eq!(outcomes[0].to_text(), "b ok, c ok", "{outer} calls {inner}");
        }
    }
    assert_eq!(kinds(&session.dispatch(vec![call("last", "serial", 1, "ok")]).await), [None]);
    yard.events.check();
}

/// CC-6: of several concurrent dispatches none yields before the last is done; only then does the handler count
/// against its pool again.
#[tokio::test(start_paused = true)]
async fn concurrent_dispatches_return_when_the_last_is_done() {
    let yard = yard(|builder, log| {
        let log = log.clone();
        let both = tool_fn(ToolSpec::read("both"), move |(): (), cx: ToolContext| {
            let log = log.clone();
            async move {
                let one = async {
                    cx.dispatch(vec![call("quick", "read", 10, "ok")]).await;
                    log.note(format!("quick at {}", log.now()));
                };
                let other = async {
                    cx.dispatch(vec![call("slow", "read", 50, "ok")]).await;
                    log.note(format!("slow at {}", log.now()));
                };
                tokio::join!(one, other);
                Ok("both")
            }
        });
        builder.tool(both)
    })
    .await;
    yard.engine.session("s").dispatch(vec![Call::new("a", "both", "{}")]).await;
    assert_eq!(yard.log.notes(), ["quick at 50", "slow at 50"]);
    yard.events.check();
}

/// V3: the attempt timeout's clock stands still while the handler is parked or waits to resume.
#[tokio::test(start_paused = true)]
async fn the_attempt_clock_stops_while_parked() {
    let yard = yard(|builder, _| {
        let slow = tool_fn(
            ToolSpec::read("slow").timeout(Duration::from_millis(100)),
            |Number { n: own }, cx: ToolContext| async move {
                tokio::time::sleep(Duration::from_millis(own)).await;
                cx.dispatch(vec![call("child", "read", 1000, "ok")]).await;
                tokio::time::sleep(Duration::from_millis(own)).await;
                Ok("in time")
            },
        );
        builder.tool(slow)
    })
    .await;
    let session = yard.engine.session("s");
    let batch = vec![Call::new("a", "slow", Number { n: 49 }), Call::new("b", "slow", Number { n: 51 })];
    assert_eq!(shape(&session.dispatch(batch).await), "a ok, b timeout");
    assert_eq!(yard.log.now(), 1100);
    yard.events.check();
}

/// CC-6b: a dropped dispatch cancels its calls, and the handler's next dispatch waits until they have stopped.
#[tokio::test(start_paused = true)]
async fn a_dispatch_after_a_dropped_one_waits_for_its_calls() {
    let yard = yard(|builder, log| {
        let log = log.clone();
        let drops = tool_fn(ToolSpec::write("drops"), move |(): (), cx: ToolContext| {
            let log = log.clone();
            async move {
                let dropped = cx.dispatch(vec![
                    call("first", "serial", 0, "stops_late"),
                    call("second", "serial", 0, "ok"),
                ]);
                let _ = tokio::time::timeout(Duration::from_millis(10), dropped).await;
                log.note(format!("dropped at {}", log.now()));
                let outcomes = cx.dispatch(vec![call("third", "serial", 0, "ok")]).await;
                log.note(format!("{} at {}", shape(&outcomes), log.now()));
                Ok("done")
            }
        });
        builder.tool(drops)
    })
    .await;
    let outcomes = yard.engine.session("s").dispatch(vec![Call::new("a", "drops", "{}")]).await;
    assert_eq!(shape(&outcomes), "a ok");
    assert_eq!(yard.log.notes(), ["dropped at 10", "third ok at 30"]);
    assert_eq!(yard.log.started(), ["first", "third"]);
    yard.events.check();
}

/// CC-6, CC-6b: dropping a dispatch whose calls are quiescent affects no other dispatch, not even one that was made
/// later and has not started because it waits for the calls of a third, dropped one.
#[tokio::test(start_paused = true)]
async fn dropping_a_quiescent_dispatch_affects_no_other() {
    let yard = yard(|builder, log| {
        let log = log.clone();
        let many = tool_fn(ToolSpec::read("many"), move |(): (), cx: ToolContext| {
            let log = log.clone();
            async move {
                let cx = &cx;
                let within = |ms, call| async move {
                    tokio::time::timeout(Duration::from_millis(ms), cx.dispatch(vec![call])).await
                };
                let rested = within(15, call("rested", "read", 5, "ok"));
                let long = async {
                    cx.dispatch(vec![call("long", "read", 200, "ok")]).await;
                    log.note(format!("long yields at {}", log.now()));
                };
                let dropped = within(10, call("dropped", "read", 0, "stops_late"));
                let late = async {
                    tokio::time::sleep(Duration::from_millis(12)).await;
                    cx.dispatch(vec![call("late", "read", 300, "ok")]).await;
                };
                let _ = tokio::join!(rested, long, dropped, late);
                Ok("done")
            }
        });
        builder.tool(many)
    })
    .await;
    yard.engine.session("s").dispatch(vec![Call::new("a", "many", "{}")]).await;
    assert_eq!(yard.log.notes(), ["long yields at 330"]);
    yard.events.check();
}

/// A hook that dispatches a call before each call of the tool `serial`.
struct LooksFirst(Arc<OnceLock<Session>>);

#[async_trait]
impl Hooks for LooksFirst {
    async fn on_tool_call(&self, made: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        if &*made.name == "serial" {
            let outcomes = self.0.get().unwrap().dispatch(vec![call("look", "read", 1, "ok")]).await;
            assert_eq!(shape(&outcomes), "look ok");
        }
        Ok(())
    }
}

/// V1, CC-7b: a hook does not count as the handler on whose task it runs; its own dispatch does not wait for the
/// dispatch that waits for the hook.
#[tokio::test(start_paused = true)]
async fn a_hook_may_dispatch_before_a_nested_call() {
    let session: Arc<OnceLock<Session>> = Arc::default();
    let hooks = LooksFirst(session.clone());
    let yard = yard(|builder, log| builder.tool(nesting(ToolSpec::read("nests"), log)).hooks(hooks)).await;
    session.set(yard.engine.session("s")).unwrap();
    let batch = vec![nest("a", "nests", vec![call("b", "serial", 0, "ok")])];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(outcomes[0].to_text(), "b ok");
    yard.events.check();
}

/// CL-3, V2: a dispatch that another task started and stopped polling before it had a batch does not delay its run.
#[tokio::test(start_paused = true)]
async fn a_dispatch_no_longer_polled_is_not_waited_for() {
    let yard = yard(|builder, _| {
        let lends = tool_fn(ToolSpec::read("lends"), |(): (), cx: ToolContext| async move {
            let begun = cx.dispatch(vec![call("dropped", "read", 0, "stops_late")]);
            let _ = tokio::time::timeout(Duration::from_millis(5), begun).await;
            let lent = cx.clone();
            tokio::spawn(async move {
                let mut dispatch = Box::pin(lent.dispatch(vec![call("stuck", "read", 1, "ok")]));
                assert!(futures::poll!(&mut dispatch).is_pending());
                std::future::pending::<()>().await;
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok("done")
        });
        builder.tool(lends)
    })
    .await;
    let batch = vec![Call::new("a", "lends", "{}"), call("b", "serial", 0, "ok")];
    let session = yard.engine.session("s");
    let outcomes = tokio::time::timeout(Duration::from_secs(3600), session.dispatch(batch)).await.unwrap();
    assert_eq!(shape(&outcomes), "a ok, b ok");
    yard.events.check();
}

/// SC-1: a cancel reaches nested calls at any depth; a sibling session goes on.
#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_what_handlers_dispatched() {
    let yard = narrow().await;
    let turn = yard.engine.session("s").turn();
    let deep =
        nest("a", "nest_serial", vec![nest("b", "nest_serial", vec![call("c", "serial", 0, "polite")])]);
    let other = yard.engine.session("t");
    let go = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        turn.cancel();
    };
    let batch = vec![deep, call("d", "read", 0, "ok")];
    let (outcomes, others, ()) =
        tokio::join!(turn.dispatch(batch), other.dispatch(vec![call("e", "serial", 50, "ok")]), go);
    assert_eq!(shape(&others), "e ok");
    assert_eq!(outcomes[0].to_text(), "b ok", "a cancelled handler may finish: {outcomes:?}");
    assert_eq!(shape(&outcomes), "a ok, d cancelled");
    assert!(yard.events.of_call("c").ends_with(&["tool.failed"]));
    yard.events.check();
}

/// CC-7: a dispatch made through the context of an ended call does not run.
#[tokio::test(start_paused = true)]
async fn a_call_that_has_ended_dispatches_nothing() {
    let kept = Arc::new(Mutex::new(None));
    let keeps = kept.clone();
    let yard = yard(|builder, _| {
        let keep = tool_fn(ToolSpec::read("keep"), move |(): (), cx: ToolContext| {
            *keeps.lock().unwrap() = Some(cx);
            async { Ok("kept") }
        });
        builder.tool(keep)
    })
    .await;
    yard.engine.session("s").dispatch(vec![Call::new("a", "keep", "{}")]).await;
    let cx: ToolContext = kept.lock().unwrap().take().unwrap();
    assert_eq!(shape(&cx.dispatch(vec![call("late", "read", 0, "ok")]).await), "late cancelled");
    assert!(yard.log.started().is_empty());
    yard.events.check();
}

/// CC-7b: a session captured by a handler recognises the handler whose task uses it.
#[tokio::test(start_paused = true)]
async fn a_captured_session_does_not_deadlock_its_handler() {
    let session: Arc<OnceLock<Session>> = Arc::default();
    let captured = session.clone();
    let yard = yard(|builder, _| {
        let indirect = tool_fn(ToolSpec::write("indirect"), move |(): (), _: ToolContext| {
            let session = captured.get().unwrap().clone();
            async move { Ok(shape(&session.dispatch(vec![call("in", "serial", 5, "ok")]).await)) }
        });
        builder.tool(indirect)
    })
    .await;
    session.set(yard.engine.session("s")).unwrap();
    let outcomes = yard.engine.session("s").dispatch(vec![Call::new("a", "indirect", "{}")]).await;
    assert_eq!(outcomes[0].to_text(), "in ok");
    yard.events.check();
}

/// CC-6c: a handler that cannot resume because only a zombie holds what it needs ends as a timeout after 30 s, also if
/// it has a thread of its own.
#[tokio::test(start_paused = true)]
async fn a_resume_behind_a_zombie_ends_after_30_s() {
    for is_blocking in [false, true] {
        let nests = ToolSpec::write("nest_serial");
        let nests = if is_blocking { nests.blocking() } else { nests };
        let yard = yard(|builder, log| {
            builder
                .blocking(Arc::new(Deaf))
                .tool(nesting(nests, log))
                .tool(scripted(ToolSpec::write("deaf").blocking().timeout(Duration::from_secs(1)), log))
        })
        .await;
        let session = yard.engine.session("s");
        let outcomes =
            session.dispatch(vec![nest("a", "nest_serial", vec![call("z", "deaf", 100_000, "ok")])]).await;
        assert_eq!(shape(&outcomes), "a timeout");
        let error = outcomes[0].error().unwrap();
        assert_eq!((error.reason, error.effect), (Some(Reason::Zombie), Effect::Unknown));
        assert_eq!(yard.log.now(), 31_000, "blocking: {is_blocking}");
        yard.events.check();
    }
}

/// A `Blocking` executor for paused time, whose tasks ignore drop and cancel.
struct Deaf;

impl Blocking for Deaf {
    fn spawn(&self, job: futures::future::BoxFuture<'static, ()>) {
        tokio::spawn(job);
    }
}

/// CC-6: a dispatch that is held but not polled still makes progress, so that a later dispatch does not deadlock.
#[tokio::test(start_paused = true)]
async fn a_held_but_unpolled_dispatch_continues() {
    let yard = yard(|builder, _| {
        let holds = tool_fn(ToolSpec::read("holds"), |(): (), cx: ToolContext| async move {
            let calls = vec![call("first", "read", 10, "ok"), call("second", "serial", 10, "ok")];
            let mut held = Box::pin(cx.dispatch(calls));
            tokio::select! {
                _ = &mut held => {}
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
            let other = cx.dispatch(vec![call("other", "read", 1, "ok")]).await;
            Ok(format!("{}, {}", shape(&other), shape(&held.await)))
        });
        builder.tool(holds)
    })
    .await;
    let outcomes = yard.engine.session("s").dispatch(vec![Call::new("a", "holds", "{}")]).await;
    assert_eq!(outcomes[0].to_text(), "other ok, first ok, second ok");
    assert_eq!(yard.log.now(), 20);
    yard.events.check();
}

/// Dispatches a call through its session when it is dropped.
struct Parting {
    session: Session,
    sender: mpsc::UnboundedSender<String>,
}

impl Drop for Parting {
    fn drop(&mut self) {
        let (open, sender) = (self.session.open_batch(), self.sender.clone());
        open.push(call("last", "read", 0, "ok"));
        tokio::spawn(async move { sender.send(shape(&open.finish().await)) });
    }
}

/// CC-7b: a call dispatched while a handler is dropped counts as the handler's, and ends with its call.
#[tokio::test(start_paused = true)]
async fn dispatches_of_a_dropped_handler_stay_its_own() {
    let (sender, mut results) = mpsc::unbounded_channel();
    let own: Arc<OnceLock<Session>> = Arc::default();
    let parts = tool_fn(ToolSpec::read("parts").timeout(Duration::from_secs(1)), {
        let own = own.clone();
        move |_: Value, _: ToolContext| {
            let parting = Parting { session: own.get().unwrap().clone(), sender: sender.clone() };
            async move {
                let _parting = parting;
                std::future::pending::<()>().await;
                Ok("never")
            }
        }
    });
    let yard = yard(|builder, _| builder.tool(parts)).await;
    let session = yard.engine.session("s");
    assert!(own.set(session.clone()).is_ok());
    let outcomes = session.dispatch(vec![Call::new("parts", "parts", "{}")]).await;
    assert_eq!(shape(&outcomes), "parts timeout");
    assert_eq!(results.recv().await.unwrap(), "last cancelled");
    yard.events.check();
}

/// CC-7, CC-6b: an abandoned serial handler that cannot be dropped stays parked until its serial call has stopped, so
/// that no two of them run beside each other. Here the call is abandoned too, and runs on.
#[tokio::test(start_paused = true)]
async fn an_abandoned_serial_handler_stays_parked_while_its_serial_call_runs() {
    let from = tokio::time::Instant::now();
    let went_on = Arc::new(OnceLock::new());
    let at = went_on.clone();
    let yard = yard(|builder, log| {
        let outer = tool_fn(ToolSpec::write("outer").blocking(), move |(): (), cx: ToolContext| {
            let at = at.clone();
            async move {
                cx.dispatch(vec![call("inner", "inner", 100_000, "ok")]).await;
                at.set(from.elapsed().as_secs()).unwrap();
                Ok("over")
            }
        });
        let inner = ToolSpec::write("inner").blocking().timeout(Duration::from_secs(600));
        builder.tool(outer).tool(scripted(inner, log)).blocking(Arc::new(Deaf))
    })
    .await;
    let session = yard.engine.session("s");
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        session.cancel_calls();
    };
    let (outcome, _) = tokio::join!(session.call(Call::new("outer", "outer", "{}")), cancel);
    assert_eq!(shape(&[outcome]), "outer cancelled");
    assert_eq!((from.elapsed().as_secs(), went_on.get()), (31, None));
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(yard.log.spans(), ["inner 0..100000"]);
    assert_eq!(went_on.get(), Some(&100));
    assert!(session.call(call("after", "serial", 0, "ok")).await.success(), "the lease came back");
    yard.events.check();
}
