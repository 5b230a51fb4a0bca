//! Confined programs in groups: limits of all their processes together. They need a delegated group of cgroup v2, without
//! processes, which `TOOLYARD_CGROUP` names; without one they are skipped, unless CI=true, and a limit that it lacks is too.

use super::{
    alone,
    confined::{is_missing, within},
    containments::{ENGINE, helper},
    given::has_no_other_descriptor,
    missing::skip,
    yard::{Yard, run, until},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use toolyard_process::{
    Cgroup, Confinement, End, GroupLimits, LastingLimits, Limit, NotStarted, Program, Report,
    landlock_alone_lacks, landlock_version,
};

/// A delegated group of this test's own.
struct Delegated(PathBuf);

impl Delegated {
    /// `None` where there is none, or this machine cannot confine programs.
    async fn new(name: &str) -> Option<Self> {
        let Some(path) = std::env::var_os("TOOLYARD_CGROUP") else {
            skip("TOOLYARD_CGROUP names no delegated group");
            return None;
        };
        if is_missing().await {
            return None;
        }
        // Enables for this one what there is.
        let path = Cgroup::open(path).unwrap().path().join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Some(Self(path))
    }

    fn open(&self) -> Cgroup {
        Cgroup::open(&self.0).unwrap()
    }

    /// Whether it lacks a limit, which is told then.
    fn lacks(&self, limit: Limit) -> bool {
        let cgroup = self.open();
        let why = cgroup.lacks(limit);
        match why {
            Some(why) => eprintln!("skipped: no limit of {limit} here: {why}"),
            None => println!("enforced in this run: {limit}, of all processes together"),
        }
        why.is_some()
    }

    /// How many groups are in it.
    fn groups(&self) -> usize {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("toolyard-")).count()
    }

    /// Runs a command within limits.
    async fn shell(&self, yard: &Yard, limits: GroupLimits, command: &str) -> (String, Report) {
        run(self.program(yard, limits, command), &helper()).await
    }

    fn program(&self, yard: &Yard, limits: GroupLimits, command: &str) -> Program {
        yard.shell(command).confined(within(&yard.path(), true).cgroup(&self.open(), limits))
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn end(report: &Report) -> Option<End> {
    let Report::Ran(ran) = report else { panic!("{report:?}") };
    ran.end
}

/// SB-4, SB-8: CPU time is that of all processes together, and what uses it up is ended, with all that it started.
#[tokio::test]
async fn cpu_time_of_all_together_is_limited() {
    let Some(delegated) = Delegated::new("cpu").await else { return };
    assert!(!delegated.lacks(Limit::CpuTime));
    let yard = Yard::new();
    let limits = GroupLimits { cpu_time: Some(Duration::from_secs(2)), ..GroupLimits::default() };
    let spin = "echo so far; trap '' TERM; for n in 1 2 3; do (setsid sh -c 'while :; do :; done' &); done; wait; sleep 600";
    let (text, report) = delegated.shell(&yard, limits, spin).await;
    assert_eq!((end(&report), &*text), (Some(End::Limit(Limit::CpuTime)), "so far\n"));
    // SB-9: what was used is known of a program that was ended, too.
    assert!(matches!(report, Report::Ran(ran) if ran.used.unwrap().cpu >= limits.cpu_time.unwrap()));
    yard.until_empty().await;
    assert_eq!(delegated.groups(), 0);
    // No process of these uses so much, but all of them do.
    let many = "while :; do (n=0; while [ $n -lt 200 ]; do n=$((n+1)); done); done";
    let (text, report) = delegated.shell(&yard, limits, many).await;
    assert_eq!((end(&report), &*text), (Some(End::Limit(Limit::CpuTime)), ""));
    let (text, report) = delegated.shell(&yard, limits, "sleep 0.5; echo done").await;
    assert_eq!((end(&report), &*text), (Some(End::Exited(0)), "done\n"), "time that passes is not CPU time");
}

/// SB-4, SB-8: memory is that of all processes together; at its limit all of them end.
#[tokio::test]
async fn memory_of_all_together_is_limited() {
    let Some(delegated) = Delegated::new("memory").await else { return };
    if delegated.lacks(Limit::Memory) {
        return;
    }
    let yard = Yard::new();
    let limits = GroupLimits { memory: Some(96 << 20), ..GroupLimits::default() };
    let hogs = |many| {
        format!(
            "echo so far; for n in $(seq {many}); do (head -c 40m /dev/zero | tail -c 40m | sleep 2) & done; wait; echo done"
        )
    };
    let (text, report) = delegated.shell(&yard, limits, &hogs(1)).await;
    assert_eq!((end(&report), &*text), (Some(End::Exited(0)), "so far\ndone\n"));
    let (text, report) = delegated.shell(&yard, limits, &hogs(4)).await;
    assert_eq!((end(&report), &*text), (Some(End::Limit(Limit::Memory)), "so far\n"));
    let (_, report) = delegated.shell(&yard, limits, "head -c 150m /dev/zero >/tmp/big; echo done").await;
    assert_eq!(end(&report), Some(End::Limit(Limit::Memory)), "its /tmp is memory");
    yard.until_empty().await;
    assert_eq!(delegated.groups(), 0);
    let limits = GroupLimits { memory: Some(64 << 10), ..GroupLimits::default() };
    let (_, report) = delegated.shell(&yard, limits, "true").await;
    assert!(matches!(report, Report::NotStarted(NotStarted::NotConfined(_))), "{report:?}");
}

/// SB-4, SB-8: processes are counted together, for root too; what fails for want of them says so.
#[tokio::test]
async fn processes_together_are_limited() {
    let Some(delegated) = Delegated::new("processes").await else { return };
    if delegated.lacks(Limit::Processes) {
        return;
    }
    let yard = Yard::new();
    let limits = GroupLimits { processes: Some(20), ..GroupLimits::default() };
    let (text, report) = delegated.shell(&yard, limits, "while :; do sleep 600 & echo one; done").await;
    assert_eq!(end(&report), Some(End::Limit(Limit::Processes)), "{text}");
    assert_eq!(text.matches("one\n").count(), 19, "the shell is one of them: {text}");
    let bomb = "b() { b | b & b; }; b; sleep 600";
    let (_, report) = delegated.shell(&yard, limits, bomb).await;
    assert!(matches!(end(&report), Some(End::Limit(Limit::Processes) | End::Exited(0))), "{report:?}");
    yard.until_empty().await;
    let few = "for n in 1 2 3 4 5 6 7 8 9; do sleep 0.1 & done; wait; exit 3";
    let (_, report) = delegated.shell(&yard, limits, few).await;
    assert_eq!((end(&report), delegated.groups()), (Some(End::Exited(3)), 0));
}

/// AG-10: programs in a shared group keep its limits together; one that goes beyond them ends, and the other lives.
#[tokio::test]
async fn what_programs_share_is_limited_together() {
    let Some(delegated) = Delegated::new("shared").await else { return };
    let cgroup = delegated.open();
    let limits = LastingLimits {
        memory: cgroup.lacks(Limit::Memory).is_none().then_some(96 << 20),
        processes: cgroup.lacks(Limit::Processes).is_none().then_some(20),
        ..LastingLimits::default()
    };
    let (no_memory, no_processes) = (delegated.lacks(Limit::Memory), delegated.lacks(Limit::Processes));
    let Some(shared) = cgroup.shared(&limits).unwrap() else { return };
    let (yard, beside) = (Yard::new(), Yard::new());
    let program = |yard: &Yard, command: &str| {
        let confinement = within(&yard.path(), true).lasting(limits, Some(shared.cgroup())).unwrap();
        yard.shell(command).confined(confinement)
    };
    let mut lives = program(&beside, "read line; exit 3").piped_input().start(&helper()).unwrap();
    lives.processes.started().await.unwrap();
    if !no_processes {
        let (text, _) = run(program(&yard, "while :; do sleep 600 & echo one; done"), &helper()).await;
        // Beside them: the two shells, and what supervises the second one.
        assert_eq!(text.matches("one\n").count(), 20 - 3, "{text}");
    }
    if !no_memory {
        let hog = "head -c 150m /dev/zero | tail -c 150m | sleep 2";
        let (_, report) = run(program(&yard, hog), &helper()).await;
        assert_eq!(end(&report), Some(End::Limit(Limit::Memory)));
    }
    drop(lives.stdin);
    assert_eq!(end(&lives.processes.ended().await), Some(End::Exited(3)), "it lives");
    drop(shared);
    assert_eq!(delegated.groups(), 0);
}

/// SB-4, SB-8: a group keeps the same limits of a program that has no namespaces, and goes with it.
#[tokio::test]
async fn a_group_needs_no_namespaces() {
    let Some(delegated) = Delegated::new("alone").await else { return };
    if landlock_alone_lacks(landlock_version()).is_err() {
        return;
    }
    let yard = Yard::new();
    let shell = async |limits, command| {
        let confinement = within(&yard.path(), true).landlock_alone().cgroup(&delegated.open(), limits);
        run(yard.shell(command).confined(confinement), &helper()).await
    };
    let limits = GroupLimits { cpu_time: Some(Duration::from_secs(1)), ..GroupLimits::default() };
    let spin = "echo so far; trap '' TERM; for n in 1 2 3; do (setsid sh -c 'while :; do :; done' &); done; wait; sleep 600";
    let (text, report) = shell(limits, spin).await;
    assert_eq!((end(&report), &*text), (Some(End::Limit(Limit::CpuTime)), "so far\n"));
    assert!(matches!(report, Report::Ran(ran) if ran.used.unwrap().cpu >= limits.cpu_time.unwrap()));
    assert_eq!((yard.census(), delegated.groups()), (0, 0));
    let (text, report) = shell(limits, "echo 0 >/sys/fs/cgroup/cgroup.procs || echo stays").await;
    assert!(end(&report) == Some(End::Exited(0)) && text.ends_with("stays\n"), "{text}");
    if !delegated.lacks(Limit::Processes) {
        let limits = GroupLimits { processes: Some(20), ..GroupLimits::default() };
        let (text, report) = shell(limits, "while :; do sleep 600 & echo one; done").await;
        assert_eq!(end(&report), Some(End::Limit(Limit::Processes)), "{text}");
        assert_eq!(text.matches("one\n").count(), 19, "the shell is one of them: {text}");
    }
    if !delegated.lacks(Limit::Memory) {
        let limits = GroupLimits { memory: Some(96 << 20), ..GroupLimits::default() };
        let (_, report) = shell(limits, "head -c 150m /dev/zero | tail -c 150m | sleep 2").await;
        assert_eq!(end(&report), Some(End::Limit(Limit::Memory)));
    }
    assert_eq!((yard.census(), delegated.groups()), (0, 0));
}

/// SB-4: a program sees no group, and a way out of one is closed.
#[tokio::test]
async fn a_group_is_not_left() {
    let Some(delegated) = Delegated::new("inside").await else { return };
    let yard = Yard::new();
    let look = "cat /proc/self/cgroup | grep ^0:; ls /sys/fs/cgroup; cat /proc/self/oom_score_adj; true";
    let (text, _) = delegated.shell(&yard, GroupLimits::default(), look).await;
    assert!(text.starts_with("0::/\n") && text.ends_with("1000\n"), "{text}");
}

/// SB-4: nor does it have a descriptor that leads to its group.
#[tokio::test]
async fn no_descriptor_of_a_group_is_inherited() {
    let Some(delegated) = Delegated::new("descriptors").await else { return };
    let yard = Yard::new();
    let in_group = |confinement: Confinement| {
        Program::new("/bin/ls").confined(confinement.cgroup(&delegated.open(), GroupLimits::default()))
    };
    has_no_other_descriptor(in_group(within(&yard.path(), true)), &helper()).await;
    has_no_other_descriptor(in_group(within(&yard.path(), true).door()), &helper()).await;
    // The kernel of a guest may be older than others.
    if landlock_alone_lacks(landlock_version()).is_ok() {
        has_no_other_descriptor(in_group(alone::within(&yard.path(), true)), &helper()).await;
    }
}

/// SB-7: nothing is left of programs that are ended at any moment, nor of their groups; what runs beside them lives.
#[tokio::test]
async fn no_group_is_left() {
    let Some(delegated) = Delegated::new("cancelled").await else { return };
    let (yard, beside) = (Yard::new(), Yard::new());
    let lives =
        delegated.program(&beside, GroupLimits::default(), "read line").piped_input().start(&helper());
    let mut lives = lives.unwrap();
    lives.processes.started().await.unwrap();
    for number in 0..40 {
        let program = delegated.program(&yard, GroupLimits::default(), "(setsid sleep 600 &); sleep 600");
        let mut started = program.start(&helper()).unwrap();
        if number % 3 == 0 {
            started.processes.started().await.unwrap();
        }
        if number % 2 == 0 { started.processes.kill() } else { drop(started) }
    }
    yard.until_empty().await;
    // A helper that took too long to kill was killed itself, and the next start removes its group.
    until("its own group alone is there", || {
        delegated.open();
        delegated.groups() == 1
    })
    .await;
    drop(lives.stdin);
    assert_eq!(end(&lives.processes.ended().await), Some(End::Exited(1)), "it was not ended with others");
    assert_eq!(delegated.groups(), 0);
}

/// SB-7: when an engine is killed, its helper ends what it confined, and removes the group.
#[tokio::test]
async fn a_killed_engine_leaves_no_group() {
    let Some(delegated) = Delegated::new("engine").await else { return };
    let yard = Yard::new();
    let mut engine = engine(&yard, &delegated.0);
    engine.kill().unwrap();
    engine.wait().unwrap();
    yard.until_empty().await;
    until("no group is left", || delegated.groups() == 0).await;
}

/// SB-7: when its helper is killed too, the program ends, and the next start removes the group: neither before, nor that of
/// an engine that lives.
#[tokio::test]
async fn a_later_start_removes_what_a_killed_helper_left() {
    let Some(delegated) = Delegated::new("helper").await else { return };
    let (yard, lives) = (Yard::new(), Yard::new());
    let (mut killed, mut living) = (engine(&yard, &delegated.0), engine(&lives, &delegated.0));
    let helper = children(killed.id());
    assert_eq!(helper.len(), 1, "{helper:?}");
    // The helper before the engine, which otherwise is told of its end.
    let status = Command::new("kill").args(["-9", &helper[0].to_string()]).status().unwrap();
    assert!(status.success());
    killed.kill().unwrap();
    killed.wait().unwrap();
    yard.until_empty().await;
    assert_eq!(delegated.groups(), 2, "nobody is there to remove it");
    delegated.open();
    until("the one that was left is gone", || {
        delegated.open();
        delegated.groups() == 1
    })
    .await;
    assert!(lives.census() > 0, "the other engine's lives");
    living.kill().unwrap();
    living.wait().unwrap();
    until("no group is left", || delegated.groups() == 0).await;
}

/// SB-4: what is no delegated group is refused by name.
#[tokio::test]
async fn what_is_no_delegated_group_is_refused() {
    let Some(delegated) = Delegated::new("refused").await else { return };
    let refused = |path: &Path| Cgroup::open(path).unwrap_err().to_string();
    let mut sleeping = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(delegated.0.join("cgroup.procs"), sleeping.id().to_string()).unwrap();
    assert_eq!(refused(&delegated.0), "it has processes of its own");
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    until("it is empty", || fs::read_to_string(delegated.0.join("cgroup.procs")).unwrap().is_empty()).await;
    let cgroup = delegated.open();
    let root = delegated.0.ancestors().find(|path| !path.join("cgroup.type").exists()).unwrap();
    assert_eq!(refused(root), "it is the root of all groups");
    // One that went since it was opened ends the start, and nothing runs without it.
    fs::remove_dir(&delegated.0).unwrap();
    let yard = Yard::new();
    let confinement = within(&yard.path(), true).cgroup(&cgroup, GroupLimits::default());
    let report = run(yard.shell("true").confined(confinement), &helper()).await.1;
    let Report::NotStarted(NotStarted::NotConfined(why)) = report else { panic!("{report:?}") };
    assert!(why.starts_with("cannot make a group in '/"), "{why}");
}

/// An engine that has a program in a group.
fn engine(yard: &Yard, group: &Path) -> std::process::Child {
    let mut engine = Command::new(ENGINE);
    engine.arg(yard.path()).arg("(trap '' TERM; setsid sleep 600 &); touch ready; sleep 600").arg(group);
    let engine = engine.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    while !yard.has("ready") {
        std::thread::yield_now();
    }
    engine
}

/// The processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    listed.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}
