//! Budgets (RT-11, I13).

use super::{SECOND, no_hang};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::time::sleep;
use toolyard::{
    Budget, Budgets, Call, Caller, Denied, Effect, ErrorKind, ForkPolicy, Grant, RetryPolicy, RuntimePolicy,
    Session, SessionOptions, SubAgents, Tool, ToolContext, ToolError, ToolOutput, ToolSettings, ToolSpec,
    async_trait, from_fn, tool_fn,
};
use toolyard_tests::{call, kinds, scripted, shape, tries, yard};

fn calls(count: usize, ms: u64) -> Vec<Call> {
    (0..count).map(|n| call(&format!("c{n}"), "read", ms, "ok")).collect()
}

async fn succeeded(session: &Session, batch: Vec<Call>) -> usize {
    let outcomes = no_hang(session.dispatch(batch)).await;
    let refused = |kind: &Option<ErrorKind>| *kind == Some(ErrorKind::BudgetExceeded);
    assert!(kinds(&outcomes).iter().all(|kind| kind.is_none() || refused(kind)), "{}", shape(&outcomes));
    assert!(outcomes.iter().all(|outcome| outcome.success() || outcome.attempts == 0));
    outcomes.iter().filter(|outcome| outcome.success()).count()
}

/// T16: budget 10, 50 parallel calls ⇒ 10 are admitted, 40 are `budget_exceeded`; calls that never start are refunded.
#[tokio::test(start_paused = true)]
async fn t16_a_budget_admits_exactly_its_calls() {
    let yard =
        yard(|builder, _| builder.budgets(Budgets::default().tree(Budget::calls(10))).max_in_flight(1)).await;
    let session = yard.engine.session("s");
    let (outcomes, ()) = no_hang(async {
        tokio::join!(session.dispatch(calls(50, 1000)), async {
            sleep(SECOND + SECOND / 2).await;
            assert_eq!(session.budget_left(), Budget::calls(0));
            assert_eq!(session.cancel_calls(), 9, "one is done, 40 were refused");
        })
    })
    .await;
    let count = |wanted: Option<ErrorKind>| kinds(&outcomes).iter().filter(|kind| **kind == wanted).count();
    assert_eq!(count(Some(ErrorKind::BudgetExceeded)), 40);
    assert_eq!(
        (count(None), count(Some(ErrorKind::Cancelled))),
        (2, 8),
        "the second one ran on within its grace"
    );
    assert_eq!(session.budget_left(), Budget::calls(8), "what never started costs nothing");
    assert_eq!(succeeded(&session, calls(50, 1)).await, 8);
    assert_eq!(yard.log.started().len(), 10);
    assert_eq!(yard.engine.session("other").budget_left(), Budget::calls(10));
    yard.events.check();
}

/// RT-11: an operator sees what is used of the budgets of open sessions, those first that are used the most.
#[tokio::test(start_paused = true)]
async fn an_operator_sees_what_is_used() {
    let tool = ToolSettings { budget: Some(Budget::calls(2)), ..ToolSettings::default() };
    let budgets = Budgets::default().session(Budget::calls(5)).tree(Budget::calls(10).with_cost(0));
    let yard = yard(|builder, _| builder.budgets(budgets).tool_config("read", tool)).await;
    assert_eq!(json!(yard.engine.status().await.unwrap().budgets), json!([]));
    let (one, other) = (yard.engine.session("one"), yard.engine.session("other"));
    assert_eq!(succeeded(&one, calls(1, 1)).await, 1);
    let seen = json!(yard.engine.status().await.unwrap().budgets);
    let calls = |used, limit| json!({"used": used, "limit": limit});
    let cost = json!({"used": 0, "limit": 0});
    assert_eq!(
        seen,
        json!([
            {"session": "one", "of": "tree", "calls": calls(1, 10), "cost": cost},
            {"session": "other", "of": "tree", "calls": calls(0, 10), "cost": cost},
            {"session": "one", "of": {"tool": "read"}, "calls": calls(1, 2), "cost": null},
            {"session": "one", "of": "session", "calls": calls(1, 5), "cost": null},
            {"session": "other", "of": "session", "calls": calls(0, 5), "cost": null},
        ])
    );
    drop((one, other));
    assert_eq!(json!(yard.engine.status().await.unwrap().budgets), json!([]));
}

/// RT-11: turn, session and tree each have their own count; a fork also draws on its ancestors.
#[tokio::test(start_paused = true)]
async fn children_draw_on_their_parents_budgets() {
    let budgets = Budgets::default().turn(Budget::calls(3)).session(Budget::calls(5)).tree(Budget::calls(7));
    let yard = yard(|builder, _| builder.budgets(budgets)).await;
    let session = yard.engine.session("s");
    assert_eq!(succeeded(&session, calls(9, 1)).await, 3, "a turn");
    let (one, two) =
        (session.fork(ForkPolicy::default()).unwrap(), session.fork(ForkPolicy::default()).unwrap());
    assert_eq!(one.budget_left(), Budget::calls(2), "what the parent has left");
    assert_eq!(succeeded(&one, calls(9, 1)).await, 2);
    assert_eq!(succeeded(&two, calls(9, 1)).await, 0);
    assert_eq!(succeeded(&session, calls(1, 1)).await, 0);
    let own = SessionOptions::default().budgets(Budgets::default());
    assert_eq!(succeeded(&yard.engine.session_with("own", own), calls(9, 1)).await, 9);
    yard.events.check();
}

/// RT-11: nested calls of a handler, and those of its sub-agents, draw on the budget of its turn.
#[tokio::test(start_paused = true)]
async fn a_turns_budget_covers_nested_calls() {
    struct Calls;
    #[async_trait]
    impl Tool for Calls {
        async fn execute(&self, _: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            let own = cx.dispatch(calls(2, 1)).await;
            let agents = cx.fork(ForkPolicy::default())?.dispatch(calls(9, 1)).await;
            Ok(format!("{} and {}", shape(&own), agents.iter().filter(|one| one.success()).count()).into())
        }
    }
    let yard = yard(|builder, _| {
        let builder = builder.budgets(Budgets::default().turn(Budget::calls(4)));
        builder.tool(from_fn(ToolSpec::read("calls"), || Calls))
    })
    .await;
    let session = yard.engine.session("s");
    let outcome = no_hang(session.call(Call::new("a", "calls", "{}"))).await;
    assert_eq!(outcome.to_text(), "c0 ok, c1 ok and 1");
    assert_eq!(succeeded(&session, calls(9, 1)).await, 4, "another turn has its own");
    yard.events.check();
}

/// RT-11: a tool may have a budget and a cost; a retry does not count as a call, and a refused call costs nothing.
#[tokio::test(start_paused = true)]
async fn a_tool_has_a_price_and_a_budget() {
    let twice = ToolSettings { budget: Some(Budget::calls(2)), ..ToolSettings::default() };
    let yard = yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::read("dear").cost(40), log))
            .tool_config("read", twice)
            .budgets(Budgets::default().session(Budget::cost(100)))
            .retry(RetryPolicy::default())
    })
    .await;
    let session = yard.engine.session("s");
    let batch = ["a", "b", "c"].map(|id| tries(id, "dear", 0, &["transient", "ok"]));
    let outcomes = no_hang(session.dispatch(batch.to_vec())).await;
    assert_eq!(shape(&outcomes), "a ok, b ok, c budget_exceeded");
    let message = &outcomes[2].error().unwrap().message;
    assert_eq!(message, "the budget of this session does not cover this call: 20 of 100 units of cost left");
    assert_eq!(session.budget_left(), Budget::cost(20));
    assert_eq!(
        succeeded(&session, calls(5, 1)).await,
        2,
        "the other tool costs nothing and may be called twice"
    );
    let outcome = no_hang(session.call(Call::new("n", "nobody", json!({})))).await;
    assert_eq!(outcome.error().unwrap().kind, ErrorKind::NotFound);
    assert_eq!(session.budget_left(), Budget::cost(20));
    yard.events.check();
}

/// RT-11: a call that never started costs nothing, even if it was granted its permits.
#[tokio::test(start_paused = true)]
async fn a_call_that_its_sandbox_refuses_costs_nothing() {
    struct Bounded;
    impl RuntimePolicy for Bounded {
        fn check(&self, _: &ToolSpec, _: &serde_json::Value, _: &Caller<'_>) -> Result<Grant, Denied> {
            let mut grant = Grant::host();
            grant.limits.memory = Some(1);
            Ok(grant)
        }
    }
    let budgets = Budgets::default().session(Budget::calls(3));
    let yard = yard(|builder, _| builder.policy(Bounded).budgets(budgets)).await;
    let session = yard.engine.session("s");
    let outcome = no_hang(session.call(call("a", "read", 0, "ok"))).await;
    let error = outcome.error().unwrap();
    assert_eq!((error.kind, error.effect), (ErrorKind::SandboxError, Effect::NotStarted));
    assert_eq!(session.budget_left(), Budget::calls(3));
    yard.events.check();
}

/// RT-11: a call draws on the budget of the tool version it came for, and its refund goes to that budget only.
#[tokio::test(start_paused = true)]
async fn a_replacing_tool_has_its_own_budget() {
    let dear = |calls: u64| ToolSpec::read("dear").budget(Budget::calls(calls));
    let yard = yard(|builder, log| builder.tool(scripted(dear(4), log)).max_in_flight(1)).await;
    let session = yard.engine.session("s");
    let batch =
        |count: usize| (0..count).map(|n| call(&format!("d{n}"), "dear", 1000, "ok")).collect::<Vec<_>>();
    let (outcomes, ()) = no_hang(async {
        tokio::join!(session.dispatch(batch(5)), async {
            sleep(SECOND / 2).await;
            yard.engine.registry().replace(scripted(dear(2), &yard.log)).unwrap();
            assert_eq!(session.cancel_calls(), 4, "one was refused");
        })
    })
    .await;
    assert_eq!(shape(&outcomes), "d0 ok, d1 cancelled, d2 cancelled, d3 cancelled, d4 budget_exceeded");
    assert_eq!(succeeded(&session, batch(3)).await, 2, "refunds of the replaced tool do not count");
    yard.engine.registry().replace(scripted(dear(4), &yard.log)).unwrap();
    assert_eq!(succeeded(&session, batch(5)).await, 4, "a new tool starts with its full budget");
    yard.events.check();
}

/// RT-11: a fork that a handler makes of another session pays the budgets of that session and those of the handler's
/// call, each once: in another tree, in another branch of the same tree, and in the handler's own session.
#[tokio::test(start_paused = true)]
async fn a_fork_made_in_a_handler_of_another_session_pays_both() {
    let target = Arc::new(Mutex::new(None::<Session>));
    let of = target.clone();
    let yard = yard(|builder, _| {
        let forks = tool_fn(ToolSpec::read("forks"), move |(): (), _: ToolContext| {
            let target = of.lock().unwrap().clone().unwrap();
            async move {
                let agent = target.fork(ForkPolicy::default())?;
                let batch = (0..2).map(|n| call(&format!("c{n}"), "read", 1, "ok")).collect::<Vec<_>>();
                Ok(shape(&agent.dispatch(batch).await))
            }
        });
        builder.tool(forks)
    })
    .await;
    let with = |tree: u64| {
        let budgets = Budgets::default().session(Budget::calls(100)).tree(Budget::calls(tree));
        SessionOptions::default().budgets(budgets)
    };
    let left = |session: &Session| session.budget_left().calls.unwrap();
    let (own, other) =
        (yard.engine.session_with("own", with(50)), yard.engine.session_with("other", with(40)));
    let branch = own.fork(ForkPolicy::default()).unwrap();
    let sibling = own.fork(ForkPolicy::default()).unwrap();
    let forks = || Call::new("f", "forks", json!({}));
    let set = |session: &Session| *target.lock().unwrap() = Some(session.clone());
    // Another tree: two calls of the fork, and the handler's own.
    set(&other);
    assert_eq!(own.call(forks()).await.to_text(), "c0 ok, c1 ok");
    assert_eq!((left(&own), left(&other)), (47, 38), "another tree");
    // Its own session.
    set(&own);
    assert_eq!(own.call(forks()).await.to_text(), "c0 ok, c1 ok");
    assert_eq!((left(&own), left(&other)), (44, 38), "its own session");
    // Another branch of the tree: the tree pays each call once, both branches pay their own.
    set(&sibling);
    assert_eq!(branch.call(forks()).await.to_text(), "c0 ok, c1 ok");
    assert_eq!(left(&own), 41, "another branch");
    // The budget of the target bounds it too.
    set(&other);
    let rest = other.dispatch(calls(37, 1)).await;
    assert_eq!(kinds(&rest), [None; 37]);
    assert_eq!(own.call(forks()).await.to_text(), "c0 ok, c1 budget_exceeded");
    assert_eq!((left(&own), left(&other)), (39, 0));
    yard.events.check();
}
