//! What a model was given, it can use: results keep what only looks like a secret (PO-7).

use crate::Traced;
use serde_json::{Value, json};
use std::{fs, path::Path};
use toolyard::{Call, Outcome, Redactor, Session, ToolContext, ToolError, ToolOutput, ToolSpec, tool_fn};
use toolyard_tests::{Yard, listen, yard};

/// A source file with everything that patterns look for.
const SOURCE: &str = r#"password="correct-horse-9"
api_key = 'k3yK3yK3y'
url = "postgres://ada:swordfish@db/x"  # password: https://example.org/reset7
PWD=/srv/site
token = "ghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3"
-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBg
-----END PRIVATE KEY-----
last = 1
"#;

/// A token as a login returns it.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N";

/// An engine with the file tools in a workspace with `app.py`, and a service that wants its own token back.
pub(crate) async fn desk(redactor: Redactor) -> (Yard, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("app.py"), SOURCE).unwrap();
    let login = tool_fn(ToolSpec::read("login"), |_: Value, _: ToolContext| async {
        Ok(ToolOutput::json(json!({"access_token": TOKEN, "next": "the password is asked for"})))
    });
    let orders = tool_fn(ToolSpec::read("orders"), |args: Value, _: ToolContext| async move {
        match args["access_token"] == TOKEN {
            true => Ok("three orders"),
            false => Err(ToolError::execution(format!("Authorization: Bearer {TOKEN} was expected"))),
        }
    });
    let tools = toolyard_tools::workspace(root.path()).unwrap();
    let yard = yard(move |builder, _| {
        builder.tools(tools).tool(login).tool(orders).redact(redactor).trace_content(true)
    })
    .await;
    (yard, root)
}

pub(crate) async fn call(session: &Session, tool: &str, args: Value) -> Outcome {
    session.call(Call::new(tool, tool, args)).await
}

pub(crate) fn app(root: &Path) -> String {
    fs::read_to_string(root.join("app.py")).unwrap()
}

/// The file as the model reads it.
pub(crate) async fn read(session: &Session) -> String {
    let read = call(session, "read_file", json!({"path": "app.py"})).await;
    read.output()["content"].as_str().expect("the content of the file is text").to_owned()
}

/// PO-7: a file with passwords and tokens is read whole, changed at such a line, and written back as it was.
#[tokio::test(start_paused = true)]
async fn a_file_with_passwords_survives_a_round_trip() {
    let (yard, root) = desk(Redactor::standard()).await;
    let session = yard.engine.session("s");
    let seen = read(&session).await;
    assert_eq!(seen, SOURCE);
    for line in SOURCE.lines().filter(|line| !line.starts_with("-----")) {
        let patch = json!({"path": "app.py", "old": line, "new": format!("{line} # kept")});
        let patched = call(&session, "patch_file", patch).await;
        assert!(patched.success(), "{line}: {patched:?}");
    }
    let changed = read(&session).await;
    assert_eq!(changed, app(root.path()));
    assert_eq!(changed.matches("# kept").count(), SOURCE.lines().count() - 2);
    let restored = changed.replace(" # kept", "");
    let written = call(&session, "write_file", json!({"path": "app.py", "content": restored})).await;
    assert!(written.success(), "{written:?}");
    assert_eq!(app(root.path()), SOURCE);
    yard.events.check();
}

/// PO-7: a token that one call returns is of use to the next.
#[tokio::test(start_paused = true)]
async fn a_token_that_was_given_can_be_used() {
    let (yard, _root) = desk(Redactor::standard()).await;
    let session = yard.engine.session("s");
    let login = call(&session, "login", json!({})).await;
    let token = login.output()["access_token"].clone();
    let orders = call(&session, "orders", json!({"access_token": token})).await;
    assert_eq!(orders.output().to_string(), "\"three orders\"");
    assert_eq!(orders.arguments.to_value()["access_token"], TOKEN);
    yard.events.check();
}

/// PO-7, I15: what the model is given whole is not in events and spans, and neither is what it sends.
#[tokio::test(start_paused = true)]
async fn what_is_recorded_has_no_tokens() {
    let traced = Traced::default();
    let _listening = listen(traced.clone());
    let (yard, _root) = desk(Redactor::standard()).await;
    let session = yard.engine.session("s");
    read(&session).await;
    call(&session, "login", json!({})).await;
    call(&session, "orders", json!({"access_token": TOKEN})).await;
    let refused = call(&session, "orders", json!({"access_token": "?"})).await;
    assert!(refused.error().unwrap().message.contains(TOKEN), "the model is told all: {refused:?}");
    let events = serde_json::to_string(&yard.events.events()).unwrap();
    let traced = traced.0.lock().unwrap().clone();
    for (what, text) in [("an event", &events), ("a span", &traced)] {
        for secret in ["correct-horse-9", "k3yK3y", "swordfish", "ghp_", "MIIEvQ", "eyJ"] {
            assert!(!text.contains(secret), "{secret} is in {what}: {text}");
        }
    }
    assert!(events.contains("Bearer [redacted: "), "{events}");
    assert!(traced.contains("[redacted: private key]"), "{traced}");
    yard.events.check();
}

/// PO-7: on request, patterns apply to results too.
#[tokio::test(start_paused = true)]
async fn patterns_in_results_are_a_choice() {
    let (yard, root) = desk(Redactor::standard().patterns_in_results(true)).await;
    let session = yard.engine.session("s");
    let seen = read(&session).await;
    assert!(seen.starts_with("password=\"[redacted: password]\""), "{seen}");
    assert!(seen.contains("PWD=/srv/site") && seen.contains("https://example.org/reset7"), "{seen}");
    let written = call(&session, "write_file", json!({"path": "app.py", "content": seen})).await;
    assert!(!written.success());
    assert_eq!(app(root.path()), SOURCE);
    yard.events.check();
}
