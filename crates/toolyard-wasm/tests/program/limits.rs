//! What bounds a call, each by a program that ignores it.

use crate::{both, load, run, runtime};
use std::{sync::Arc, time::Duration};
use tokio::sync::Notify;
use toolyard_test_modules::{DESCRIPTORS, DIVIDE, FLOOD, HOG, LARGE, RECURSE, SLEEP, SPIN, assemble, print};
use toolyard_wasm::{Directory, End, Limit, Limits, OUTPUT_BYTES_MAX, Run};

/// SB-4: a program that computes without end, and one that sleeps, end when their time is up.
#[tokio::test]
async fn wall_time_is_kept() {
    for text in [SPIN, SLEEP] {
        for module in both(text) {
            let mut limits = Limits::default();
            limits.wall_time = Some(Duration::from_millis(30));
            let ended = run(&module, Run::new().limits(limits)).await;
            assert_eq!(ended.end, End::Limit(Limit::WallTime));
        }
    }
}

/// SB-4: the time that it computes is bounded by itself, and counted.
#[tokio::test]
async fn cpu_time_is_kept() {
    for module in both(SPIN) {
        let mut limits = Limits::default();
        limits.cpu_time = Some(Duration::from_millis(30));
        let ended = run(&module, Run::new().limits(limits)).await;
        assert_eq!(ended.end, End::Limit(Limit::CpuTime));
        assert!(ended.cpu >= Duration::from_millis(30));
    }
}

/// SB-4: a program that only waits computes nothing.
#[tokio::test]
async fn waiting_is_not_computing() {
    for module in both(SLEEP) {
        let mut limits = Limits::default();
        (limits.cpu_time, limits.wall_time) =
            (Some(Duration::from_secs(60)), Some(Duration::from_millis(20)));
        assert_eq!(run(&module, Run::new().limits(limits)).await.end, End::Limit(Limit::WallTime));
    }
}

/// SB-4: memory is counted exactly, and the limit is named when the program ends itself for want of it.
#[tokio::test]
async fn memory_is_kept() {
    for module in both(HOG) {
        let mut limits = Limits::default();
        limits.memory = Some(8 << 20);
        let ended = run(&module, Run::new().limits(limits)).await;
        assert_eq!(ended.end, End::Limit(Limit::Memory));
        assert!(ended.memory_peak <= 8 << 20 && ended.memory_peak > 6 << 20, "{}", ended.memory_peak);
    }
}

/// SB-4, SB-8: a program that begins with more than it may have ran into its limit; the runtime is not broken.
#[tokio::test]
async fn memory_counts_from_the_beginning() {
    let module = load(&assemble(LARGE));
    let mut limits = Limits::default();
    limits.memory = Some(1 << 20);
    assert_eq!(run(&module, Run::new().limits(limits)).await.end, End::Limit(Limit::Memory));
    limits.memory = Some(16 << 20);
    assert_eq!(run(&module, Run::new().limits(limits)).await.end, End::Exited(0));
}

/// SB-4: a program that prints without end is ended, and what is kept of it is bounded.
#[tokio::test]
async fn output_is_kept() {
    for module in both(FLOOD) {
        let ended = run(&module, Run::new().kept(1024, 1024)).await;
        assert_eq!(ended.end, End::Limit(Limit::Output));
        assert!(ended.output.total() <= OUTPUT_BYTES_MAX);
        assert!(ended.output.into_text().len() < 2048);
    }
}

/// SB-4: a program that opens without closing does not take the descriptors of this process.
#[tokio::test]
async fn open_files_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    for module in both(DESCRIPTORS) {
        for open_files in [None, Some(8)] {
            let mut limits = Limits::default();
            // A component closes what its adapter cannot hold, and so may go on without end.
            (limits.open_files, limits.wall_time) = (open_files, Some(Duration::from_secs(600)));
            let run = Run::new().directory(Directory::at(directory.path(), ".")).limits(limits);
            assert_eq!(crate::run(&module, run).await.end, End::Limit(Limit::OpenFiles));
        }
    }
}

/// A recursion without end is a trap that says so; so is a division by zero, with the function where it happened.
#[tokio::test]
async fn traps_are_named() {
    for module in both(RECURSE) {
        let End::Trapped(what) = run(&module, Run::new()).await.end else { panic!("no trap") };
        assert!(what.starts_with("call stack exhausted"), "{what}");
    }
    for module in both(DIVIDE) {
        let end = run(&module, Run::new()).await.end;
        assert_eq!(end, End::Trapped("integer divide by zero, in 'divide'".to_owned()));
    }
}

/// SB-7: a program that is stopped has what it printed by then, and nothing of it is left.
#[tokio::test]
async fn a_stopped_program_leaves_its_output() {
    let text = print(2, "so far\n", 0).replace("(call $exit (i32.const 0))", "(loop $more (br $more))");
    for module in both(&text) {
        let printed = Arc::new(Notify::new());
        let told = printed.clone();
        let run = Run::new().on_errors(move |_| told.notify_one());
        let ended = module.run_until(run, printed.notified()).await.unwrap();
        assert_eq!(ended.end, End::Stopped);
        assert_eq!(ended.errors.into_text(), "so far\n");
    }
}

/// SB-7: dropping the future ends the program: what the run held is freed.
#[tokio::test]
async fn a_dropped_call_leaves_nothing() {
    let runtime = toolyard_wasm::Runtime::new(Default::default()).unwrap();
    for text in [SPIN, SLEEP] {
        let module = runtime.load(&assemble(text)).unwrap();
        for _ in 0..100 {
            let held = Arc::new(());
            let witness = held.clone();
            let run = module.run(Run::new().on_errors(move |_| _ = &witness));
            tokio::select! {
                biased;
                _ = run => unreachable!("it does not end by itself"),
                () = tokio::task::yield_now() => {}
            }
            assert_eq!((Arc::strong_count(&held), runtime.running()), (1, 0));
        }
    }
}

/// While one computes, others go on: on one thread too.
#[tokio::test]
async fn a_program_that_computes_hands_its_thread_back() {
    let module = load(&assemble(SPIN));
    let mut limits = Limits::default();
    limits.wall_time = Some(Duration::from_millis(50));
    let (one, two) =
        tokio::join!(run(&module, Run::new().limits(limits)), run(&module, Run::new().limits(limits)));
    assert_eq!([one.end, two.end], [const { End::Limit(Limit::WallTime) }; 2]);
    let _ = runtime();
}
