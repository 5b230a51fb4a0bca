//! Sub-agents: what a fork shares with its parent and what it has of its own (CL-6, CL-7).

use crate::nested::{nest, nesting};
use std::{
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
    time::Duration,
};
use toolyard::{
    Batch, Call, ErrorKind, FORK_DEPTH_MAX, ForkError, ForkPolicy, LimitScope, PoolWidths, Session,
    SessionOptions, SubAgents, ToolContext, ToolSettings, ToolSpec, tool_fn,
};
use toolyard_tests::{call, kinds, scripted, shape, yard};

fn many(id: &str, tool: &str, count: usize) -> Batch {
    (0..count).map(|n| call(&format!("{id}{n}"), tool, 10, "ok")).collect()
}

/// CL-6, CL-7: a fork has its own concurrent pool, unless it shares it, and shares the serial lease and the read pool.
#[tokio::test(start_paused = true)]
async fn a_fork_has_its_own_concurrent_pool_and_the_trees_serial_lease() {
    for (tool, shared, most) in
        [("concurrent", false, 4), ("concurrent", true, 2), ("serial", false, 1), ("read", false, 3)]
    {
        let yard = yard(|builder, _| {
            let mut widths = PoolWidths::default();
            (widths.read, widths.concurrent) = (3, 2);
            builder.pools(widths)
        })
        .await;
        let session = yard.engine.session("s");
        let policy = ForkPolicy::default();
        let fork = session.fork(if shared { policy.share_concurrent() } else { policy }).unwrap();
        let (mine, its) =
            tokio::join!(session.dispatch(many("a", tool, 6)), fork.dispatch(many("b", tool, 6)));
        assert_eq!((kinds(&mine), kinds(&its)), (vec![None; 6], vec![None; 6]));
        assert_eq!(yard.log.most_at_once(), most, "{tool}, shared: {shared}");
        yard.events.check();
    }
}

/// CL-6: a tool's limit counts per agent, tree or engine; a tree cap counts for the whole tree.
#[tokio::test(start_paused = true)]
async fn limits_count_in_their_scope() {
    for (scope, tree_cap, most) in [
        (LimitScope::Agent, None, 4),
        (LimitScope::Tree, None, 2),
        (LimitScope::Engine, None, 1),
        (LimitScope::Agent, Some(1), 2),
    ] {
        let yard = yard(|builder, log| {
            let spec = ToolSpec::read("limited").max_concurrency(1).limit_scope(scope);
            builder.tool(scripted(spec, log))
        })
        .await;
        let options = || match tree_cap {
            Some(cap) => SessionOptions::default().tree_max_in_flight(cap),
            None => SessionOptions::default(),
        };
        let sessions = ["s", "t"].map(|name| yard.engine.session_with(name, options()));
        let forks = [0, 1].map(|at: usize| sessions[at].fork(ForkPolicy::default()).unwrap());
        let all = sessions.iter().chain(&forks).map(|session| session.dispatch(many("c", "limited", 3)));
        futures::future::join_all(all).await;
        assert_eq!(yard.log.most_at_once(), most, "{scope:?}, tree cap {tree_cap:?}");
        yard.events.check();
    }
}

/// CL-6, CC-8: `ToolSettings` override the scope of a tool's limit and its serial scope.
#[tokio::test(start_paused = true)]
async fn a_configuration_sets_scopes() {
    for (tool, settings) in [
        (
            "read",
            ToolSettings {
                max_concurrency: Some(NonZeroUsize::MIN),
                limit_scope: Some(LimitScope::Engine),
                ..ToolSettings::default()
            },
        ),
        ("serial", ToolSettings { serial_scope: Some("db".into()), ..ToolSettings::default() }),
    ] {
        for (settings, most) in [(ToolSettings::default(), 2), (settings, 1)] {
            let yard = yard(|builder, _| builder.tool_config(tool, settings)).await;
            let (s, t) = (yard.engine.session("s"), yard.engine.session("t"));
            tokio::join!(s.dispatch(many("a", tool, 1)), t.dispatch(many("b", tool, 1)));
            assert_eq!(yard.log.most_at_once(), most, "{tool}");
        }
    }
}

/// CL-7, PO-1b: a fork sees at most the tools its policy leaves it, and its own forks at most the same.
#[tokio::test(start_paused = true)]
async fn a_fork_only_narrows_its_tools() {
    let yard = yard(|builder, _| builder).await;
    let fork = yard.engine.session("s").fork(ForkPolicy::default().only_tools(["read", "gone"])).unwrap();
    let below = fork.fork(ForkPolicy::default().only_tools(["read", "serial"])).unwrap();
    for agent in [fork, below] {
        let outcomes = agent.dispatch(vec![call("a", "read", 0, "ok"), call("b", "serial", 0, "ok")]).await;
        assert_eq!(shape(&outcomes), "a ok, b not_found");
        assert_eq!(outcomes[1].error().unwrap().message, "Tool 'serial' not found. Available: [read]");
    }
}

/// CL-7: forks nest 8 deep; at the bottom, a tool that spawns sub-agents is refused.
#[tokio::test(start_paused = true)]
async fn forks_nest_8_deep() {
    let yard = yard(|builder, log| builder.tool(scripted(ToolSpec::read("spawns").recursive(), log))).await;
    let mut agent = yard.engine.session("s");
    for _ in 0..FORK_DEPTH_MAX {
        assert_eq!(kinds(&agent.dispatch(vec![call("a", "spawns", 0, "ok")]).await), [None]);
        agent = agent.fork(ForkPolicy::default()).unwrap();
    }
    assert_eq!(agent.fork(ForkPolicy::default()).unwrap_err(), ForkError::TooDeep);
    let outcomes = agent.dispatch(vec![call("a", "spawns", 0, "ok"), call("b", "read", 0, "ok")]).await;
    assert_eq!(kinds(&outcomes), [Some(ErrorKind::DepthExceeded), None]);
    yard.events.check();
}

/// CC-7b: a fork belongs to the handler that made it, whatever task uses it.
#[tokio::test(start_paused = true)]
async fn a_fork_belongs_to_the_handler_that_made_it() {
    let yard = yard(|builder, _| {
        let spawns = tool_fn(ToolSpec::write("spawns"), |(): (), cx: ToolContext| async move {
            let agent = cx.fork(ForkPolicy::default())?;
            let calls = vec![call("in1", "serial", 5, "ok"), call("in2", "read", 5, "ok")];
            let elsewhere = tokio::spawn(async move { agent.dispatch(calls).await });
            Ok(shape(&elsewhere.await?))
        });
        builder.tool(spawns)
    })
    .await;
    let outcomes = yard.engine.session("s").dispatch(vec![Call::new("a", "spawns", "{}")]).await;
    assert_eq!(outcomes[0].to_text(), "in1 ok, in2 ok");
    let names: Vec<_> = yard.events.events().iter().map(|event| event.kind.name()).collect();
    assert!(names.contains(&"agent.forked") && names.contains(&"agent.joined"), "{names:?}");
    yard.events.check();
}

/// SC-1: a cancel reaches the forks of a session, including later ones, but not its parent.
#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_forks() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let fork = session.fork(ForkPolicy::default()).unwrap();
    let below = fork.fork(ForkPolicy::default()).unwrap();
    let go = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        fork.cancel();
    };
    let (mine, its, lowest, ()) = tokio::join!(
        session.dispatch(vec![call("a", "read", 10, "ok")]),
        fork.dispatch(vec![call("b", "read", 0, "polite"), call("c", "serial", 0, "ok")]),
        below.dispatch(vec![call("d", "read", 0, "polite")]),
        go
    );
    assert_eq!(
        format!("{}, {}, {}", shape(&mine), shape(&its), shape(&lowest)),
        "a ok, b cancelled, c cancelled, d cancelled"
    );
    let later = fork.fork(ForkPolicy::default()).unwrap();
    assert_eq!(shape(&later.dispatch(vec![call("e", "read", 0, "ok")]).await), "e cancelled");
    yard.events.check();
}

/// CC-8: calls of one named scope run one at a time in the whole engine; a call whose lineage holds another lease
/// waits only for a scope that ranks above it.
#[tokio::test(start_paused = true)]
async fn named_scopes_are_shared_and_ranked() {
    let yard = yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::write("db").serial_scope("db"), log))
            .tool(nesting(ToolSpec::write("in_tree"), log))
            .tool(nesting(ToolSpec::write("in_db").serial_scope("db"), log))
            .tool(nesting(ToolSpec::write("in_files").serial_scope("files"), log))
    })
    .await;
    let (s, t) = (yard.engine.session("s"), yard.engine.session("t"));
    let (mine, its) = tokio::join!(s.dispatch(many("a", "db", 3)), t.dispatch(many("b", "db", 3)));
    assert_eq!((kinds(&mine), kinds(&its)), (vec![None; 3], vec![None; 3]));
    assert_eq!(yard.log.most_at_once(), 1);
    // The tree ranks lowest: a call under it waits for a named scope.
    let busy = t.dispatch(vec![call("busy", "db", 50, "ok")]);
    let (_, outcomes) =
        tokio::join!(busy, s.dispatch(vec![nest("up", "in_tree", vec![call("x", "db", 0, "ok")])]));
    assert_eq!(outcomes[0].to_text(), "x ok");
    // "db" ranks below "files": a call under "files" does not wait for it.
    let busy = t.dispatch(vec![call("busy", "db", 50, "ok")]);
    let (_, outcomes) =
        tokio::join!(busy, s.dispatch(vec![nest("down", "in_files", vec![call("y", "db", 0, "ok")])]));
    assert_eq!(outcomes[0].to_text(), "y serial_nesting");
    // A free scope is granted regardless of rank.
    let outcomes = s.dispatch(vec![nest("free", "in_files", vec![call("z", "db", 0, "ok")])]).await;
    assert_eq!(outcomes[0].to_text(), "z ok");
    yard.events.check();
}

/// A `Blocking` executor for paused time: a task that ignores drop and cancel.
struct Threads;

impl toolyard::Blocking for Threads {
    fn spawn(&self, job: futures::future::BoxFuture<'static, ()>) {
        tokio::spawn(job);
    }
}

/// SC-6, CL-7: a handler that goes on after its call was answered `timeout` makes no sub-agent, and what it sends
/// through earlier ones, or through a session it captured, does not run.
#[tokio::test(start_paused = true)]
async fn a_handler_that_was_given_up_cannot_go_on_through_a_fork() {
    let said = Arc::new(OnceLock::new());
    let captured = Arc::new(OnceLock::<Session>::new());
    let (say, session) = (said.clone(), captured.clone());
    let yard = yard(|builder, _| {
        let spec = ToolSpec::write("goes_on").blocking().timeout(Duration::from_secs(1));
        let goes_on = tool_fn(spec, move |(): (), cx: ToolContext| {
            let (say, session) = (say.clone(), session.clone());
            async move {
                let agent = cx.fork(ForkPolicy::default())?;
                assert!(agent.call(call("before", "read", 0, "ok")).await.success());
                let below = agent.fork(ForkPolicy::default())?;
                tokio::time::sleep(Duration::from_secs(5)).await;
                let session = session.get().unwrap();
                let write = |id: &str| vec![call(id, "serial", 0, "ok")];
                let mut outcomes = agent.dispatch(write("a")).await;
                outcomes.extend(below.turn().dispatch(write("b")).await);
                outcomes.extend(session.dispatch(write("c")).await);
                outcomes.extend(cx.dispatch(Batch::new(write("d"))).await);
                let stream = agent.open_batch();
                stream.push(call("e", "serial", 0, "ok"));
                outcomes.extend(stream.finish().await);
                let agent = agent.clone();
                let elsewhere =
                    tokio::spawn(async move { agent.dispatch(vec![call("f", "serial", 0, "ok")]).await });
                outcomes.extend(elsewhere.await?);
                let forks = [
                    cx.fork(ForkPolicy::default()),
                    session.fork(ForkPolicy::default()),
                    below.fork(ForkPolicy::default()),
                ];
                say.set((shape(&outcomes), forks.map(|fork| fork.is_ok()))).unwrap();
                Ok("over")
            }
        });
        builder.tool(goes_on).blocking(Arc::new(Threads))
    })
    .await;
    let session = captured.get_or_init(|| yard.engine.session("s"));
    let outcomes = session.dispatch(vec![Call::new("g", "goes_on", "{}")]).await;
    assert_eq!(shape(&outcomes), "g timeout");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let all = "a cancelled, b cancelled, c cancelled, d cancelled, e cancelled, f cancelled";
    assert_eq!(said.get().unwrap(), &(all.to_owned(), [false; 3]));
    assert_eq!(yard.log.started(), ["before"]);
    yard.events.check();
}

/// V2, CL-7: a sub-agent ends with the call whose handler made it, also if the handler ended by itself: the result of
/// the call is fixed, and the next run begins. Another handler may use it, for a call of its own.
#[tokio::test(start_paused = true)]
async fn a_fork_ends_with_the_call_that_made_it() {
    let (kept, uses) = (Arc::new(OnceLock::<Session>::new()), Arc::new(OnceLock::<Session>::new()));
    let keep = kept.clone();
    let using = kept.clone();
    let yard = yard(|builder, _| {
        let makes = tool_fn(ToolSpec::write("makes"), move |(): (), cx: ToolContext| {
            let keep = keep.clone();
            async move {
                let agent = cx.fork(ForkPolicy::default())?;
                let outcome = agent.call(call("inside", "read", 0, "ok")).await;
                keep.set(agent).unwrap();
                Ok(shape(&[outcome]))
            }
        });
        let uses = tool_fn(ToolSpec::write("uses"), move |(): (), _: ToolContext| {
            let agent = using.get().unwrap().clone();
            async move { Ok(shape(&agent.dispatch(vec![call("used", "read", 0, "ok")]).await)) }
        });
        builder.tool(makes).tool(uses)
    })
    .await;
    let session = uses.get_or_init(|| yard.engine.session("s"));
    assert_eq!(session.call(Call::new("m", "makes", "{}")).await.to_text(), "inside ok");
    let agent = kept.get().unwrap();
    let late = agent.dispatch(vec![call("late", "serial", 0, "ok")]).await;
    assert_eq!(shape(&late), "late cancelled");
    assert_eq!(late[0].error().unwrap().message, "the call that dispatched this one has ended");
    assert!(agent.fork(ForkPolicy::default()).is_err());
    assert_eq!(session.call(Call::new("u", "uses", "{}")).await.to_text(), "used ok");
    assert_eq!(yard.log.started(), ["inside", "used"]);
    yard.events.check();
}

/// CL-7, CC-7: what others send through an agent of a handler that has been dropped is refused at once, although a call
/// of that handler runs on: nothing of the handler has to stay parked.
#[tokio::test(start_paused = true)]
async fn a_refusal_waits_for_nobody_once_the_handler_has_stopped() {
    let kept = Arc::new(OnceLock::<Session>::new());
    let keep = kept.clone();
    let yard = yard(|builder, log| {
        let makes = tool_fn(ToolSpec::write("makes"), move |(): (), cx: ToolContext| {
            let keep = keep.clone();
            async move {
                keep.set(cx.fork(ForkPolicy::default())?).unwrap();
                cx.dispatch(vec![call("deaf", "deaf", 100_000, "ok")]).await;
                Ok("over")
            }
        });
        let deaf = ToolSpec::write("deaf").blocking().timeout(Duration::from_secs(600));
        builder.tool(makes).tool(scripted(deaf, log)).blocking(Arc::new(Threads))
    })
    .await;
    let session = yard.engine.session("s");
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        session.cancel_calls();
    };
    let (made, ()) = tokio::join!(session.call(Call::new("m", "makes", "{}")), cancel);
    assert_eq!(shape(&[made]), "m cancelled");
    let from = yard.log.now();
    let late = kept.get().unwrap().dispatch(vec![call("late", "read", 0, "ok")]).await;
    assert_eq!((shape(&late), yard.log.now()), ("late cancelled".to_owned(), from));
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(yard.log.spans(), ["deaf 0..100000"]);
    yard.events.check();
}
