//! Names of sessions and agents: who has one, who finds whom by it, and when it is free again (SM-8).

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::runtime::Handle;
use toolyard::{
    AlreadyOpen, Budget, Budgets, Call, Drain, Engine, Event, EventKind, EventSink, ForkError, ForkPolicy,
    Session, SessionOptions, SubAgents, ToolContext, ToolError, ToolSpec, tool_fn,
};
use toolyard_tests::{call, shape, yard};

fn is_taken(engine: &Engine, id: &str, options: SessionOptions) -> bool {
    engine.open(id, options).is_err_and(|taken: AlreadyOpen| taken.id.as_str() == id)
}

fn named(name: &str) -> ForkPolicy {
    ForkPolicy::default().name(name)
}

/// SM-8: `open` never returns a session that somebody else has opened, and does not touch it; a name is free again when
/// its session has closed.
#[tokio::test(start_paused = true)]
async fn open_returns_only_new_sessions() {
    let yard = yard(|builder, _| builder).await;
    let engine = &yard.engine;
    let poor = || SessionOptions::default().budgets(Budgets::default().tree(Budget::calls(0)));
    let session = engine.session("s");
    assert!(is_taken(engine, "s", poor()));
    assert_eq!(session.budget_left(), Budget::UNLIMITED);
    drop(session);
    let session = engine.open("s", poor()).unwrap();
    assert_eq!(session.budget_left(), Budget::calls(0));
    assert_eq!(engine.session("s").budget_left(), Budget::calls(0), "`session` finds the open one");
    // A call that is still at work keeps its session open.
    let (rich, call) = (engine.open("t", SessionOptions::default()).unwrap(), call("a", "read", 10, "ok"));
    let running = tokio::spawn({
        let rich = rich.clone();
        async move { rich.call(call).await }
    });
    drop(rich);
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(is_taken(engine, "t", SessionOptions::default()));
    running.await.unwrap();
    assert!(is_taken(engine, "@engine", SessionOptions::default()));
    engine.shutdown(Drain::default()).await;
    assert!(
        engine.open("later", SessionOptions::default()).is_ok(),
        "its calls are refused, as those of any session"
    );
    yard.events.check();
}

/// SM-8: of many that open one name at once, one gets it; of many that fork one name at once, too.
#[tokio::test]
async fn one_of_many_gets_the_name() {
    let yard = yard(|builder, _| builder).await;
    let (session, runtime) = (yard.engine.session("parent"), Handle::current());
    for round in 0..50 {
        let start = Arc::new(Barrier::new(4));
        let race = |_| {
            let (engine, session, start) = (yard.engine.clone(), session.clone(), start.clone());
            let runtime = runtime.clone();
            thread::spawn(move || {
                let _inside = runtime.enter();
                start.wait();
                let opened = engine.open(format!("s{round}"), SessionOptions::default()).ok();
                (opened, session.fork(named("a")).ok())
            })
        };
        let racers: Vec<_> = (0..4).map(race).collect();
        let got: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
        let opened = got.iter().filter(|(session, _)| session.is_some()).count();
        let forked = got.iter().filter(|(_, fork)| fork.is_some()).count();
        assert_eq!((opened, forked), (1, 1));
    }
    yard.events.check();
}

/// SM-8: a session that nobody has named shares its name with no other, of this engine or of another.
#[tokio::test(start_paused = true)]
async fn unnamed_sessions_have_names_of_their_own() {
    let (one, other) = (yard(|builder, _| builder).await, yard(|builder, _| builder).await);
    let taken = one.engine.session(format!("session-{}-2", one.engine.epoch()));
    let sessions: Vec<Session> = [&one, &one, &other]
        .map(|yard| yard.engine.open_unnamed(SessionOptions::default()))
        .into_iter()
        .chain([taken])
        .collect();
    let mut names: Vec<_> = sessions.iter().map(|session| session.id().to_string()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 4, "{names:?}");
}

/// SM-8: a sub-agent has its name in events, and its parent finds it by that, or by its number.
#[tokio::test(start_paused = true)]
async fn a_parent_finds_its_sub_agents() {
    let yard =
        yard(|builder, _| {
            let who = tool_fn(ToolSpec::read("who"), |(): (), cx: ToolContext| async move {
                Ok(cx.agent().to_string())
            });
            builder.tool(who)
        })
        .await;
    let session = yard.engine.session("s");
    let researcher = session.fork(named("researcher")).unwrap();
    let below = researcher.fork(named("researcher")).unwrap();
    let first = session.fork(ForkPolicy::default()).unwrap();
    let who = |agent: Session| async move { agent.call(Call::new("a", "who", "{}")).await.to_text() };
    assert_eq!(who(session.sub_agent("researcher").unwrap()).await, "root/researcher");
    assert_eq!(who(researcher.sub_agent("researcher").unwrap()).await, "root/researcher/researcher");
    assert_eq!(who(session.sub_agent("1").unwrap()).await, "root/1");
    assert!(session.sub_agent("root").is_none() && below.sub_agent("researcher").is_none());
    drop((researcher, below, first));
    assert!(session.sub_agent("researcher").is_none() && session.sub_agent("1").is_none());
    let again = session.fork(named("researcher")).unwrap();
    assert_eq!(
        session.fork(ForkPolicy::default()).unwrap().agent().as_str(),
        "root/2",
        "names take no numbers"
    );
    assert_eq!(session.fork(named("researcher")).unwrap_err(), ForkError::NameTaken);
    drop(again);
    let forks = yard.events.events().into_iter().filter_map(|event| match event.kind {
        EventKind::AgentForked { child } => Some(format!("+{child}")),
        EventKind::AgentJoined { child } => Some(format!("-{child}")),
        _ => None,
    });
    let of_name: Vec<_> = forks.filter(|fork| fork[1..] == *"root/researcher").collect();
    assert_eq!(of_name, ["+root/researcher", "-root/researcher", "+root/researcher", "-root/researcher"]);
    yard.events.check();
}

/// SM-8: a handler finds the sub-agents of its agent. One that a handler made ends with its call, and with it ends its
/// claim to the name, whoever still holds it.
#[tokio::test(start_paused = true)]
async fn a_name_ends_with_the_call_that_gave_it() {
    let kept = Arc::new(parking_lot::Mutex::new(Vec::<Session>::new()));
    let yard = yard(|builder, _| {
        let keep = kept.clone();
        let spawns = tool_fn(ToolSpec::write("spawns"), move |(): (), cx: ToolContext| {
            let keep = keep.clone();
            async move {
                let agent = cx.fork(named("helper"))?;
                let outcome = cx.sub_agent("helper").unwrap().call(call("in", "read", 0, "ok")).await;
                assert_eq!(cx.fork(named("helper")).unwrap_err(), ForkError::NameTaken);
                keep.lock().push(agent);
                Ok::<_, ToolError>(outcome.to_text())
            }
        });
        builder.tool(spawns)
    })
    .await;
    let session = yard.engine.session("s");
    for round in 1..=3 {
        let outcomes = session.dispatch(vec![Call::new("a", "spawns", "{}")]).await;
        assert_eq!(shape(&outcomes), "a ok");
        assert_eq!(kept.lock().len(), round);
        assert!(session.sub_agent("helper").is_none());
    }
    yard.events.check();
}

/// SM-8: what cannot be a name is refused, and the name of nothing is free.
#[tokio::test(start_paused = true)]
async fn bad_names_are_refused() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let long = "a".repeat(129);
    for name in ["", "1", "1a", "a/b", "..", ".a", "-", "a b", "a\n", "é", "aé", &long] {
        assert_eq!(session.fork(named(name)).unwrap_err(), ForkError::BadName, "{name}");
    }
    for name in ["a", "Z.9_-", &long[1..]] {
        assert_eq!(session.fork(named(name)).unwrap().agent().name(), name);
    }
    yard.events.check();
}

/// Holds the end of a sub-agent while it is announced, until another one is about to be made.
#[derive(Clone, Default)]
struct HoldsEnds {
    joins: Arc<AtomicBool>,
    goes_on: Arc<AtomicBool>,
}

impl EventSink for HoldsEnds {
    fn accept(&self, event: &Event) {
        if event.kind.name() == "agent.joined" {
            self.joins.store(true, Ordering::SeqCst);
            while !self.goes_on.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            // Whoever wants the name has time to find it taken.
            (0..100).for_each(|_| std::thread::yield_now());
        }
    }
}

/// SM-8: a name is free again when its agent has ended, also while another thread is still announcing that.
#[tokio::test]
async fn a_name_is_free_while_the_end_of_its_agent_is_announced() {
    let holds = HoldsEnds::default();
    let engine = Engine::builder().events(holds.clone()).build().await.unwrap();
    let session = engine.session("demo");
    let agent = session.fork(named("researcher")).unwrap();
    let ends = std::thread::spawn(move || drop(agent));
    while !holds.joins.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    holds.goes_on.store(true, Ordering::SeqCst);
    let again = session.fork(named("researcher"));
    assert_eq!(again.unwrap().agent().as_str(), "root/researcher");
    ends.join().unwrap();
}
