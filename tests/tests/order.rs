//! The order in which calls run and results come: CL-*, CC-*, and the scenarios T3, T12, T19.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use toolyard::{
    Batch, Call, EventKind, OnSerialFailure, Outcome, PoolWidths, Reason, Routing, SideEffects, Tool,
    ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn,
};
use toolyard_tests::{call, scripted, shape, yard};

/// T3: [R1,R2,S1,S2,C1,C2,R3], S1 fails ⇒ R1∥R2, S1, S2, C1∥C2, R3; 7 results in order.
#[tokio::test(start_paused = true)]
async fn t3_runs_are_sequential_and_results_in_order() {
    let yard = yard(|builder, _| builder).await;
    let outcomes = yard
        .engine
        .session("t3")
        .dispatch(vec![
            call("R1", "read", 30, "ok"),
            call("R2", "read", 10, "ok"),
            call("S1", "serial", 10, "fail"),
            call("S2", "serial", 10, "ok"),
            call("C1", "concurrent", 20, "ok"),
            call("C2", "concurrent", 10, "ok"),
            call("R3", "read", 10, "ok"),
        ])
        .await;
    assert_eq!(shape(&outcomes), "R1 ok, R2 ok, S1 execution_error, S2 ok, C1 ok, C2 ok, R3 ok");
    let spans = ["R1 0..30", "R2 0..10", "S1 30..40", "S2 40..50", "C1 50..70", "C2 50..60", "R3 70..80"];
    assert_eq!(yard.log.spans(), spans);
    assert_eq!(outcomes.iter().map(|outcome| outcome.run).collect::<Vec<_>>(), [0, 0, 1, 2, 3, 3, 4]);
    yard.events.check();
}

/// CL-3: a refused call splits a row of reads, so the second read runs after the first.
#[tokio::test(start_paused = true)]
async fn a_refused_call_is_a_run_of_its_own() {
    let yard = yard(|builder, _| builder).await;
    let batch = vec![call("a", "read", 10, "ok"), call("b", "nothing", 0, "ok"), call("c", "read", 10, "ok")];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "a ok, b not_found, c ok");
    assert_eq!(yard.log.spans(), ["a 0..10", "c 10..20"]);
    assert_eq!(outcomes[1].routing, Routing::ShortCircuit);
    yard.events.check();
}

/// CL-3: in [Read A, Write A, Read A] the leading read is done before the write starts, and the trailing read sees
/// the write, however slow each of them is.
#[tokio::test(start_paused = true)]
async fn a_read_after_a_write_sees_it() {
    #[derive(Clone, Default)]
    struct Cell(Arc<Mutex<String>>);
    struct Access(Cell, Option<&'static str>);
    #[async_trait]
    impl Tool for Access {
        async fn execute(&self, args: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
            tokio::time::sleep(Duration::from_millis(args["ms"].as_u64().unwrap())).await;
            let mut cell = self.0.0.lock().unwrap();
            if let Some(value) = self.1 {
                *cell = value.to_owned();
            }
            Ok(ToolOutput::text(cell.clone()))
        }
    }
    for spec in [ToolSpec::write("write"), ToolSpec::write("write").concurrent()] {
        for slow in [[50, 20, 0], [0, 50, 20], [20, 0, 50]] {
            let cell = Cell(Arc::new(Mutex::new("old".to_owned())));
            let (reader, writer) = (cell.clone(), cell);
            let yard = yard(|builder, _| {
                builder
                    .tool(from_fn(ToolSpec::read("look"), move || Access(reader.clone(), None)))
                    .tool(from_fn(spec.clone(), move || Access(writer.clone(), Some("new"))))
            })
            .await;
            let calls = ["look", "write", "look"].iter().zip(slow).zip(["a", "b", "c"]);
            let batch: Vec<_> =
                calls.map(|((tool, ms), id)| Call::new(id, *tool, json!({"ms": ms}))).collect();
            let outcomes = yard.engine.session("s").dispatch(batch).await;
            let texts: Vec<_> = outcomes.iter().map(Outcome::to_text).collect();
            assert_eq!(texts, ["old", "new", "new"], "{slow:?}");
            yard.events.check();
        }
    }
}

/// CL-4: the terminal event of a call is emitted when it ends, results come in input order, an empty batch has none.
#[tokio::test(start_paused = true)]
async fn terminal_events_come_as_calls_end_and_results_in_order() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    assert_eq!(session.dispatch(Batch::default()).await.len(), 0);
    let slowest_first = (0..5).map(|n| call(&format!("c{n}"), "read", 50 - 10 * n, "ok")).collect::<Vec<_>>();
    let outcomes = session.dispatch(slowest_first).await;
    assert_eq!(shape(&outcomes), "c0 ok, c1 ok, c2 ok, c3 ok, c4 ok");
    assert_eq!(yard.events.ended(), ["c4", "c3", "c2", "c1", "c0"]);
    yard.events.check();
}

/// CL-4: with `skip_rest` a failed serial call ends the batch.
#[tokio::test(start_paused = true)]
async fn a_failed_serial_call_may_skip_the_rest() {
    let yard = yard(|builder, _| builder.on_serial_failure(OnSerialFailure::SkipRest)).await;
    let batch = vec![
        call("a", "read", 0, "fail"),
        call("b", "serial", 0, "ok"),
        call("c", "serial", 0, "fail"),
        call("d", "serial", 0, "ok"),
        call("e", "read", 0, "ok"),
    ];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "a execution_error, b ok, c execution_error, d cancelled, e cancelled");
    assert_eq!(outcomes[3].error().unwrap().reason, Some(Reason::Predecessor));
    assert_eq!(outcomes[3].attempts, 0);
    yard.events.check();
}

/// CL-6: the shipped widths: 20 reads per engine, 10 concurrent calls per agent, one serial call per tree.
#[tokio::test(start_paused = true)]
async fn pools_have_their_widths() {
    for (tool, width) in [("read", 20), ("concurrent", 10), ("serial", 1)] {
        let yard = yard(|builder, _| builder).await;
        let batch =
            |name: &str| (0..50).map(|n| call(&format!("{name}{n}"), tool, 5, "ok")).collect::<Vec<_>>();
        let (one, two) = (yard.engine.session("one"), yard.engine.session("two"));
        let (a, b) = tokio::join!(one.dispatch(batch("a")), two.dispatch(batch("b")));
        assert!(a.iter().chain(&b).all(Outcome::success));
        let sessions = if tool == "read" { 1 } else { 2 };
        assert_eq!(yard.log.most_at_once(), width * sessions, "{tool}");
        yard.events.check();
    }
}

/// T19: forty calls, `max_in_flight` 8 ⇒ never more than 8 handlers at once, results in order.
#[tokio::test(start_paused = true)]
async fn t19_a_session_cap_holds_over_all_classes() {
    let yard = yard(|builder, _| builder.max_in_flight(8)).await;
    let session = yard.engine.session("t19");
    let half = |tool: &str| (0..20).map(|n| call(&format!("{tool}{n}"), tool, 7, "ok")).collect::<Vec<_>>();
    let (reads, others) = tokio::join!(session.dispatch(half("read")), session.dispatch(half("concurrent")));
    assert_eq!(yard.log.most_at_once(), 8);
    for (tool, outcomes) in [("read", reads), ("concurrent", others)] {
        let ids: Vec<_> = outcomes.iter().map(|outcome| outcome.call_id.to_string()).collect();
        assert_eq!(ids, (0..20).map(|n| format!("{tool}{n}")).collect::<Vec<_>>());
    }
    yard.events.check();
}

/// CL-6, CC-3: a tool's own limit holds, and calls of other tools pass those that wait for it.
#[tokio::test(start_paused = true)]
async fn a_tools_limit_delays_only_its_own_calls() {
    let yard =
        yard(|builder, log| builder.tool(scripted(ToolSpec::read("narrow").max_concurrency(2), log))).await;
    let mut batch: Vec<Call> = (0..6).map(|n| call(&format!("n{n}"), "narrow", 10, "ok")).collect();
    batch.extend((0..3).map(|n| call(&format!("r{n}"), "read", 10, "ok")));
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert!(outcomes.iter().all(Outcome::success));
    assert_eq!(yard.log.most_at_once(), 5, "two narrow and three others");
    let spans = yard.log.spans();
    assert!(spans.contains(&"r2 0..10".to_owned()) && spans.contains(&"n5 20..30".to_owned()), "{spans:?}");
}

/// T12: session A queues 1 000 reads, B one, pool 4 ⇒ B starts after at most 4 more of A.
#[tokio::test(start_paused = true)]
async fn t12_a_busy_session_does_not_starve_another() {
    let yard = yard(|builder, _| builder.pools(PoolWidths::new(4, 1))).await;
    let (a, b) = (yard.engine.session("a"), yard.engine.session("b"));
    let many = (0..1000).map(|n| call(&format!("a{n}"), "read", 10, "ok")).collect::<Vec<_>>();
    let late = async {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        b.call(call("b", "read", 10, "ok")).await
    };
    let (_, late) = tokio::join!(a.dispatch(many), late);
    assert!(late.success());
    let started = yard.log.started();
    let place = started.iter().position(|id| id == "b").unwrap();
    assert!(place <= 4 + 4, "B started at place {place}");
}

/// CL-8: a repeated id within a batch is refused; the first call with that id runs once.
#[tokio::test(start_paused = true)]
async fn a_repeated_id_is_refused() {
    let yard = yard(|builder, _| builder).await;
    let batch = vec![call("x", "read", 0, "ok"), call("x", "read", 0, "ok"), call("y", "read", 0, "ok")];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "x ok, x invalid_input, y ok");
    assert_eq!(yard.log.started(), ["x", "y"]);
    yard.events.check();
}

/// CL-8: ids may repeat across batches, and a turn replays the calls it has answered.
#[tokio::test(start_paused = true)]
async fn a_turn_resends_what_it_answered() {
    let yard = yard(|builder, _| builder).await;
    let turn = yard.engine.session("s").turn();
    let first = turn.dispatch(vec![call("x", "serial", 0, "ok")]).await;
    let again = turn.resend(vec![call("x", "serial", 0, "ok"), call("y", "serial", 0, "ok")]).await;
    assert_eq!(again[0].status, first[0].status);
    assert_eq!(again[0].dedupe, toolyard::Dedupe::Replayed);
    assert_eq!(yard.log.started(), ["x", "y"]);
    let other_arguments = turn.resend(vec![call("x", "serial", 1, "ok")]).await;
    assert_eq!(other_arguments[0].dedupe, toolyard::Dedupe::Fresh);
    let other_turn = yard.engine.session("s").turn().dispatch(vec![call("x", "serial", 0, "ok")]).await;
    assert!(other_turn[0].success());
    assert_eq!(yard.log.started(), ["x", "y", "x", "x"]);
}

/// CC-4: a batch of ten thousand calls runs, one more call is refused, and nothing is lost.
#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_run_and_one_more_is_refused() {
    let yard = yard(|builder, _| builder).await;
    let batch: Batch = (0..10_001).map(|n| call(&format!("c{n}"), "read", 1, "ok")).collect();
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(outcomes.len(), 10_001);
    assert!(outcomes[..10_000].iter().all(Outcome::success));
    assert_eq!(shape(&outcomes[10_000..]), "c10000 overloaded");
    assert_eq!(yard.log.most_at_once(), 20);
    yard.events.check();
}

/// CC-4: a full queue refuses calls at once; the queued ones run.
#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_at_once() {
    let mut limits = toolyard::Limits::default();
    limits.queue_session_max = 5;
    let yard = yard(|builder, _| builder.limits(limits)).await;
    let batch: Vec<_> = (0..30).map(|n| call(&format!("c{n}"), "read", 1, "ok")).collect();
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    let refused = outcomes.iter().filter(|outcome| !outcome.success()).count();
    assert_eq!(refused, 30 - 20 - 5);
    assert!(outcomes[25..].iter().all(|outcome| outcome.error().unwrap().retryable));
    yard.events.check();
}

/// Sequential dispatch runs every call alone, in order.
#[tokio::test(start_paused = true)]
async fn one_by_one_runs_every_call_alone() {
    let yard = yard(|builder, _| builder).await;
    let batch: Vec<_> = (0..4).map(|n| call(&format!("c{n}"), "read", 10, "ok")).collect();
    let outcomes = yard.engine.session("s").dispatch_sequential(batch).await;
    assert!(outcomes.iter().all(Outcome::success));
    assert_eq!(yard.log.spans(), ["c0 0..10", "c1 10..20", "c2 20..30", "c3 30..40"]);
}

/// OB-1, OB-2: the events of a turn, in order.
#[tokio::test(start_paused = true)]
async fn a_turn_emits_its_events_in_order() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    session.dispatch(vec![call("a", "read", 5, "delta"), call("b", "nothing", 0, "ok")]).await;
    assert_eq!(
        yard.events.of_call("a"),
        ["tool.call.received", "tool.called", "dispatch.attempt", "tool.output_delta", "tool.completed"]
    );
    assert_eq!(yard.events.of_call("b"), ["tool.call.received", "tool.failed"]);
    let kinds: Vec<_> = yard.events.events().iter().map(|event| event.kind.name()).collect();
    assert_eq!(
        (kinds[0], kinds[1], *kinds.last().unwrap()),
        ("session.opened", "turn.started", "turn.ended")
    );
    let ended = yard.events.events().into_iter().next_back().unwrap();
    assert_eq!(ended.kind, EventKind::TurnEnded { ok: 1, failed: 1 });
    let unknown = yard.events.events().into_iter().find(|event| event.kind.is_failure()).unwrap();
    assert_eq!(&*unknown.kind.failure().unwrap().tool_name, "_unknown");
    yard.events.check();
}

/// OB-1: `tool.called` carries the side effects that the tool declares, whatever its class for concurrency.
#[tokio::test(start_paused = true)]
async fn called_events_carry_the_declared_side_effects() {
    let yard = yard(|builder, log| {
        let add = |builder: toolyard::EngineBuilder, effects: SideEffects| {
            let plain = ToolSpec::new(format!("{effects}_plain"), effects);
            let recursive = ToolSpec::new(format!("{effects}_recursive"), effects).recursive();
            builder.tool(scripted(plain, log)).tool(scripted(recursive, log))
        };
        let builder = SideEffects::ALL.into_iter().fold(builder, add);
        builder.tool(scripted(ToolSpec::execute("promoted").concurrent(), log))
    })
    .await;
    let names =
        SideEffects::ALL.map(|effects| ["plain", "recursive"].map(|kind| format!("{effects}_{kind}")));
    let batch: Vec<_> = names
        .iter()
        .flatten()
        .map(|name| call(name, name, 0, "ok"))
        .chain([call("p", "promoted", 0, "ok")])
        .collect();
    assert!(yard.engine.session("s").dispatch(batch).await.iter().all(Outcome::success));
    let events = yard.events.events();
    let called: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Called { tool_name, side_effects, .. } => Some(format!("{tool_name} {side_effects}")),
            _ => None,
        })
        .collect();
    let declared =
        SideEffects::ALL.iter().flat_map(|it| ["plain", "recursive"].map(|kind| format!("{it}_{kind} {it}")));
    assert_eq!(called, declared.chain(["promoted execute".to_owned()]).collect::<Vec<_>>());
}

/// CL-2: a call of a recursive tool is concurrent whatever the tool does, so two that write run side by side and a
/// write that is not recursive waits for them.
#[tokio::test(start_paused = true)]
async fn a_recursive_tool_that_writes_is_concurrent() {
    let yard = yard(|builder, log| {
        let tools = [ToolSpec::write("agent"), ToolSpec::execute("runs"), ToolSpec::read("looks")];
        tools.into_iter().fold(builder, |builder, spec| builder.tool(scripted(spec.recursive(), log)))
    })
    .await;
    let batch = ["agent", "agent", "runs", "looks", "serial"];
    let batch: Vec<_> =
        batch.iter().enumerate().map(|(n, tool)| call(&format!("c{n}"), tool, 10, "ok")).collect();
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    let routing: Vec<_> = outcomes.iter().map(|outcome| outcome.routing.as_str()).collect();
    assert_eq!(routing, ["concurrent", "concurrent", "concurrent", "concurrent", "serial"]);
    assert_eq!(yard.log.spans(), ["c0 0..10", "c1 0..10", "c2 0..10", "c3 0..10", "c4 10..20"]);
    yard.events.check();
}
