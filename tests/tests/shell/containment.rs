//! Cleanup when the program or the supervisor is killed or missing.

use super::{SUPERVISED, Yard, census::marked, until, yard, yard_with};
use serde_json::json;
use std::{
    fs,
    process::{Command, Stdio},
};
use toolyard::{Call, ErrorKind, Outcome};
use toolyard_process::{Containment, Helper};
use toolyard_tools::shell::Shell;

async fn limited(yard: &Yard, command: &str, limit: u64) -> Outcome {
    yard.call(Call::new("a", "shell", json!({"command": yard.marked(command), "timeout_ms": limit}))).await
}

/// SC-6: a program that is killed outright leaves no process.
#[tokio::test]
async fn a_killed_program_leaves_no_process() {
    let root = tempfile::tempdir().unwrap();
    let mark = root.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let command = format!(
        "export MARK={mark}; (setsid sleep 60 &); trap '' TERM; echo > ready; while :; do sleep 1; done"
    );
    let mut program = Command::new(SUPERVISED).arg(&mark).arg(command).stdout(Stdio::null()).spawn().unwrap();
    until("the command runs", || root.path().join("ready").exists()).await;
    let before = marked(&mark).len();
    program.kill().unwrap();
    program.wait().unwrap();
    until("nothing is left", || marked(&mark).is_empty()).await;
    println!("processes before the program was killed {before}, after 0");
    assert!(before >= 4, "program, supervisor, shell, sleep: {before}");
}

/// The program that embeds a shell gets the output of its command.
#[tokio::test]
async fn a_program_is_its_own_supervisor() {
    let root = tempfile::tempdir().unwrap();
    let output = Command::new(SUPERVISED).arg(root.path()).arg("echo hello").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n\n");
}

/// A command inherits no descriptors except its output, whatever descriptors the program was given.
#[tokio::test]
async fn no_descriptor_is_inherited() {
    let root = tempfile::tempdir().unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec 7</dev/null; exec \"$0\" \"$@\"", SUPERVISED]).arg(root.path());
    let listed = shell.arg("ls /proc/self/fd").output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&listed), "0\n1\n2\n3\n\n", "3 is the directory that ls reads");
}

/// A command that asks its supervisor to terminate is itself terminated.
#[tokio::test]
async fn a_terminated_supervisor_ends_the_command_first() {
    let yard = yard().await;
    let outcome = yard.run("(setsid sleep 60 &); echo begun; kill -TERM $PPID; sleep 60").await;
    let error = outcome.error().unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::ExecutionError, "the command was terminated from outside")
    );
    assert!(outcome.to_text().contains("begun"));
    assert_eq!(marked(&yard.mark()).len(), 0);
}

/// If a command kills its supervisor, its session is killed, and the result says that processes may be left.
#[tokio::test]
async fn the_session_of_a_command_without_supervisor_is_killed() {
    let yard = yard().await;
    let outcome = yard.run("sleep 60 & kill -KILL $PPID; sleep 60").await;
    assert!(outcome.to_text().contains("its supervisor was killed"), "{}", outcome.to_text());
    until("nothing is left", || marked(&yard.mark()).is_empty()).await;
}

/// A command that stops its supervisor gains nothing: everything under it is killed from outside.
#[tokio::test]
async fn a_stopped_supervisor_does_not_protect_its_command() {
    let yard = yard().await;
    let outcome = limited(&yard, "(setsid sleep 60 &); kill -STOP $PPID; sleep 60", 300).await;
    assert_eq!(outcome.error().unwrap().kind, ErrorKind::Timeout);
    until("nothing is left", || marked(&yard.mark()).is_empty()).await;
}

/// Without a supervisor, the process group is terminated, including processes that ignore SIGTERM.
#[tokio::test]
async fn a_group_is_ended() {
    let yard = yard_with(Shell::new(Containment::Group), |builder| builder).await;
    let outcome = yard.run("nohup sleep 60 >/dev/null 2>&1 & sleep 60 & echo ok").await;
    assert!(outcome.to_text().starts_with("ok\n[background processes were left"), "{}", outcome.to_text());
    let deaf = limited(&yard, "trap '' TERM; echo begun; while :; do sleep 1; done", 200).await;
    assert_eq!(deaf.error().unwrap().kind, ErrorKind::Timeout);
    assert!(deaf.to_text().contains("begun"));
    assert_eq!(marked(&yard.mark()).len(), 0);
}

/// A process that leaves the group escapes, as documented; this is why the supervisor exists.
#[tokio::test]
async fn a_group_does_not_contain_who_leaves_it() {
    let yard = yard_with(Shell::new(Containment::Group), |builder| builder).await;
    let outcome = yard.run("setsid sleep 60 >/dev/null 2>&1 & echo $! > pid; sleep 0.3; echo ok").await;
    assert_eq!(outcome.to_text(), "ok\n");
    let pid = fs::read_to_string(yard.root.path().join("pid")).unwrap();
    assert!(!marked(&yard.mark()).is_empty());
    assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
    until("nothing is left", || marked(&yard.mark()).is_empty()).await;
}

/// A program that cannot be started as a supervisor is reported as such, and nothing runs.
#[tokio::test]
async fn a_missing_supervisor_is_an_error() {
    let nowhere = Helper::program("/no/such/program");
    let yard = yard_with(Shell::new(Containment::Helper(nowhere)), |builder| builder).await;
    let outcome = yard.run("echo x").await;
    assert!(outcome.to_text().contains("cannot start the shell"), "{}", outcome.to_text());
    let other = Helper::program("/bin/true");
    let yard = yard_with(Shell::new(Containment::Helper(other)), |builder| builder).await;
    let outcome = yard.run("echo x").await;
    assert!(
        outcome.to_text().contains("its supervisor exited before the command started"),
        "{}",
        outcome.to_text()
    );
}

/// A hundred background processes, each in its own session, are all found and terminated.
#[tokio::test]
async fn many_scattered_processes_are_found() {
    let yard = yard().await;
    let command =
        "i=0; while [ $i -lt 100 ]; do (trap '' TERM; setsid sleep 60 &); i=$((i+1)); done; echo ok";
    let from = marked(&yard.mark()).len();
    let outcome = yard.run(command).await;
    assert!(outcome.to_text().starts_with("ok\n"), "{}", outcome.to_text());
    assert_eq!((from, marked(&yard.mark()).len()), (0, 0));
}
