//! Signals, on paused time.

use super::*;
use crate::cli::{Cli, Command, SetupArgs};
use clap::Parser;
use std::{future::pending, sync::Arc};
use tokio::{sync::watch, time::Instant};
use toolyard::{Effect, ToolContext, ToolError, ToolFactory, ToolSpec, tool_fn};

/// A runner that answers every question, with a tool that never stops and one that stops when it is cancelled.
async fn runner(interrupts: Interrupts) -> Runner {
    let deaf: Arc<dyn ToolFactory> = Arc::new(tool_fn(ToolSpec::read("deaf"), |(): (), _: ToolContext| {
        pending::<Result<(), ToolError>>()
    }));
    let polite = |(): (), cx: ToolContext| async move {
        cx.cancelled().await;
        Ok("stopped in time")
    };
    let polite: Arc<dyn ToolFactory> = Arc::new(tool_fn(ToolSpec::read("polite"), polite));
    let workspace = Some(std::env::temp_dir());
    let setup = Setup::load(&SetupArgs { config: None, workspace }).unwrap();
    let Command::Run(args) =
        Cli::try_parse_from(["toolyard", "run", "-q", "--approve", "auto"]).unwrap().command
    else {
        panic!("these are the arguments of a run");
    };
    let builder = setup.engine_with(vec![deaf, polite]);
    let journal = JournalFile::default();
    let io = RunIo { records: &Records::default(), interrupts, terminal: None, journal };
    Runner::build(builder, &setup, &args, io).await.unwrap()
}

/// Plays a batch that never ends, and sends this many signals after a second. Returns the errors of the calls, the time
/// from the signals to the end of the batch, and the time until the program has closed.
async fn interrupted(signals: usize) -> (Vec<Option<(ErrorKind, Effect)>>, Duration, Duration) {
    let count = watch::Sender::new(0);
    let runner = runner(Interrupts::counted(count.clone())).await;
    let signalling = async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        (0..signals).for_each(|_| count.send_modify(|count| *count += 1));
    };
    let session = runner.session("run");
    let calls = ["deaf", "polite", "write_file"]
        .map(|tool| Call::new(tool, tool, "{\"path\":\"toolyard-never\",\"content\":\"\"}"));
    let began = Instant::now();
    let (result, ()) = tokio::join!(runner.run_batch(&session, &calls), signalling);
    let took = began.elapsed() - Duration::from_secs(1);
    let kinds = result.outcomes.iter().map(|outcome| outcome.error().map(|error| (error.kind, error.effect)));
    let kinds = kinds.collect();
    let ended = Instant::now();
    let exit = runner.close(Exit::Ok, None).await;
    assert_eq!(exit, Exit::Interrupted);
    (kinds, took, ended.elapsed())
}

const CUT: Option<(ErrorKind, Effect)> = Some((ErrorKind::Cancelled, Effect::Failed));

/// SC-8: after the first signal nothing more starts, and running calls have five seconds.
#[tokio::test(start_paused = true)]
async fn a_first_signal_drains() {
    let (kinds, took, closing) = interrupted(1).await;
    let unstarted = Some((ErrorKind::ShuttingDown, Effect::NotStarted));
    assert_eq!(kinds, [CUT, None, unstarted]);
    assert_eq!((took, closing), (INTERRUPT_GRACE, Duration::ZERO));
}

/// KT-9, SC-8: a signal that comes between two turns lets no call of the next one start.
#[tokio::test(start_paused = true)]
async fn a_signal_between_two_turns_starts_nothing() {
    let count = watch::Sender::new(0);
    let runner = runner(Interrupts::counted(count.clone())).await;
    let session = runner.session("run");
    let calls = [("a", "polite"), ("b", "deaf"), ("c", "polite")].map(|(id, tool)| Call::new(id, tool, "{}"));
    count.send_modify(|count| *count += 1);
    for _turn in 0..2 {
        let result = runner.run_batch(&session, &calls).await;
        let kinds =
            result.outcomes.iter().map(|outcome| outcome.error().map(|error| (error.kind, error.effect)));
        let unstarted = Some((ErrorKind::ShuttingDown, Effect::NotStarted));
        assert_eq!(kinds.collect::<Vec<_>>(), [unstarted; 3]);
    }
    assert_eq!(runner.close(Exit::Ok, None).await, Exit::Interrupted);
}

/// SC-8: the second signal abandons running calls and waits for nothing.
#[tokio::test(start_paused = true)]
async fn a_second_signal_abandons() {
    let (kinds, took, closing) = interrupted(2).await;
    assert_eq!(kinds[0], CUT);
    assert_eq!((took, closing), (Duration::ZERO, Duration::ZERO));
}
