//! However a call ends, its machine is gone (SB-7).

use super::{ENGINE, MEMORY, Yard, shell};
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};
use toolyard_vm::End;

/// How many calls are cancelled, in all stages.
const CANCELLED: usize = 100;

/// SB-7: a call that is stopped has what it printed by then, and its machine is gone.
#[tokio::test]
async fn a_stopped_call_has_its_output_so_far() {
    let Some(yard) = Yard::new() else { return };
    let (running, is_running) = tokio::sync::oneshot::channel();
    let mut running = Some(running);
    let call = shell("echo so far; sleep 1; echo now >&2; sleep 1000");
    let call = call.on_errors(move |_| {
        let _ = running.take().map(|running| running.send(()));
    });
    let stop = async { drop(is_running.await) };
    let ended = yard.machines.run(MEMORY, call, stop).await.unwrap();
    assert_eq!((ended.end, ended.output.into_text()), (End::Stopped, "so far\n".to_owned()));
    yard.until_empty().await;
}

/// SB-7: nothing is left of calls whose futures are dropped, whatever they were at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_hundred_cancelled_calls() {
    let Some(yard) = Yard::new() else { return };
    yard.machines.ready(MEMORY).await.unwrap();
    for at in 0..CANCELLED {
        let call = yard.run(shell("sleep 1000"));
        // A little later each time: before QEMU starts, while it does, and when the program runs.
        let later = tokio::time::Duration::from_millis(at as u64 * 4);
        assert!(tokio::time::timeout(later, call).await.is_err());
    }
    yard.until_empty().await;
}

/// SB-7: when the engine is killed outright, its machine is gone.
#[tokio::test]
async fn a_killed_engine_leaves_no_machine() {
    let Some(yard) = Yard::new() else { return };
    let mut engine = Command::new(ENGINE);
    let engine = engine.arg(yard.directory()).arg("echo running >&2; sleep 1000").stdout(Stdio::piped());
    let mut engine = engine.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(engine.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");
    assert!(yard.census() >= 2, "the engine and QEMU");
    engine.kill().unwrap();
    engine.wait().unwrap();
    yard.until_empty().await;
}
