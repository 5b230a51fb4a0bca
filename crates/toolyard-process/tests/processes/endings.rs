//! How programs and what they start are ended, under every containment.

use super::{
    containments,
    yard::{Running, Yard, until},
};
use std::fs;
use toolyard_process::{Containment, End, Ran, Report, Rest};

/// A command that notes that it was asked to end. It ends within the grace then.
const POLITE: &str = "trap 'echo > asked; exit 0' TERM; sleep 60 & echo ready; while :; do sleep 0.05; done";

fn ran(report: Report) -> Ran {
    match report {
        Report::Ran(ran) => ran,
        Report::NotStarted(why) => panic!("{why}"),
    }
}

/// V5: how a program ended is told as the system tells it.
#[tokio::test]
async fn exit_codes_and_signals_are_told() {
    for containment in containments::all() {
        let yard = Yard::new();
        for (command, end) in
            [(":", End::Exited(0)), ("exit 3", End::Exited(3)), ("kill -9 $$", End::Killed(9))]
        {
            let (_, report) = yard.run(command, &containment).await;
            let rest = Some(Rest { left: 0, surviving: 0 });
            let ran = ran(report);
            assert_eq!((ran.end, ran.rest), (Some(end), rest), "{containment:?}: {command}");
        }
    }
}

/// SC-6: whoever is asked to end may clean up.
#[tokio::test]
async fn a_program_is_asked_before_it_is_killed() {
    for containment in containments::all() {
        let yard = Yard::new();
        let mut running = yard.ready(POLITE, &containment).await;
        running.processes.terminate();
        let ran = ran(running.processes.ended().await);
        assert_eq!((ran.end, ran.rest.unwrap().surviving), (None, 0), "{containment:?}");
        assert!(yard.has("asked"), "{containment:?}");
    }
}

/// SC-6: what is started while a program is asked to end, and left by it, is asked too.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_left_while_others_are_asked_is_asked_too() {
    let left = "(trap 'echo > asked; exit' TERM; echo > up; while :; do sleep 0.05; done)";
    let leaves =
        format!("trap '{} & until [ -e up ]; do sleep 0.01; done; exit 0' TERM", left.replace('\'', "\""));
    let yard = Yard::new();
    let command = format!("{leaves}; echo ready; while :; do sleep 0.05; done");
    let mut running = yard.ready(&command, &containments::helper()).await;
    running.processes.terminate();
    let ran = ran(running.processes.ended().await);
    assert!(yard.has("asked"), "{ran:?}");
}

/// SC-6: what a program starts to clean up is left alone.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_cleans_up_is_not_asked() {
    let cleans = "trap 'sh -c \"trap \\\"echo > asked\\\" TERM; sleep 0.3; echo > cleaned\"; exit 0' TERM";
    let yard = Yard::new();
    let command = format!("{cleans}; echo ready; while :; do sleep 0.05; done");
    let mut running = yard.ready(&command, &containments::helper()).await;
    running.processes.terminate();
    running.processes.ended().await;
    assert!(yard.has("cleaned") && !yard.has("asked"));
}

/// SC-6: a program that is deaf to SIGTERM is killed.
#[tokio::test]
async fn a_deaf_program_is_killed() {
    for containment in containments::all() {
        let yard = Yard::new();
        let deaf = "trap '' TERM; echo ready; while :; do sleep 1; done";
        let mut running = yard.ready(deaf, &containment).await;
        running.processes.terminate();
        let ran = ran(running.processes.ended().await);
        assert!(
            matches!(ran, Ran { end: None, rest: Some(Rest { left: 1.., surviving: 0 }), .. }),
            "{ran:?}"
        );
        #[cfg(target_os = "linux")]
        assert_eq!(yard.census(), 0, "{containment:?}");
    }
}

/// SC-6: what a program leaves in the background is ended with it, though it holds the output.
#[tokio::test]
async fn what_a_program_leaves_ends_with_it() {
    for containment in containments::all() {
        let yard = Yard::new();
        let (text, report) = yard.run("sleep 60 & echo done", &containment).await;
        assert_eq!(text, "done\n");
        let rest = Some(Rest { left: 1, surviving: 0 });
        let ran = ran(report);
        assert_eq!((ran.end, ran.rest), (Some(End::Exited(0)), rest), "{containment:?}");
        #[cfg(target_os = "linux")]
        assert_eq!(yard.census(), 0, "{containment:?}");
    }
}

/// SC-6: a handle that is dropped ends its processes in the background, with grace.
#[tokio::test]
async fn a_dropped_handle_ends_its_processes() {
    for containment in containments::all() {
        let yard = Yard::new();
        // Its output is not dropped: a shell dies of a word about its children that nobody reads.
        let Running { processes, output: _output } = yard.ready(POLITE, &containment).await;
        drop(processes);
        until("it was asked", || yard.has("asked")).await;
        #[cfg(target_os = "linux")]
        yard.until_empty().await;
    }
}

/// What is killed is not asked, and what was asked to end has no grace any more.
#[tokio::test]
async fn a_kill_gives_no_grace() {
    for containment in containments::all() {
        let yard = Yard::new();
        let mut running = yard.ready(POLITE, &containment).await;
        running.processes.kill();
        let killed = ran(running.processes.ended().await);
        assert_eq!(killed.rest.unwrap().surviving, 0, "{containment:?}");
        assert!(!yard.has("asked"), "{containment:?}");

        let deaf = "trap '' TERM; echo ready; while :; do sleep 1; done";
        let mut running = yard.ready(deaf, &containment).await;
        let killer = running.processes.killer();
        running.processes.terminate();
        killer.kill();
        assert_eq!(ran(running.processes.ended().await).rest.unwrap().surviving, 0, "{containment:?}");
        #[cfg(target_os = "linux")]
        assert_eq!(yard.census(), 0, "{containment:?}");
    }
}

/// SB-7: processes do not outlive the runtime of their program, though a handle to them is left.
#[test]
fn processes_end_with_the_runtime() {
    for containment in containments::all() {
        let yard = Yard::new();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut running = runtime.block_on(yard.ready(POLITE, &containment));
        drop(runtime);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            #[cfg(target_os = "linux")]
            yard.until_empty().await;
            assert!(!yard.has("asked"), "{containment:?}");
            assert_eq!(ran(running.processes.ended().await), Ran { end: None, rest: None, used: None });
            assert_eq!(running.processes.started().await, Ok(()));
        });
    }
}

/// The report can be asked for again.
#[tokio::test]
async fn a_report_is_kept() {
    for containment in containments::all() {
        let yard = Yard::new();
        let mut running = yard.ready("echo ready", &containment).await;
        let first = running.processes.ended().await;
        assert_eq!(running.processes.started().await, Ok(()));
        assert_eq!(running.processes.ended().await, first);
        running.processes.terminate();
        running.processes.kill();
        running.output.drain(|_| {});
    }
}

/// A process that leaves the group escapes, as documented; it holds up nobody. This is why helpers exist.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_group_does_not_contain_who_leaves_it() {
    let yard = Yard::new();
    let command =
        "setsid sh -c 'echo $$ > pid; exec sleep 60' & while ! [ -s pid ]; do sleep 0.05; done; echo ok";
    let (text, report) = yard.run(command, &Containment::Group).await;
    assert_eq!(text, "ok\n");
    assert_eq!(ran(report).rest, Some(Rest { left: 0, surviving: 0 }));
    assert_eq!(yard.census(), 1);
    let pid = fs::read_to_string(yard.path().join("pid")).unwrap();
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().unwrap().success());
    yard.until_empty().await;
}
