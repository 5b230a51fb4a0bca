//! Sessions, agents and tools.

use crate::{
    events::Events,
    yard::{CALLER, OPERATOR, OTHER, Yard, call},
};
use serde_json::{Value, json};

/// HT-7: a session belongs to the token that opened it; for another caller there is none, and for an operator there is.
#[tokio::test]
async fn a_session_belongs_to_its_token() {
    let yard = Yard::open().await;
    let opened = yard.post(CALLER, "/sessions", json!({"id": "a"})).await;
    assert_eq!(opened.headers["location"], "/sessions/a");
    assert_eq!(opened.with(201)["owner"], "caller");
    assert_eq!(yard.post(OTHER, "/sessions", json!({"id": "a"})).await.problem(409), "session_open");
    for path in [
        "/sessions/a",
        "/sessions/a/turns/1",
        "/sessions/a/confirmations",
        "/sessions/a/events",
        "/sessions/a/tools",
    ] {
        assert_eq!(yard.get(OTHER, path).await.problem(404), "not_found", "{path}");
    }
    assert_eq!(yard.delete(OTHER, "/sessions/a").await.problem(404), "not_found");
    let turn = json!({"calls": [call("1", "echo", json!({}))]});
    assert_eq!(yard.post(OTHER, "/sessions/a/turns", turn).await.problem(404), "not_found");
    assert_eq!(yard.get(OTHER, "/sessions").await.with(200)["sessions"], json!([]));
    assert_eq!(yard.get(OPERATOR, "/sessions").await.with(200)["sessions"][0]["id"], "a");
    assert_eq!(yard.get(OPERATOR, "/sessions/a").await.with(200)["state"], "open");
    yard.close().await;
}

/// HT-7: names, roles and workspaces are those that a token may have, and what is wrong is pointed at.
#[tokio::test]
async fn what_a_body_asks_for_is_within_what_its_token_may() {
    let yard = Yard::open().await;
    for (body, pointer) in [
        (json!({"id": "../a"}), "/id"),
        (json!({"id": ".."}), "/id"),
        (json!({"id": "x".repeat(129)}), "/id"),
        (json!({"role": "admin"}), "/role"),
        (json!({"workspace": "/etc"}), "/workspace"),
        (json!({"capabilities": {"fs": ["r:docs", "x:out"]}}), "/capabilities/fs/1"),
        (json!({"limits": {"max_in_flight": 0}}), "/limits/max_in_flight"),
        (json!({"nonsense": 1}), "/nonsense"),
    ] {
        let refused = yard.post(CALLER, "/sessions", body.clone()).await;
        assert_eq!(refused.problem(422), "invalid", "{body}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{body}");
    }
    let body = json!({"role": "builder", "capabilities": {"tools": ["echo"]}});
    let opened = yard.post(CALLER, "/sessions", body).await.with(201);
    assert_eq!(opened["role"], "builder");
    let tools =
        yard.get(CALLER, &format!("/sessions/{}/tools", opened["id"].as_str().unwrap())).await.with(200);
    assert_eq!(tools.as_array().unwrap().len(), 1, "{tools}");
    yard.close().await;
}

/// SC-1: a session that is closed cancels its calls, and its name is free once they have ended.
#[tokio::test]
async fn closing_cancels_and_frees_the_name() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let turn = yard.turn("a", json!([call("1", "gate", json!({}))])).await;
    yard.delete(CALLER, "/sessions/a").await.with(202);
    assert_eq!(turn, 1);
    loop {
        let again = yard.post(CALLER, "/sessions", json!({"id": "a"})).await;
        match again.status.as_u16() {
            201 => break,
            _ => assert_eq!(again.problem(409), "session_open"),
        }
        // Whoever closes looks for those that have closed.
        yard.delete(CALLER, "/sessions/a").await;
    }
    yard.close().await;
}

/// CL-7: agents are forks, which are named in paths, and their turns belong to them.
#[tokio::test]
async fn agents_are_forks() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let forked = yard.post(CALLER, "/sessions/a/agents", json!({"name": "researcher"})).await.with(201);
    assert_eq!(forked["agent"], "root/researcher");
    let taken = yard.post(CALLER, "/sessions/a/agents", json!({"name": "researcher"})).await;
    assert_eq!(taken.problem(409), "not_forked");
    let below =
        yard.post(CALLER, "/sessions/a/agents?agent=root/researcher", json!({"only_tools": ["echo"]})).await;
    assert_eq!(below.with(201)["agent"], "root/researcher/1");
    let batch = json!({"calls": [call("1", "echo", json!({"x": 1}))]});
    let turn =
        yard.post(CALLER, "/sessions/a/turns?agent=root/researcher/1&wait=60", batch.clone()).await.with(200);
    assert_eq!((&turn["agent"], &turn["state"]), (&json!("root/researcher/1"), &json!("ended")));
    assert_eq!(yard.post(CALLER, "/sessions/a/turns?agent=root/9", batch).await.problem(404), "not_found");
    let tools = yard.get(CALLER, "/sessions/a/tools?agent=root/researcher/1&as=openai").await.with(200);
    assert_eq!(tools[0]["function"]["name"], "echo");
    assert_eq!(tools.as_array().unwrap().len(), 1);
    yard.close().await;
}

/// HT-10: how many sessions a token has is bounded, apart from those of others.
#[tokio::test]
async fn sessions_of_a_token_are_bounded() {
    let yard = Yard::bounded(|bounds| bounds.sessions_max = 2).await;
    yard.session("a").await;
    yard.session("b").await;
    let refused = yard.post(CALLER, "/sessions", json!({})).await;
    assert_eq!(refused.problem(429), "too_many");
    assert!(refused.headers.contains_key("retry-after"));
    yard.post(OTHER, "/sessions", json!({})).await.with(201);
    yard.close().await;
}

/// RT-11: an operator sees what is used of the budgets of sessions, and that no tool has a rate.
#[tokio::test]
async fn an_operator_sees_budgets() {
    let yard = Yard::open().await;
    let limits = json!({"session_calls": 5});
    yard.post(CALLER, "/sessions", json!({"id": "a", "limits": limits})).await.with(201);
    let turn = yard.turn("a", json!([call("1", "echo", json!({}))])).await;
    yard.ended("a", turn).await;
    let status = yard.get(OPERATOR, "/status").await.with(200);
    let budget = json!({"session": "a", "of": "session", "calls": {"used": 1, "limit": 5}, "cost": null});
    assert_eq!((&status["budgets"], &status["rates"]), (&json!([budget]), &json!([])));
    yard.close().await;
}

/// HT-7: whoever has the name of a session that was somebody else's reads nothing of that one.
#[tokio::test]
async fn a_name_that_is_taken_again_has_no_past() {
    let yard = Yard::open().await;
    yard.session("a").await;
    yard.post(CALLER, "/sessions/a/calls", call("1", "echo", json!({"secret": 1}))).await.with(200);
    yard.delete(CALLER, "/sessions/a").await.with(202);
    while yard.post(OTHER, "/sessions", json!({"id": "a"})).await.status != 201 {
        tokio::task::yield_now().await;
    }
    let mut events = Events::open(&yard, OTHER, "/sessions/a/events?after=0", None).await;
    yard.post(OTHER, "/sessions/a/calls", call("1", "echo", json!({}))).await.with(200);
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "turn.ended") {
        let event = events.next().await.unwrap().data;
        assert!(!event.to_string().contains("secret"), "{event}");
        kinds.push(event["event"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds.iter().filter(|kind| *kind == "session.opened").count(), 1, "{kinds:?}");
    yard.close().await;
}

/// HT-7: the smaller of what the engine, the token and the body say counts, for what may be spent and what runs at once.
#[tokio::test]
async fn the_smallest_limit_counts() {
    use toolyard::{Budget, Budgets};
    let budgets = Budgets::default().session(Budget::calls(2));
    let yard = Yard::over(|builder| builder.budgets(budgets).max_in_flight(2), |options| options).await;
    let open = async |id: &str, limits: Value| {
        yard.post(CALLER, "/sessions", json!({"id": id, "limits": limits})).await.with(201);
        let calls: Vec<_> = (0..3).map(|at| call(&at.to_string(), "echo", json!({}))).collect();
        let turn = yard.turn(id, calls.into()).await;
        let results = yard.ended(id, turn).await["results"]["results"].take();
        results.as_array().unwrap().iter().filter(|result| result["status"] == "ok").count()
    };
    assert_eq!(open("none", json!({})).await, 2);
    assert_eq!(open("more", json!({"session_calls": 100, "max_in_flight": 100})).await, 2);
    assert_eq!(open("less", json!({"session_calls": 1})).await, 1);
    yard.close().await;
}

/// HT-4: a session in which a single call runs is not idle, however long that takes.
#[tokio::test]
async fn a_running_call_keeps_its_session() {
    let yard = Yard::bounded(|bounds| {
        (bounds.idle_timeout, bounds.turns_open_max) = (std::time::Duration::ZERO, 1);
    })
    .await;
    yard.session("a").await;
    let body = call("1", "gate", json!({}));
    let mut running = Box::pin(yard.post(CALLER, "/sessions/a/calls", body.clone()));
    // It runs as soon as another one has no room beside it.
    loop {
        assert!(futures::poll!(&mut running).is_pending());
        let second = yard.post(CALLER, "/sessions/a/calls", call("2", "echo", json!({}))).await;
        match second.status.as_u16() {
            429 => break,
            _ => drop(second.with(200)),
        }
    }
    yard.server.sweep();
    yard.gate.add_permits(1);
    assert_eq!(running.await.with(200)["success"], true);
    yard.server.sweep();
    let closed = yard.post(CALLER, "/sessions/a/calls", body).await;
    assert!(["session_closing", "not_found"].contains(&closed.code()), "{closed:?}");
    yard.close().await;
}

/// HT-7: sessions have what their token may, without asking, and a workspace that is named for both.
#[tokio::test]
async fn a_token_bounds_its_sessions() {
    use toolyard::{Capabilities, ConfirmationMode, Confirmations, SideEffects};
    use toolyard_server::{Scope, SecretHash, Token};
    let token = Token::new("narrow", SecretHash::of("narrow"), [Scope::Call])
        .capabilities(Capabilities::default().tools(["echo", "save"]))
        .confirmations(Confirmations::auto().side_effects(SideEffects::None, ConfirmationMode::Deny))
        .workspaces(["there", "nowhere"]);
    let yard = Yard::with(|options| options.token(token).workspace("there", |session| session)).await;
    let opened = yard.post("narrow", "/sessions", json!({"id": "n", "workspace": "there"})).await.with(201);
    assert_eq!(opened["workspace"], "there");
    let nowhere = yard.post("narrow", "/sessions", json!({"workspace": "nowhere"})).await;
    assert_eq!(nowhere.problem(422), "invalid");
    let code = async |name: &str| {
        let outcome = yard.post("narrow", "/sessions/n/calls", call("1", name, json!({"path": "x"}))).await;
        outcome.with(200)["error"]["code"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(code("gate").await, "permission_denied");
    assert_eq!(code("echo").await, "user_denied", "its confirmations are stricter than the engine's");
    yard.close().await;
}

/// Sessions are listed page by page, each once.
#[tokio::test]
async fn sessions_are_listed_by_pages() {
    let yard = Yard::open().await;
    for number in 0..150 {
        yard.session(&format!("s{number:03}")).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = yard.get(CALLER, &format!("/sessions{cursor}")).await.with(200);
        let ids = page["sessions"].as_array().unwrap().iter().map(|session| session["id"].to_string());
        seen.extend(ids);
        match page["next"].as_str() {
            Some(next) => cursor = format!("?cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 150);
    assert!(seen.is_sorted(), "{seen:?}");
    yard.close().await;
}
