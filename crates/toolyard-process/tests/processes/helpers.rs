//! What only a helper does, and what it withstands.

use super::{
    containments::{ENGINE, helper},
    yard::{Yard, run, until},
};
use std::{io, process::Command};
use toolyard_process::{Containment, End, Helper, LAUNCH_BYTES_MAX, NotStarted, Program, Ran, Report, Rest};

fn ran(report: Report) -> Ran {
    match report {
        Report::Ran(ran) => ran,
        Report::NotStarted(why) => panic!("{why}"),
    }
}

/// SC-6: processes in sessions of their own, and daemons that forked twice, end with their program, also if they are deaf
/// to SIGTERM.
#[tokio::test]
async fn whoever_left_the_group_is_ended() {
    let yard = Yard::new();
    let daemon = "trap '' TERM HUP; cd /; while :; do sleep 1; done";
    for command in [
        "setsid sleep 60 & echo ok".to_owned(),
        "(setsid sleep 60 &) & wait; echo ok".to_owned(),
        format!("(setsid sh -c \"{daemon}\" <&- >&- 2>&- &) & wait; echo ok"),
    ] {
        let (text, report) = yard.run(&command, &helper()).await;
        let ran = ran(report);
        assert_eq!((text.as_str(), ran.end), ("ok\n", Some(End::Exited(0))), "{command}");
        assert!(matches!(ran.rest, Some(Rest { left: 1.., surviving: 0 })), "{command}: {ran:?}");
        assert_eq!(yard.census(), 0, "{command}");
    }
}

/// A hundred background processes, each in its own session, are all found and ended.
#[tokio::test]
async fn many_scattered_processes_are_found() {
    let yard = Yard::new();
    let command =
        "i=0; while [ $i -lt 100 ]; do (trap '' TERM; setsid sleep 60 &); i=$((i+1)); done; echo ok";
    let (text, report) = yard.run(command, &helper()).await;
    assert_eq!((text.as_str(), ran(report).rest.unwrap().surviving), ("ok\n", 0));
    assert_eq!(yard.census(), 0);
}

/// SB-7: when the program that started it is killed outright, nothing is left, and nobody is asked first.
#[tokio::test]
async fn a_killed_engine_leaves_nothing_and_gives_no_grace() {
    let yard = Yard::new();
    let command = "trap 'echo > asked; exit 0' TERM; (setsid sleep 60 &); echo > ready; \
                   while :; do sleep 0.05; done";
    let mut engine = Command::new(ENGINE).arg(yard.path()).arg(command).spawn().unwrap();
    until("the program runs", || yard.has("ready")).await;
    assert!(yard.census() >= 2, "the program, and what left its session");
    engine.kill().unwrap();
    engine.wait().unwrap();
    yard.until_empty().await;
    assert!(!yard.has("asked"));
}

/// A program is its own helper, and passes on no descriptor that it was given.
#[tokio::test]
async fn a_program_helps_itself() {
    let yard = Yard::new();
    let mut engine = Command::new("/bin/sh");
    engine.args(["-c", "exec 7</dev/null; exec \"$0\" \"$@\"", ENGINE]).arg(yard.path());
    let output = engine.arg("ls /proc/self/fd").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n1\n2\n3\n", "3 is the directory that ls reads");
}

/// What is started shows only in the program itself: its helper has no environment and no arguments of it.
#[tokio::test]
async fn a_helper_shows_nothing_of_the_program() {
    let yard = Yard::new();
    let look =
        "wc -c < /proc/$PPID/environ; tr '\\0' ' ' < /proc/$PPID/cmdline; ls /proc/$PPID/fd/0 > /dev/null";
    let (text, _) = run(yard.shell(look).helper_name("a-helper"), &helper()).await;
    assert_eq!(text, "0\na-helper --toolyard-help-process ");
}

/// A helper that is asked to end ends its program first.
#[tokio::test]
async fn a_terminated_helper_ends_its_program_first() {
    let yard = Yard::new();
    let mut running =
        yard.ready("(setsid sleep 60 &); echo ready; kill -TERM $PPID; sleep 60", &helper()).await;
    let ran = ran(running.processes.ended().await);
    assert!(matches!(ran, Ran { end: None, rest: Some(Rest { left: 1.., surviving: 0 }), .. }), "{ran:?}");
    assert_eq!(yard.census(), 0);
}

/// If a program kills its helper, its session is killed, and the report says that some may be left.
#[tokio::test]
async fn the_session_of_a_killed_helper_is_killed() {
    let yard = Yard::new();
    let (_, report) = yard.run("sleep 60 & kill -KILL $PPID; sleep 60", &helper()).await;
    assert_eq!(report, Report::Ran(Ran { end: None, rest: None, used: None }));
    yard.until_empty().await;
}

/// A program that stops its helper gains nothing: everything under it is killed from outside.
#[tokio::test]
async fn a_stopped_helper_does_not_protect_its_program() {
    for is_killed in [false, true] {
        let yard = Yard::new();
        let stop = "(setsid sleep 60 &); kill -STOP $PPID; echo ready; sleep 60";
        let mut running = yard.ready(stop, &helper()).await;
        match is_killed {
            true => running.processes.kill(),
            false => running.processes.terminate(),
        }
        assert_eq!(running.processes.ended().await, Report::Ran(Ran { end: None, rest: None, used: None }));
        yard.until_empty().await;
    }
}

/// A program that is no helper is told as such, and nothing runs.
#[tokio::test]
async fn what_is_no_helper_is_an_error() {
    let start = |helper: &str| Program::new("/bin/true").start(&Containment::Helper(Helper::program(helper)));
    assert_eq!(start("/no/such/program").unwrap_err().kind(), io::ErrorKind::NotFound);
    let mut started = start("/bin/true").unwrap();
    assert_eq!(started.processes.started().await, Err(NotStarted::HelperEnded));
    assert_eq!(started.processes.ended().await, Report::NotStarted(NotStarted::HelperEnded));
}

/// As much as a process can be given goes through, and more is refused with the reason.
#[tokio::test]
async fn a_large_launch_goes_through_or_is_refused() {
    let yard = Yard::new();
    let kilobytes = |number: usize| "x".repeat(number << 10);
    let large = (0..10).map(|number| (format!("LARGE_{number}"), kilobytes(100)));
    let (text, _) = run(yard.shell("printf %s ${#LARGE_0} ${#LARGE_9}").envs(large), &helper()).await;
    assert_eq!(text, "102400102400");

    let mut started = yard.shell(":").arg(kilobytes(200)).start(&helper()).unwrap();
    let why = started.processes.started().await.unwrap_err().to_string();
    assert_eq!(why, "Argument list too long (os error 7)");

    let error = yard.shell(":").arg("x".repeat(LAUNCH_BYTES_MAX)).start(&helper()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("but at most 4194304 are possible"), "{error}");
}
