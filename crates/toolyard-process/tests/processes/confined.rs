//! Confined programs: what they reach, and what they do not.

use super::{
    compiled::compiled,
    containments::helper,
    missing::skip,
    yard::{Yard, run},
};
use std::{
    fs::{self, File},
    path::Path,
};
use toolyard_process::{
    Confinement, Containment, End, NotStarted, ProcessLimits, Program, Report, git_files,
};

/// Whether this machine can confine programs. Where tests must run, it has to.
pub(super) async fn is_missing() -> bool {
    let report = run(Program::new("/bin/true").confined(Confinement::new()), &helper()).await.1;
    let Report::NotStarted(NotStarted::NoNamespaces(why) | NotStarted::NotConfined(why)) = report else {
        return false;
    };
    skip(&format!("this machine cannot confine programs: {why}"));
    true
}

/// A confinement to this directory.
pub(super) fn within(directory: &Path, is_writable: bool) -> Confinement {
    Confinement::new().grant(File::open(directory).unwrap(), directory, is_writable)
}

/// Runs a command confined to its yard; returns what it printed and how it ended.
async fn shell(yard: &Yard, confinement: Confinement, command: &str) -> (String, Option<End>) {
    let (text, report) = run(yard.shell(command).confined(confinement), &helper()).await;
    let Report::Ran(ran) = report else { panic!("{report:?}: {text}") };
    (text, ran.end)
}

/// SB-4: the root holds the system, what is granted, and nothing else.
#[tokio::test]
async fn the_root_holds_what_is_granted() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    fs::write(yard.path().join("file"), "granted\n").unwrap();
    let look = "cat file; pwd; echo $(ls /); echo $(ls /dev); ls /etc";
    let (text, end) = shell(&yard, within(&yard.path(), true), look).await;
    assert_eq!(end, Some(End::Exited(0)), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["granted", yard.path().to_str().unwrap()]);
    for name in lines[2].split(' ') {
        let known = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr"];
        assert!(known.contains(&name), "{name}: {text}");
    }
    assert_eq!(lines[3], "fd full null random shm stderr stdin stdout urandom zero", "{text}");
    for secret in ["shadow", "sudoers", "ssh", "hostname"] {
        assert!(!lines[4..].contains(&secret), "{secret}: {text}");
    }
}

/// SB-4: it is nobody in particular, alone with its own processes, and has no capability.
#[tokio::test]
async fn it_is_nobody_and_alone() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let look = "id -un; hostname; echo $(ls /proc | grep -c '^[0-9]'); grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status";
    let (text, _) = shell(&yard, within(&yard.path(), true), look).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["toolyard", "toolyard"], "{text}");
    let processes: usize = lines[2].parse().unwrap();
    assert!(processes <= 5, "init, the shell and what it starts: {text}");
    let status: Vec<&str> = lines[3..].iter().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(status, ["0000000000000000", "0000000000000000", "1", "2"], "{text}");
}

/// SB-4: what is granted for reading is not written, nor what is kept within what is granted for writing.
#[tokio::test]
async fn what_is_read_only_is_not_written() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    fs::create_dir(yard.path().join("hooks")).unwrap();
    fs::write(yard.path().join("config"), "old").unwrap();
    let write = "echo new >config; echo new >hooks/a; echo new >free; mv hooks moved; rm config; ls; true";
    let (text, _) = shell(&yard, within(&yard.path(), false), write).await;
    assert!(!yard.has("free") && !yard.has("hooks/a"), "{text}");
    let kept = within(&yard.path(), true).keep(yard.path().join("config")).keep(yard.path().join("hooks"));
    let (text, _) = shell(&yard, kept.keep(yard.path().join("none")), write).await;
    assert!(yard.has("free") && yard.has("hooks") && !yard.has("hooks/a") && !yard.has("moved"), "{text}");
    assert_eq!(fs::read_to_string(yard.path().join("config")).unwrap(), "old", "{text}");
}

/// SB-11: what is kept is not put aside with the directory that holds it, at any depth; what lies beside it is free.
#[tokio::test]
async fn what_is_kept_stays_in_its_place() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    fs::create_dir_all(yard.path().join("a/b/hooks")).unwrap();
    fs::write(yard.path().join("a/b/config"), "old").unwrap();
    let write = "for name in a a/b; do mv $name moved; rm -rf $name; done; mkdir -p a/b/hooks; echo new >a/b/config; \
                 echo new >a/b/hooks/a; ln a/b/config link; echo new >a/b/free; mv a/b/free a/free; true";
    let kept = ["a/b/config", "a/b/hooks"].map(|path| yard.path().join(path));
    let kept = kept.into_iter().fold(within(&yard.path(), true), Confinement::keep);
    let (text, _) = shell(&yard, kept, write).await;
    assert_eq!(fs::read_to_string(yard.path().join("a/b/config")).unwrap(), "old", "{text}");
    // What was moved is a copy.
    assert!(yard.has("a/b/hooks") && !yard.has("a/b/hooks/a") && !yard.has("link"), "{text}");
    assert!(yard.has("a/free") && !yard.has("a/b/free"), "{text}");
}

/// SB-11: a path whose directory is a file does not exist; the file is kept by its own name.
#[tokio::test]
async fn a_path_through_a_file_is_none() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    fs::write(yard.path().join(".git"), "gitdir: there").unwrap();
    let kept = git_files(&yard.path()).fold(within(&yard.path(), true), Confinement::keep);
    let (text, end) = shell(&yard, kept, "echo new >.git; rm .git; mv .git moved; exit 3").await;
    assert_eq!(end, Some(End::Exited(3)), "{text}");
    assert_eq!(fs::read_to_string(yard.path().join(".git")).unwrap(), "gitdir: there", "{text}");
}

/// A program that is named without a place is searched inside, as it is outside.
#[tokio::test]
async fn a_name_is_searched_inside() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let program = |name: &str| Program::new(name).env("PATH", "/nowhere:/usr/bin:/bin").directory("/tmp");
    let (_, report) = run(program("true").confined(within(&yard.path(), false)), &helper()).await;
    assert!(matches!(report, Report::Ran(ran) if ran.end == Some(End::Exited(0))), "{report:?}");
    let (_, report) = run(program("no-such").confined(within(&yard.path(), false)), &helper()).await;
    let why = "No such file or directory (os error 2)".to_owned();
    assert_eq!(report, Report::NotStarted(NotStarted::Refused(why)));
}

/// SB-4: its `/tmp` is its own, and bounded; nothing else is writable.
#[tokio::test]
async fn its_tmp_is_its_own() {
    if is_missing().await {
        return;
    }
    let (yard, name) = (Yard::new(), format!("/tmp/{}", std::process::id()));
    let write = format!(
        "echo x >{name}; cat {name}; head -c 200000 /dev/zero >/tmp/big || echo full; touch /x /usr/x /etc/x; true"
    );
    let (text, _) = shell(&yard, within(&yard.path(), false).tmp_bytes(100 << 10), &write).await;
    assert!(text.starts_with("x\n") && text.contains("full\n"), "{text}");
    assert_eq!(text.matches("Read-only file system").count(), 3, "{text}");
    assert!(!Path::new(&name).exists());
}

/// SB-4: a grant is what was opened. If its name leads elsewhere by now, nothing runs.
#[tokio::test]
async fn a_name_that_was_swapped_is_refused() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let (granted, moved) = (yard.path().join("granted"), yard.path().join("moved"));
    fs::create_dir(&granted).unwrap();
    let handle = File::open(&granted).unwrap();
    fs::rename(&granted, &moved).unwrap();
    // A handle knows its new name, so the directory is found there, at the place that was asked for.
    let confinement = Confinement::new().grant(handle.try_clone().unwrap(), &granted, true);
    let program = Program::new("/bin/ls").arg(&granted).confined(confinement);
    assert!(matches!(run(program, &helper()).await.1, Report::Ran(_)));
    fs::remove_dir(&moved).unwrap();
    let program = Program::new("/bin/ls").confined(Confinement::new().grant(handle, &granted, true));
    let report = run(program, &helper()).await.1;
    assert!(matches!(report, Report::NotStarted(NotStarted::NotConfined(_))), "{report:?}");
}

/// SB-8: limits hold, each for every process.
#[tokio::test]
async fn limits_hold() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let limited = |limits| within(&yard.path(), true).limits(limits);
    let files = ProcessLimits { open_files: Some(32), ..ProcessLimits::default() };
    let (text, _) = shell(&yard, limited(files), "ulimit -n; ulimit -c").await;
    assert_eq!(text, "32\n0\n");
    let spin = ProcessLimits { cpu_seconds_per_process: Some(1), ..ProcessLimits::default() };
    let (text, end) = shell(&yard, limited(spin), "while :; do :; done").await;
    // SIGXCPU, which says what it is for.
    assert_eq!(end, Some(End::Killed(24)), "{text}");
    let memory = ProcessLimits { memory_per_process: Some(64 << 20), ..ProcessLimits::default() };
    let (text, end) =
        shell(&yard, limited(memory), "head -c 200000000 /dev/zero | tail -c 100000000 | wc -c").await;
    assert!(end == Some(End::Exited(0)) && text.ends_with("0\n"), "{end:?} {text}");
}

/// SB-9: processor time and memory of what it started count as its own, also of what was orphaned or killed.
#[tokio::test]
async fn what_it_used_is_known() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let hog = "head -c 80000000 /dev/zero | tail -c 40000000 >/dev/null";
    let spin = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done)";
    for (command, is_killed) in [
        (format!("{hog}; {spin}"), false),
        (format!("({hog}; {spin}; echo > done) & while [ ! -e done ]; do sleep 0.01; done; rm done"), false),
        (format!("{hog}; {spin}; kill -9 $$"), true),
    ] {
        for confinement in [None, Some(within(&yard.path(), true))] {
            let program = yard.shell(&command);
            let program = match confinement {
                Some(confinement) => program.confined(confinement),
                None => program,
            };
            let Report::Ran(ran) = run(program, &helper()).await.1 else { panic!("{command}: it ran") };
            assert_eq!(ran.end == Some(End::Killed(9)), is_killed, "{command}: {ran:?}");
            let used = ran.used.expect("a helper knows it");
            assert!(used.memory_peak >= 40_000_000 && used.memory_peak < 1 << 30, "{command}: {used:?}");
            assert!(used.cpu.as_millis() >= 10, "{command}: {used:?}");
        }
    }
}

/// SB-7: whatever it starts is gone with it, however it tries to stay.
#[tokio::test]
async fn nothing_of_it_is_left() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let stays = "trap '' TERM; (setsid sleep 600 &); (setsid sh -c 'trap \"\" TERM; sleep 600 & wait' &); nohup sleep 600 & echo ready; wait";
    let started = yard.shell(stays).confined(within(&yard.path(), true)).start(&helper()).unwrap();
    let mut output = toolyard_process::OutputReader::new(started.stdout);
    while !String::from_utf8_lossy(output.read().await.expect("it runs")).contains("ready") {}
    let mut processes = started.processes;
    processes.kill();
    let Report::Ran(ran) = processes.ended().await else { panic!("it ran") };
    assert_eq!(ran.rest.map(|rest| rest.surviving), Some(0));
    yard.until_empty().await;
    let (_, end) = shell(&yard, within(&yard.path(), true), "(setsid sleep 600 &); exit 3").await;
    assert_eq!(end, Some(End::Exited(3)));
    yard.until_empty().await;
}

/// SB-7: nothing is left of a hundred programs that are ended at any moment of their start.
#[tokio::test]
async fn nothing_is_left_of_a_hundred_that_were_cancelled() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    for number in 0..100 {
        let program = yard.shell("(setsid sleep 600 &); sleep 600").confined(within(&yard.path(), true));
        let mut started = program.start(&helper()).unwrap();
        // Some before they are confined, some after: how far they are is the machine's choice.
        for _ in 0..number {
            tokio::task::yield_now().await;
        }
        if number % 3 == 0 {
            started.processes.started().await.unwrap();
        }
        if number % 2 == 0 { started.processes.kill() } else { drop(started) }
    }
    yard.until_empty().await;
}

/// SM-3: a program that does not exist is the program's failure; what cannot be confined is the sandbox's.
#[tokio::test]
async fn what_failed_is_told_apart() {
    if is_missing().await {
        return;
    }
    let yard = Yard::new();
    let none = Program::new("/no/such/program").confined(within(&yard.path(), true));
    let report = run(none, &helper()).await.1;
    assert!(matches!(report, Report::NotStarted(NotStarted::Refused(_))), "{report:?}");
    let nowhere = Program::new("/bin/true").directory("/no/such/place").confined(within(&yard.path(), true));
    let report = run(nowhere, &helper()).await.1;
    assert!(matches!(report, Report::NotStarted(NotStarted::NotConfined(_))), "{report:?}");
    let alone = Program::new("/bin/true").confined(Confinement::new()).start(&Containment::Group);
    assert_eq!(alone.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
    let relative = Program::new("/bin/true").confined(Confinement::new().keep("a")).start(&helper());
    assert_eq!(relative.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

/// Runs the program that tries to escape; returns what it said of each way, `None` where it cannot be compiled.
pub(super) async fn tried(yard: &Yard, outside: &Yard, confinement: Confinement) -> Option<String> {
    let program = Program::new(compiled(yard, "escapes.c", "escapes")?)
        .args([outside.path().join("secret"), yard.path().join("kept")])
        .directory(yard.path())
        .confined(confinement);
    let (text, report) = run(program, &helper()).await;
    assert!(matches!(report, Report::Ran(ran) if ran.end == Some(End::Exited(0))), "{report:?}: {text}");
    assert!(text.lines().count() > 60 && !text.contains("needed"), "{text}");
    Some(text)
}

/// SB-4: every way out that is known fails with an error, and nothing is ended for having tried.
#[tokio::test]
async fn every_way_out_is_closed() {
    if is_missing().await {
        return;
    }
    let (yard, outside) = (Yard::new(), Yard::new());
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::write(yard.path().join("kept"), "kept").unwrap();
    let confinement = within(&yard.path(), true).keep(yard.path().join("kept"));
    let Some(text) = tried(&yard, &outside, confinement).await else { return };
    let done: Vec<&str> = text.lines().filter(|line| line.ends_with(": done")).collect();
    assert_eq!(done, ["kill init: done"], "a signal to init that it does not take is no error\n{text}");
    for (ways, error) in [
        (&["open", "truncate", "chmod", "utime", "setxattr"].map(|way| format!("{way} kept"))[..], "EROFS"),
        (&["create outside", "chmod system", "core pattern"].map(str::to_owned), "EROFS"),
        (
            &["open outside", "open shadow", "open device", "sysrq", "kcore", "sysfs"].map(str::to_owned),
            "ENOENT",
        ),
        (&["mknod", "keep caps"].map(str::to_owned), "EPERM"),
        (&["setuid", "new privileges"].map(str::to_owned), "EINVAL"),
    ] {
        for way in ways {
            let line = format!("{way}: {error}");
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
    }
    assert_eq!(fs::read_to_string(yard.path().join("kept")).unwrap(), "kept");
}
