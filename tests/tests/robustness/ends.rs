//! What waits for an engine ends with it: readers of events, people at a desk, watchers of the registry.

use crate::{SECOND, no_hang};
use std::sync::{Arc, OnceLock};
use toolyard::{
    ApprovalDesk, ApprovalRequest, Approver, Confirmations, Drain, Engine, Received, ToolContext, ToolSpec,
    async_trait, tool_fn,
};
use toolyard_tests::{call, shape, yard};

/// OB-3, SC-8: a reader of events ends at the shutdown, with the last event, though a tool holds the engine.
#[tokio::test(start_paused = true)]
async fn a_subscription_ends_at_the_shutdown() {
    let itself = Arc::new(OnceLock::<Engine>::new());
    let of = itself.clone();
    let lists = tool_fn(ToolSpec::pure("lists"), move |(): (), _: ToolContext| {
        let engine = of.get().unwrap().clone();
        async move { Ok(engine.registry().list().len().to_string()) }
    });
    let engine = Engine::builder().tool(lists).build().await.unwrap();
    itself.set(engine.clone()).unwrap();
    let mut events = engine.subscribe();
    let reader = tokio::spawn(async move {
        let mut last = None;
        while let Some(received) = events.next().await {
            last = Some(received);
        }
        (last, events.next().await.is_none(), events.try_next().is_none())
    });
    engine.session("s").call(call("a", "lists", 0, "ok")).await;
    engine.shutdown(Drain::default()).await;
    drop(engine);
    let (last, stays, is_empty) = no_hang(reader).await.unwrap();
    let Some(Received::Event(last)) = last else { panic!("{last:?}") };
    assert_eq!(last.kind.name(), "engine.drain");
    assert!(stays && is_empty);
}

/// OB-3: after the shutdown a reader still gets what it has not read, and then the end.
#[tokio::test(start_paused = true)]
async fn a_late_reader_gets_the_last_events_and_the_end() {
    let yard = yard(|builder, _| builder).await;
    let mut events = yard.engine.subscribe();
    yard.engine.session("s").call(call("a", "read", 0, "ok")).await;
    yard.engine.shutdown(Drain::default()).await;
    let mut names = Vec::new();
    while let Some(Received::Event(event)) = no_hang(events.next()).await {
        names.push(event.kind.name());
    }
    assert!(names.contains(&"tool.completed"), "{names:?}");
    assert_eq!(names.last(), Some(&"engine.drain"));
    assert!(no_hang(yard.engine.subscribe().next()).await.is_none());
    yard.events.check();
}

/// PO-4, SC-8: everyone who waits at a desk goes home at the shutdown, and the open question is withdrawn.
#[tokio::test(start_paused = true)]
async fn a_desk_closes_at_the_shutdown() {
    let desk = ApprovalDesk::default();
    let yard =
        yard(|builder, _| builder.confirmations(Confirmations::default()).approver(desk.clone())).await;
    let person = || {
        let desk = desk.clone();
        tokio::spawn(async move {
            let mut seen = 0;
            while desk.next().await.is_some() {
                seen += 1;
            }
            seen
        })
    };
    let people = [person(), person()];
    let session = yard.engine.session("s");
    let asked = tokio::spawn(async move { session.dispatch(vec![call("a", "serial", 0, "ok")]).await });
    tokio::time::sleep(SECOND).await;
    assert_eq!(desk.pending().len(), 1);
    yard.engine.shutdown(Drain::default()).await;
    let [a, b] = people;
    assert_eq!(no_hang(a).await.unwrap() + no_hang(b).await.unwrap(), 1);
    assert_eq!(shape(&no_hang(asked).await.unwrap()), "a shutting_down");
    assert!(no_hang(desk.next()).await.is_none());
    yard.events.check();
}

/// PO-4: an engine that is dropped without a shutdown closes its desk too.
#[tokio::test(start_paused = true)]
async fn a_desk_closes_with_its_engine() {
    let desk = ApprovalDesk::default();
    let engine = Engine::builder().approver(desk.clone()).build().await.unwrap();
    let session = engine.session("s");
    let person = tokio::spawn(async move { desk.next().await.is_none() });
    drop(engine);
    drop(session);
    assert!(no_hang(person).await.unwrap());
}

/// PO-4: an approver that panics when it is told of the end disturbs no shutdown.
#[tokio::test(start_paused = true)]
async fn an_approver_that_panics_at_the_end_disturbs_nothing() {
    struct Clings;
    #[async_trait]
    impl Approver for Clings {
        async fn ask(&self, _: &ApprovalRequest) -> toolyard::Answer {
            toolyard::Answer::deny("ada")
        }

        fn no_more_questions(&self) {
            panic!("not yet");
        }
    }
    let yard = yard(|builder, _| builder.approver(Arc::new(Clings))).await;
    assert_eq!(yard.engine.shutdown(Drain::default()).await.abandoned, 0);
    yard.events.check();
}

/// SC-8: who watches the tools learns of each change, and at the shutdown that there will be none.
#[tokio::test(start_paused = true)]
async fn a_watch_of_the_tools_ends_at_the_shutdown() {
    let engine = Engine::builder().build().await.unwrap();
    let mut changes = engine.registry().watch();
    let watcher = tokio::spawn(async move {
        let mut told = 0;
        while changes.changed().await.is_ok() {
            told += 1;
        }
        told
    });
    let nothing = || tool_fn(ToolSpec::pure("nothing"), |(): (), _: ToolContext| async { Ok("") });
    tokio::task::yield_now().await;
    engine.registry().register(nothing()).unwrap();
    tokio::task::yield_now().await;
    engine.shutdown(Drain::default()).await;
    assert_eq!(no_hang(watcher).await.unwrap(), 1);
    let mut late = engine.registry().watch();
    assert_eq!(*late.borrow(), 1);
    assert!(engine.registry().unregister("nothing"));
    assert!(no_hang(late.changed()).await.is_err());
}
