//! What the digest of a call covers (SM-7).

use super::no_hang;
use serde_json::json;
use std::sync::Arc;
use toolyard::{
    Answer, ApprovalDesk, Arguments, Call, CallDigest, Caller, Capabilities, Confirmations, Denied,
    EngineBuilder, EventKind, FsGrant, FsMode, Grant, PolicyRules, Rule, RuntimePolicy, SessionOptions,
    ToolSpec,
};
use toolyard_tests::{Recorder, call, scripted, shape, yard};

/// The digest of one call in an engine that is built like this, in session `s`.
async fn digest(build: impl FnOnce(EngineBuilder) -> EngineBuilder, options: SessionOptions) -> CallDigest {
    let yard = yard(|builder, _| build(builder)).await;
    let session = yard.engine.session_with("s", options);
    assert_eq!(shape(&session.dispatch(vec![call("c", "serial", 0, "ok")]).await), "c ok");
    let received = yard.events.events().into_iter().find_map(|event| match event.kind {
        EventKind::Received { .. } => event.kind.digest(),
        _ => None,
    });
    received.unwrap()
}

fn rules() -> PolicyRules {
    PolicyRules::new(Rule::allow()).tool("a", Rule::Deny).tool("b", Rule::Deny)
}

fn may() -> Capabilities {
    Capabilities::default().tools(["serial", "read"])
}

/// SM-7: equal content gives equal digests in two engines, whatever the order in which it was said.
#[tokio::test(start_paused = true)]
async fn equal_content_gives_equal_digests() {
    let one = digest(
        |it| it.policy(rules()).capabilities(may()).confirmations(Confirmations::auto()),
        SessionOptions::default(),
    );
    let other_rules = PolicyRules::new(Rule::allow()).tool("b", Rule::Deny).tool("a", Rule::Deny);
    let other_may = Capabilities::default().tools(["read", "serial"]);
    let other = digest(
        |it| it.policy(other_rules),
        SessionOptions::default().capabilities(other_may).confirmations(Confirmations::auto()),
    );
    assert_eq!(one.await, other.await);
}

/// SM-7: every other policy, capability, confirmation and sandbox gives another digest.
#[tokio::test(start_paused = true)]
async fn any_difference_gives_another_digest() {
    let auto = Confirmations::auto;
    let plain = SessionOptions::default;
    let digests = [
        digest(|it| it.policy(rules()).confirmations(auto()), plain()).await,
        digest(|it| it.policy(rules().tool("c", Rule::Deny)).confirmations(auto()), plain()).await,
        digest(
            |it| it.policy(rules().tool("serial", Rule::Allow(Grant::host()))).confirmations(auto()),
            plain(),
        )
        .await,
        digest(|it| it.policy(rules()).confirmations(auto()).capabilities(may()), plain()).await,
        digest(|it| it.policy(rules()).confirmations(auto()), plain().capabilities(may().fs([]))).await,
        digest(
            |it| it.policy(rules()).confirmations(auto()),
            plain().capabilities(may().fs([FsGrant::new(FsMode::Read, ".").unwrap()])),
        )
        .await,
        digest(
            |it| it.policy(rules()).confirmations(auto().tool("x", toolyard::ConfirmationMode::Deny)),
            plain(),
        )
        .await,
        digest(|it| it.policy(rules()).confirmations(auto()), plain().confirmations(auto().trust("/a")))
            .await,
    ];
    let different: std::collections::BTreeSet<_> = digests.into_iter().collect();
    assert_eq!(different.len(), digests.len());
}

/// Allows everything, and does not say what it is.
struct Nameless;

impl RuntimePolicy for Nameless {
    fn check(&self, _: &ToolSpec, _: &serde_json::Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        Ok(Grant::own_form())
    }
}

/// SM-7: without a fingerprint, the digest is good in this life of the engine and under this version of the policy.
#[tokio::test(start_paused = true)]
async fn without_a_fingerprint_a_digest_is_good_in_one_life() {
    let of = |seed| digest(move |it| it.policy(Nameless).seed(seed), SessionOptions::default());
    assert_ne!(of(1).await, of(2).await, "another life");

    let yard = yard(|builder, _| builder.policy(Nameless)).await;
    let session = yard.engine.session("s");
    let call = || vec![call("c", "serial", 0, "ok")];
    session.dispatch(call()).await;
    session.dispatch(call()).await;
    yard.engine.set_policy(Nameless);
    session.dispatch(call()).await;
    let digests = called(&yard.events);
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[1], digests[2], "another version");
}

/// The digests of the calls that ran.
fn called(events: &Recorder) -> Vec<CallDigest> {
    let called = events.events().into_iter().filter_map(|event| match event.kind {
        EventKind::Called { .. } => event.kind.digest(),
        _ => None,
    });
    called.collect()
}

/// CC-4: events keep short arguments for whoever asks for the digest, and no long ones.
#[tokio::test(start_paused = true)]
async fn events_keep_no_long_arguments() {
    for (length, kept) in [(10, true), (10_000, false)] {
        let yard = yard(|builder, _| builder).await;
        let args = Arc::new(json!({"ms": 0, "end": "x".repeat(length)}));
        let call = Call::with_arguments("c", "serial", Arguments::Json(args.clone()));
        yard.engine.session("s").dispatch(vec![call]).await;
        assert_eq!(Arc::strong_count(&args) > 1, kept, "{length} bytes");
    }
}

/// PO-4: a call has one digest, whether it is made at once or when somebody asks.
#[tokio::test(start_paused = true)]
async fn a_digest_is_the_same_whenever_it_is_made() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    for text in [r#"{"ms": 0, "end": "ok"}"#.to_owned(), format!(r#"{{"ms": 0, {:600}"end": "ok"}}"#, "")] {
        let outcomes = session.dispatch(vec![Call::new("c", "serial", text)]).await;
        assert_eq!(shape(&outcomes), "c ok");
    }
    let digests = called(&yard.events);
    assert_eq!(digests[0], digests[1]);
}

/// SM-7: a fingerprint that panics is none, and stops nobody.
#[tokio::test(start_paused = true)]
async fn a_fingerprint_that_panics_is_none() {
    struct Panics;
    impl RuntimePolicy for Panics {
        fn check(&self, _: &ToolSpec, _: &serde_json::Value, _: &Caller<'_>) -> Result<Grant, Denied> {
            Ok(Grant::own_form())
        }

        fn fingerprint(&self) -> Option<[u8; 32]> {
            panic!("scripted panic")
        }
    }
    let of = |seed| digest(move |it| it.policy(Panics).seed(seed), SessionOptions::default());
    assert_eq!(of(1).await, of(1).await);
    assert_ne!(of(1).await, of(2).await);
}

/// SM-7: an answer, and a call that was approved, hold over the replacement of a policy by an equal one.
#[tokio::test(start_paused = true)]
async fn an_approval_holds_under_an_equal_policy() {
    let desk = ApprovalDesk::default();
    let yard = yard(|builder, _| {
        builder.policy(rules()).confirmations(Confirmations::default()).approver(desk.clone())
    })
    .await;
    let session = yard.engine.session("s");
    let person = async {
        let [first, second] = super::questions(&desk).await;
        yard.engine.set_policy(rules());
        desk.answer(first.id(), first.digest(), Answer::allow("ada")).await.unwrap();
        desk.answer(second.id(), second.digest(), Answer::allow("ada")).await.unwrap();
        yard.engine.set_policy(rules());
    };
    let batch = vec![call("a", "serial", 1000, "ok"), call("b", "serial", 0, "ok")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a ok, b ok");
    yard.events.check();
}

/// SM-7: forks of other capabilities have other digests, and those that narrow nothing have the same.
#[tokio::test(start_paused = true)]
async fn a_fork_has_the_digests_of_what_it_may_do() {
    let yard = yard(|builder, log| {
        builder.tool(scripted(ToolSpec::write("more"), log)).confirmations(Confirmations::auto())
    })
    .await;
    let session = yard.engine.session("s");
    let same = session.fork(toolyard::ForkPolicy::default()).unwrap();
    let narrower = session.fork(toolyard::ForkPolicy::default().capabilities(may())).unwrap();
    for agent in [&session, &same, &narrower] {
        agent.dispatch(vec![call("c", "serial", 0, "ok")]).await;
    }
    let digests = called(&yard.events);
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[0], digests[2]);
}
