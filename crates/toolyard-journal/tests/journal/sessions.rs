//! JR-10: what is known of sessions, so that the next engine can open them as they were.

use crate::{
    both::{Both, both, life},
    scene::Scene,
};
use toolyard::{Batch, ForkPolicy, PastSession, Session, SessionId, SessionOptions};
use toolyard_tests::{Ledger, Yard, call, yard};

fn opened(yard: &Yard, name: &str, description: &str) -> Session {
    yard.engine.open(name, SessionOptions::default().described(description)).unwrap()
}

/// Opens sessions, makes agents, brings a request, and cancels one session as a whole, each durable before the next.
async fn story(yard: &Yard) {
    let ada = opened(yard, "ada", "first");
    ada.recorded().await.unwrap();
    let writer = ada.fork(ForkPolicy::default().name("writer").described("writes")).unwrap();
    let below = writer.fork(ForkPolicy::default().name("a").described("below")).unwrap();
    below.recorded().await.unwrap();
    ada.fork(ForkPolicy::default().described("nobody finds it")).unwrap().recorded().await.unwrap();
    let batch = |id: &str| Batch::new(vec![call(id, "read", 0, "ok")]);
    ada.dispatch(batch("1").of_request("request")).await;
    writer.dispatch(batch("2").of_request("of an agent")).await;
    let bob = opened(yard, "bob", "second");
    bob.fork(ForkPolicy::default().name("gone")).unwrap().recorded().await.unwrap();
    bob.cancel();
    bob.recorded().await.unwrap();
    yard.engine.open_unnamed(SessionOptions::default().described("unnamed")).recorded().await.unwrap();
}

/// What the engine of a journal finds; what its model finds is compared with it.
fn found(recorder: &Both, yard: &Yard) -> Vec<PastSession> {
    for name in ["ada", "bob", "nobody"] {
        let past = yard.engine.past_session(&SessionId::from(name)).unwrap();
        assert!(name != "nobody" || past.is_none(), "{past:?}");
    }
    let earlier = yard.engine.past_epochs().unwrap();
    assert!(earlier.len() <= 1 && !earlier.contains(&yard.engine.epoch()), "{earlier:?}");
    for request in ["request", "of an agent", "of nobody"] {
        toolyard::Recorder::past_request(recorder, &SessionId::from("ada"), request).unwrap();
    }
    yard.engine.past_sessions().unwrap()
}

/// JR-10: wherever an engine ends, the next one finds the sessions that nobody has cancelled, with what they were described by
/// and their named agents, and what requests have brought, as the model does.
#[tokio::test]
async fn sessions_are_found_as_they_were() {
    for records in 0.. {
        let (scene, model) = (Scene::new(), Ledger::default());
        let first = both(&scene, &model, records);
        let yard = life(&first).await;
        let is_over = tokio::select! {
            () = story(&yard) => true,
            () = first.cut.notified() => false,
        };
        first.journal.close().unwrap();
        let second = both(&scene, &model, usize::MAX);
        let next = life(&second).await;
        let open = found(&second, &next);
        if !is_over {
            second.journal.close().unwrap();
            continue;
        }
        let names: Vec<_> = open.iter().map(|past| past.session.as_str()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!((names[0], open[0].description.as_deref()), ("ada", Some("first")));
        let agents: Vec<_> =
            open[0].agents.iter().map(|it| (it.agent.as_str(), it.description.as_deref())).collect();
        assert_eq!(agents, [("root/writer", Some("writes")), ("root/writer/a", Some("below"))]);
        assert_eq!((open[1].is_named, open[1].description.as_deref()), (false, Some("unnamed")));
        let ada = opened(&next, "ada", "again");
        let brought = ada.past_request("request").unwrap().unwrap();
        assert_eq!((brought.turn, brought.calls[0].id.as_str(), brought.agent.as_str()), (1, "1", "root"));
        assert_eq!(ada.past_request("of an agent").unwrap().unwrap().agent.as_str(), "root/writer");
        assert!(ada.past_request("of nobody").unwrap().is_none());
        let gone = next.engine.past_session(&SessionId::from("bob")).unwrap().unwrap();
        assert!(gone.is_cancelled && gone.agents.is_empty(), "{gone:?}");
        // Opened again, and not all of its agents made again by then: they are known still.
        ada.recorded().await.unwrap();
        let open = found(&second, &next);
        let again = open.iter().find(|past| past.session.as_str() == "ada").unwrap();
        assert_eq!((again.description.as_deref(), again.agents.len()), (Some("again"), 2));
        second.journal.close().unwrap();
        return;
    }
}

/// JR-10, JR-13: of a session that is opened again in life after life, and idle, there are two records at most; it is found as it
/// was. One that was worked in, or has closed its name, stays.
#[tokio::test]
async fn an_idle_session_does_not_grow() {
    let scene = Scene::new();
    for life_number in 1..=6 {
        let recorder = scene.open();
        let yard = yard(|builder, _| builder.recorder(recorder.clone())).await;
        let idle = opened(&yard, "idle", "first");
        idle.fork(ForkPolicy::default().name("writer")).unwrap().recorded().await.unwrap();
        let busy = opened(&yard, "busy", "second");
        busy.dispatch(Batch::new(vec![call("1", "read", 0, "ok")])).await;
        let closed = opened(&yard, "closed", "third");
        closed.cancel();
        closed.recorded().await.unwrap();
        recorder.close().unwrap();
        let all = scene.reader().sessions().unwrap();
        let count = |name: &str| all.iter().filter(|row| row.session.as_str() == name).count();
        assert_eq!(
            [count("idle"), count("busy"), count("closed")],
            [life_number.min(2), life_number, life_number]
        );
        let next = scene.open();
        let past = toolyard::Recorder::past_session(&next, &SessionId::from("idle")).unwrap().unwrap();
        assert_eq!((past.description.as_deref(), past.agents.len()), (Some("first"), 1));
        let past = toolyard::Recorder::past_session(&next, &SessionId::from("closed")).unwrap().unwrap();
        assert!(past.is_cancelled);
        next.close().unwrap();
    }
    assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
}
