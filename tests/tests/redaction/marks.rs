//! A mark that stands for a secret never comes back as an argument (PO-7).

use crate::{
    Traced,
    round_trips::{app, call, desk, read},
};
use serde_json::{Value, json};
use toolyard::{ErrorKind, EventKind, ForkPolicy, Outcome, Redactor, ToolContext, ToolSpec, tool_fn};
use toolyard_tests::{listen, yard};

/// The file with a password that is a registered secret.
fn redactor() -> Redactor {
    Redactor::standard().with_secret("correct-horse-9").unwrap()
}

#[track_caller]
fn refused(outcome: &Outcome) {
    let error = outcome.error().expect("it has a mark in its arguments");
    assert_eq!((error.kind, error.attempts), (ErrorKind::InvalidInput, 0), "{error:?}");
    assert!(error.message.contains("'[redacted]'") && error.message.contains("secret"), "{}", error.message);
    assert!(error.advice.contains("Leave out"), "{}", error.advice);
}

/// PO-7: a file read with a mark in it is neither patched nor written with the mark; its other lines are.
#[tokio::test(start_paused = true)]
async fn a_mark_is_not_written_into_a_file() {
    let (yard, root) = desk(redactor()).await;
    let session = yard.engine.session("s");
    let before = app(root.path());
    let seen = read(&session).await;
    assert_eq!(seen, before.replace("correct-horse-9", "[redacted]"));
    let patch = |old: &str, new: &str| json!({"path": "app.py", "old": old, "new": new});
    refused(&call(&session, "write_file", json!({"path": "app.py", "content": seen})).await);
    refused(&call(&session, "patch_file", patch("password=\"[redacted]\"", "password=\"\"")).await);
    refused(&call(&session, "patch_file", patch("last = 1", "last = \"[redacted]\"")).await);
    assert_eq!(app(root.path()), before);
    assert!(call(&session, "patch_file", patch("last = 1", "last = 2")).await.success());
    assert_eq!(app(root.path()), before.replace("last = 1", "last = 2"));
    let events = yard.events.events();
    let ends = events.iter().filter(|event| matches!(event.kind, EventKind::InputInvalid(_)));
    assert_eq!(ends.count(), 3, "each is an invalid input, before it is called");
    yard.events.check();
}

/// PO-7: wherever it stands in the arguments, in a name, deep inside, or written with escapes.
#[tokio::test(start_paused = true)]
async fn a_mark_is_found_in_every_place() {
    let (yard, _root) = desk(redactor()).await;
    let session = yard.engine.session("s");
    read(&session).await;
    for args in [
        json!({"access_token": "[redacted]"}),
        json!({"access_token": "Bearer [redacted], and more"}),
        json!({"a": [1, {"b": ["x", "[redacted]"]}]}),
        json!({"a": {"[redacted]": 1}}),
        json!({"a": "{\"b\":\"[redacted]\"}"}),
    ] {
        refused(&call(&session, "orders", args).await);
    }
    let escaped = session.call(toolyard::Call::new("c", "orders", r#"{"a":"\u005bredacted\u005d"}"#)).await;
    refused(&escaped);
    for args in [json!({"a": "redacted"}), json!({"a": "[redacted"}), json!({"a": "[redacted: password]"})] {
        let outcome = call(&session, "orders", args).await;
        assert_eq!(outcome.error().unwrap().kind, ErrorKind::ExecutionError, "{outcome:?}");
    }
    yard.events.check();
}

/// PO-7: only a session that was given a mark knows it; in another one it is a text like any other. Agents of one
/// session tell each other what they read.
#[tokio::test(start_paused = true)]
async fn a_mark_belongs_to_the_session_that_was_given_it() {
    let (yard, root) = desk(redactor()).await;
    let (session, other) = (yard.engine.session("s"), yard.engine.session("other"));
    let content = json!({"path": "notes.md", "content": "A secret is shown as [redacted]."});
    assert!(call(&session, "write_file", content.clone()).await.success(), "none was given yet");
    let written = call(&session, "read_file", json!({"path": "notes.md"})).await;
    assert!(written.output().to_string().contains("[redacted]"), "the file's own text");
    assert!(call(&session, "write_file", content.clone()).await.success(), "that mark is not ours");
    read(&session).await;
    refused(&call(&session, "write_file", content.clone()).await);
    let fork = session.fork(ForkPolicy::default()).unwrap();
    refused(&call(&fork, "write_file", content.clone()).await);
    assert!(call(&other, "write_file", content).await.success());
    assert!(root.path().join("notes.md").exists());
    yard.events.check();
}

/// PO-7, I15: a secret in what a tool says of itself is not shown to the model, nor in spans; its mark is no argument.
#[tokio::test(start_paused = true)]
async fn a_description_has_no_secret() {
    const SECRET: &str = "correct-horse-9";
    let traced = Traced::default();
    let _listening = listen(traced.clone());
    let talks = tool_fn(
        ToolSpec::read("talks").describe(format!("Uses {SECRET}.")).input_schema(
            json!({"type": "object", "properties": {"key": {"default": SECRET, "description": SECRET}}}),
        ),
        |_: Value, _: ToolContext| async { Ok("") },
    );
    let yard = yard(|builder, _| builder.tool(talks).redact(redactor())).await;
    let session = yard.engine.session("s");
    let offered = yard.engine.definitions_for(&session);
    let entry = offered.iter().find(|entry| entry.name() == "talks").unwrap();
    let shown = session.shown_spec(entry);
    assert_eq!((shown.name.as_str(), shown.description.as_str()), ("talks", "Uses [redacted]."));
    let schema = shown.input_schema.unwrap();
    assert_eq!(schema["properties"]["key"], json!({"default": "[redacted]", "description": "[redacted]"}));
    refused(&call(&session, "talks", json!({"key": "[redacted]"})).await);
    assert!(call(&session, "talks", json!({"key": SECRET})).await.success());
    let traced = traced.0.lock().unwrap().clone();
    assert!(traced.contains("Uses [redacted].") && !traced.contains(SECRET), "{traced}");
    yard.events.check();
}

/// PO-7: a mark in the message of a failure counts too.
#[tokio::test(start_paused = true)]
async fn a_mark_in_a_failure_is_given_too() {
    let (yard, _root) = desk(redactor()).await;
    let session = yard.engine.session("s");
    let path = json!({"path": "no/such/correct-horse-9"});
    let failed = call(&session, "read_file", path).await;
    let message = &failed.error().unwrap().message;
    assert!(message.contains("[redacted]"), "{message}");
    let shown: Value = json!({"path": "no/such/[redacted]"});
    refused(&call(&session, "read_file", shown).await);
    yard.events.check();
}
