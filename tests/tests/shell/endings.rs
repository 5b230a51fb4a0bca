//! How commands end, and how that is reported.

use super::{census::marked, until, yard};
use serde_json::json;
use std::time::Duration;
use toolyard::{Call, Effect, ErrorKind};

fn shell(command: &str) -> Call {
    Call::new("a", "shell", json!({ "command": command }))
}

/// PO-1, CL-2: without an approver, the shell is refused and does not run.
#[tokio::test]
async fn an_unapproved_command_does_not_run() {
    let yard = super::yard_with(toolyard_tools::shell::Shell::new(super::supervised()), |builder| {
        builder.confirmations(toolyard::Confirmations::default())
    })
    .await;
    let outcome = yard.run("echo x > ran").await;
    assert_eq!(outcome.error().unwrap().kind, ErrorKind::UserDenied);
    assert_eq!(outcome.routing, toolyard::Routing::ShortCircuit);
    assert!(!yard.root.path().join("ran").exists());
}

/// V5: a non-zero exit code or a signal is the tool's failure, with the whole output.
#[tokio::test]
async fn exit_codes_and_signals_are_reported() {
    let yard = yard().await;
    let outcome = yard.run("echo out; echo err >&2; exit 3").await;
    let error = outcome.error().unwrap();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::ExecutionError, "exit code 3"));
    assert_eq!(outcome.to_text(), "exit code 3\nout\nerr\n");
    let outcome = yard.run("echo out; kill -9 $$").await;
    assert_eq!(outcome.to_text(), "killed by signal 9\nout\n");
    let output = yard.run("echo fine").await.status.unwrap();
    assert_eq!(output.metadata("exit_code"), Some(&0.into()));
    assert!(output.command_executed().unwrap().ends_with("echo fine"));
    assert_eq!(yard.run(":").await.to_text(), "[no output]");
    yard.events.check();
}

/// V3, V5: a command is terminated at its time limit, with the exact wording and the output so far.
#[tokio::test]
async fn a_timeout_keeps_the_output_so_far() {
    let yard = yard().await;
    let command = yard.marked("echo begun; sleep 60; echo never");
    let by_argument = Call::new("a", "shell", json!({"command": command, "timeout_ms": 300}));
    let by_call = shell(&command).timeout(Duration::from_millis(300));
    for call in [by_argument, by_call] {
        let outcome = yard.call(call).await;
        let error = outcome.error().unwrap();
        assert_eq!((error.kind, error.effect), (ErrorKind::Timeout, Effect::Unknown));
        assert_eq!(error.message, "Tool exceeded 300ms wall time limit");
        assert!(outcome.to_text().contains("begun") && !outcome.to_text().contains("never"));
        let output = error.output().unwrap();
        assert!(output.command_executed().unwrap().contains("echo begun"), "{output:?}");
        assert!(output.metadata("duration_ms").is_some_and(serde_json::Value::is_u64), "{output:?}");
        assert_eq!(marked(&yard.mark()).len(), 0);
    }
}

/// SC-5: a cancelled command terminates, and its result has the output so far.
#[tokio::test]
async fn a_cancel_keeps_the_output_so_far() {
    let yard = yard().await;
    let session = yard.engine.session("s");
    let command = yard.marked("echo begun; (setsid sleep 60 &); sleep 60");
    let aside = async {
        until("it runs", || !yard.deltas().is_empty()).await;
        assert!(session.cancel_call("a"));
    };
    let outcome = tokio::join!(session.dispatch(vec![shell(&command)]), aside).0.remove(0);
    let error = outcome.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert_eq!(error.content(), [toolyard::Content::text("begun\n")]);
    let output = error.output().unwrap();
    assert!(output.command_executed().unwrap().contains("echo begun"), "{output:?}");
    assert_eq!(output.metadata("exit_code"), Some(&serde_json::Value::Null));
    assert!(output.metadata("duration_ms").is_some());
    let events = yard.events.events();
    let details = events.iter().find_map(|event| event.kind.failure()?.details.clone()).unwrap();
    assert_eq!(details.partial_output.as_deref(), Some("begun\n"));
    assert_eq!(details.command_executed.as_deref(), output.command_executed());
    assert_eq!(Some(&details.metadata), output.all_metadata());
    assert_eq!(marked(&yard.mark()).len(), 0);
    yard.events.check();
}

/// A command that catches SIGTERM has three seconds to clean up.
#[tokio::test]
async fn a_command_may_clean_up_on_sigterm() {
    let yard = yard().await;
    let command = "trap 'echo order > order; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let call = Call::new("a", "shell", json!({"command": command, "timeout_ms": 300}));
    assert_eq!(yard.call(call).await.error().unwrap().kind, ErrorKind::Timeout);
    assert_eq!(std::fs::read_to_string(yard.root.path().join("order")).unwrap(), "order\n");
}

/// A command gets only the allowed environment variables, and an empty stdin.
#[tokio::test]
async fn the_environment_is_scrubbed_and_stdin_is_closed() {
    let yard = yard().await;
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")), "there is something to scrub");
    let text = yard.run("unset MARK; env; cat; read x; echo \"read $?\"").await.to_text();
    assert!(text.contains("PATH=") && text.ends_with("read 1\n"), "{text}");
    assert!(!text.contains("CARGO"), "{text}");
    let none = super::yard_with(
        toolyard_tools::shell::Shell::new(super::supervised()).environment(["NO_SUCH"]),
        |builder| builder,
    )
    .await;
    let text = none.call(shell("echo \"[$HOME]\"")).await.to_text();
    assert_eq!(text, "[]\n");
}

/// PO-2: a command runs in the workspace or a directory in it, never outside.
#[tokio::test]
async fn the_directory_stays_in_the_workspace() {
    let yard = yard().await;
    let root = yard.root.path();
    std::fs::create_dir(root.join("sub")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    std::os::unix::fs::symlink("/", root.join("out")).unwrap();
    std::os::unix::fs::symlink("sub", root.join("in")).unwrap();
    let at = |cwd: &str| Call::new("a", "shell", json!({"command": "pwd -P", "cwd": cwd}));
    for inside in [".", "sub", "in", "sub/.."] {
        let expect = root.join(inside).canonicalize().unwrap();
        assert_eq!(yard.call(at(inside)).await.to_text(), format!("{}\n", expect.display()));
    }
    for outside in ["..", "/", "/etc", "out", "out/etc", "sub/../.."] {
        let outcome = yard.call(at(outside)).await;
        assert_eq!(outcome.error().unwrap().kind, ErrorKind::PermissionDenied, "{outside}");
    }
    for wrong in ["file", "missing"] {
        let error = yard.call(at(wrong)).await.error().unwrap().kind;
        assert_eq!(error, ErrorKind::ExecutionError, "{wrong}");
    }
}

/// A command that starts with a dash is not taken as an option of the shell.
#[tokio::test]
async fn a_command_is_not_parsed_as_an_option() {
    let yard = yard().await;
    let outcome = yard.call(shell("-x")).await;
    assert!(outcome.error().unwrap().message.starts_with("exit code 127"), "{}", outcome.to_text());
    for refused in [json!({"command": ""}), json!({"command": "a\u{0}b"}), json!({}), json!({"command": 1})] {
        let outcome = yard.call(Call::new("a", "shell", refused)).await;
        assert_eq!(outcome.error().unwrap().kind, ErrorKind::InvalidInput);
    }
}
