//! Programs that landlock and seccomp confine without namespaces: what they reach, and what they do not.

use super::{
    compiled::compiled,
    containments::{ENGINE, helper},
    missing::skip,
    yard::{Yard, run, until},
};
use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::net::UnixListener,
    path::Path,
    process::{Command, Stdio},
};
use toolyard_process::{
    Confinement, End, NotStarted, OutputReader, ProcessLimits, Program, Report, landlock_alone_lacks,
    landlock_version,
};

/// Whether this machine cannot confine programs so. Where tests must run, it has to.
pub(super) fn is_missing() -> bool {
    let Err(why) = landlock_alone_lacks(landlock_version()) else { return false };
    skip(&format!("this machine cannot confine programs by landlock: {why}"));
    true
}

/// A confinement to this directory.
pub(super) fn within(directory: &Path, is_writable: bool) -> Confinement {
    let confinement = Confinement::new().landlock_alone();
    confinement.grant(File::open(directory).unwrap(), directory, is_writable)
}

/// Runs a command in its yard; returns what it printed and how it ended.
async fn shell(yard: &Yard, confinement: Confinement, command: &str) -> (String, Option<End>) {
    let (text, report) = run(yard.shell(command).confined(confinement), &helper()).await;
    let Report::Ran(ran) = report else { panic!("{report:?}: {text}") };
    (text, ran.end)
}

/// Why a program was not started.
async fn refused(program: Program) -> String {
    let (text, report) = run(program, &helper()).await;
    let Report::NotStarted(NotStarted::NotConfined(why)) = report else { panic!("{report:?}: {text}") };
    why
}

/// A yard with what the program that tries to escape needs, and one outside of it with what that is after.
fn yards() -> (Yard, Yard) {
    let (yard, outside) = (Yard::new(), Yard::new());
    for directory in ["free/deep", "hooks"] {
        fs::create_dir_all(yard.path().join(directory)).unwrap();
    }
    for file in ["kept", "plain", "free/mine", "free/other", "free/another", "free/third", "hooks/old"] {
        fs::write(yard.path().join(file), "old").unwrap();
    }
    for file in ["secret", "unlinked"] {
        fs::write(outside.path().join(file), "secret").unwrap();
    }
    fs::copy("/bin/true", outside.path().join("program")).unwrap();
    (yard, outside)
}

/// Runs that program; returns what it said of each way, `None` where it cannot be compiled.
async fn tried(yard: &Yard, outside: &Yard, part: &str, confinement: Option<Confinement>) -> Option<String> {
    let escapes = compiled(yard, "escapes_alone.c", "free/escapes")?;
    let _daemon = UnixListener::bind(outside.path().join("daemon")).unwrap();
    let program = Program::new(escapes).arg(outside.path()).arg(part).directory(yard.path());
    let program = match confinement {
        Some(confinement) => program.confined(confinement),
        None => program.env("TMPDIR", yard.path().join("free")),
    };
    let (text, report) = run(program, &helper()).await;
    assert!(matches!(report, Report::Ran(ran) if ran.end == Some(End::Exited(0))), "{report:?}: {text}");
    Some(text)
}

/// The ways that seccomp closes here, beside those that it closes everywhere.
const REFUSED: [&str; 21] = [
    "shared memory",
    "message queue",
    "semaphores",
    "posix message queue",
    "watch",
    "watch all",
    "kill all",
    "limit parent",
    "parent's priority",
    "user's priority",
    "parent's io priority",
    "chown",
    "fchown",
    "setxattr",
    "fsetxattr",
    "setxattrat",
    "removexattr",
    "set-user-id",
    "set-group-id",
    "set-user-id at",
    "set-user-id at 2",
];

fn done(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_suffix(": done")).collect()
}

/// SB-4: every way out that this confinement is to close fails with an error, and nothing is ended for having tried; what
/// ordinary programs do is possible.
#[tokio::test]
async fn every_way_out_that_is_to_be_closed_is() {
    if is_missing() {
        return;
    }
    let (yard, outside) = yards();
    let confinement =
        within(&yard.path(), true).keep(yard.path().join("kept")).keep(yard.path().join("hooks"));
    let Some(text) = tried(&yard, &outside, "all", Some(confinement)).await else { return };
    assert!(!text.contains("needed") && text.lines().count() > 100, "{text}");
    // Older kernels bound no signals, which `landlock_alone_lacks` says.
    let signals = ["kill parent", "kill parent by handle"];
    let open = done(&text).into_iter().filter(|way| landlock_version() >= 6 || !signals.contains(way));
    assert_eq!(open.collect::<Vec<_>>(), [""; 0], "{text}");
    for way in REFUSED {
        assert!(text.lines().any(|said| said.strip_suffix(": EPERM") == Some(way)), "{way}\n{text}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert_eq!(fs::read_to_string(yard.path().join("kept")).unwrap(), "old");
    let mut names: Vec<_> =
        fs::read_dir(yard.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["free", "hooks", "kept", "plain"]);
    assert!(yard.has("hooks/old") && fs::read_dir(yard.path().join("hooks")).unwrap().count() == 1);
}

/// The ways through files are ways: without the confinement each of them leads out.
#[tokio::test]
async fn without_it_these_ways_lead_out() {
    let (yard, outside) = yards();
    let Some(text) = tried(&yard, &outside, "files", None).await else { return };
    let closed: Vec<&str> = text.lines().filter(|line| !line.ends_with(": done")).collect();
    assert!(closed.is_empty() && text.lines().count() > 20, "{text}");
}

/// SB-4: what is granted for reading is not written, and what is not granted is not read.
#[tokio::test]
async fn what_is_granted_is_reached() {
    if is_missing() {
        return;
    }
    let (yard, outside) = yards();
    let look = format!(
        "cat kept; echo; cat {}/secret; echo new >plain; echo new >new; ls",
        outside.path().display()
    );
    let (text, end) = shell(&yard, within(&yard.path(), false), &look).await;
    assert_eq!(end, Some(End::Exited(0)), "{text}");
    assert!(text.starts_with("old\n") && text.ends_with("free\nhooks\nkept\nplain\n"), "{text}");
    assert_eq!(text.matches("Permission denied").count(), 3, "{text}");
    let (text, end) =
        shell(&yard, within(&yard.path(), true), "echo new >new; mv new free; cat free/new").await;
    assert_eq!((&*text, end), ("new\n", Some(End::Exited(0))));
}

/// SB-4: its temporary files lie in a directory of its own, which is gone with it, whatever it was left like.
#[tokio::test]
async fn its_temporary_files_go_with_it() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    let write = "cd; pwd; [ $HOME = $TMPDIR ] && echo x >$TMPDIR/a && mkdir -p b/c && mkdir -m 0 b/d && cat a; \
                 stat -c %a .; touch /tmp/mine-$$ || echo not in /tmp";
    let (text, end) = shell(&yard, within(&yard.path(), false), write).await;
    let home = Path::new(text.lines().next().unwrap());
    assert_eq!(home.parent(), Some(&*std::env::temp_dir()));
    assert!(text.contains("\nx\n700\n") && text.ends_with("not in /tmp\n"), "{text}");
    assert!(end == Some(End::Exited(0)) && !home.exists(), "{end:?}");
    // It starts there if nothing else is said.
    let (text, _) =
        run(Program::new("/bin/pwd").confined(Confinement::new().landlock_alone()), &helper()).await;
    assert!(text.contains("/toolyard-tmp-"), "{text}");
}

/// SB-4: it has no capability, not even root's, and gets none by what it executes.
#[tokio::test]
async fn it_has_no_capability() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    let look = "grep -E '^(CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status";
    let (text, _) = shell(&yard, within(&yard.path(), false), look).await;
    let status: Vec<&str> = text.split_whitespace().filter(|word| !word.ends_with(':')).collect();
    assert_eq!(status, ["0000000000000000", "0000000000000000", "0000000000000000", "1", "2"], "{text}");
}

/// SB-11: what is kept stays in its place at any depth, also by another name, and a link to it is not replaced; what lies
/// beside it is written as far as that is possible.
#[tokio::test]
async fn what_is_kept_stays_in_its_place() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    fs::create_dir_all(yard.path().join("a/b/hooks")).unwrap();
    fs::create_dir_all(yard.path().join("c/d")).unwrap();
    fs::write(yard.path().join("a/b/config"), "old").unwrap();
    fs::write(yard.path().join("a/b/plain"), "old").unwrap();
    std::os::unix::fs::symlink("a/b/config", yard.path().join("link")).unwrap();
    let write = "for name in a a/b; do mv $name moved; rm -rf $name; done; echo new >a/b/config; echo new >link; rm link; \
                 echo new >a/b/hooks/a; ln a/b/config c/config; mv c/d a/b; echo new >c/free; mv c/free a/b/hooks/free; \
                 echo new >a/b/plain; echo new >a/b/none; true";
    let kept = ["link", "a/b/hooks", "a/b/nothing"].map(|path| yard.path().join(path));
    let kept = kept.into_iter().fold(within(&yard.path(), true), Confinement::keep);
    let (text, _) = shell(&yard, kept, write).await;
    assert_eq!(fs::read_to_string(yard.path().join("link")).unwrap(), "old", "{text}");
    assert_eq!(fs::read_dir(yard.path().join("a/b/hooks")).unwrap().count(), 0, "{text}");
    assert!(
        yard.has("c/free") && yard.has("c/d") && !yard.has("c/config") && !yard.has("a/b/none"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(yard.path().join("a/b/plain")).unwrap(), "new\n", "{text}");
}

/// SB-1: a file that is granted to be read is not written although it lies in a directory that is.
#[tokio::test]
async fn what_is_granted_to_read_within_what_is_to_write_is_not_written() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    fs::create_dir(yard.path().join("tools")).unwrap();
    let tool = yard.path().join("tools/tool");
    fs::write(&tool, "old").unwrap();
    let confinement = within(&yard.path(), true).grant(File::open(&tool).unwrap(), &tool, false);
    let (text, _) = shell(&yard, confinement, "echo new >tools/tool; rm -rf tools; true").await;
    assert_eq!(fs::read_to_string(&tool).unwrap(), "old", "{text}");
}

/// SB-4: a grant is what was opened. If its name leads elsewhere by now, nothing runs.
#[tokio::test]
async fn a_name_that_was_swapped_is_refused() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    let granted = yard.path().join("granted");
    fs::create_dir(&granted).unwrap();
    let handle = File::open(&granted).unwrap();
    fs::rename(&granted, yard.path().join("moved")).unwrap();
    fs::create_dir(&granted).unwrap();
    let confinement = Confinement::new().landlock_alone().grant(handle, &granted, true);
    let why = refused(Program::new("/bin/true").confined(confinement)).await;
    assert!(why.ends_with("granted' has become something else since it was granted"), "{why}");
}

/// SB-8: limits hold, each for every process.
#[tokio::test]
async fn limits_of_each_process_hold() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    let limited = |limits| within(&yard.path(), true).limits(limits);
    let files = ProcessLimits { open_files: Some(32), ..ProcessLimits::default() };
    let (text, _) = shell(&yard, limited(files), "ulimit -n; ulimit -c").await;
    assert_eq!(text, "32\n0\n");
    let spin = ProcessLimits { cpu_seconds_per_process: Some(1), ..ProcessLimits::default() };
    let (text, end) = shell(&yard, limited(spin), "while :; do :; done").await;
    assert_eq!(end, Some(End::Killed(24)), "{text}");
    let memory = ProcessLimits { memory_per_process: Some(64 << 20), ..ProcessLimits::default() };
    let (text, end) =
        shell(&yard, limited(memory), "head -c 200000000 /dev/zero | tail -c 100000000 | wc -c").await;
    assert!(end == Some(End::Exited(0)) && text.ends_with("0\n"), "{end:?} {text}");
}

/// SB-4: what it cannot keep or give is refused by name, before anything is started.
#[tokio::test]
async fn what_it_cannot_do_is_refused_by_name() {
    let start = |confinement: Confinement| {
        Program::new("/bin/true").confined(confinement.landlock_alone()).start(&helper()).unwrap_err()
    };
    let few = ProcessLimits { processes: Some(4), ..ProcessLimits::default() };
    for (confinement, why) in [
        (Confinement::new().door(), "without namespaces there is no way out of it"),
        (Confinement::new().limits(few), "without namespaces a limit on its processes needs a group"),
    ] {
        let error = start(confinement);
        assert_eq!((error.kind(), &*error.to_string()), (std::io::ErrorKind::InvalidInput, why));
    }
    assert!(landlock_alone_lacks(0).unwrap_err().contains("no landlock"));
    assert!(landlock_alone_lacks(2).unwrap_err().contains("can be emptied"));
}

/// SM-3: a program that does not exist is the program's failure; what cannot be confined is the sandbox's.
#[tokio::test]
async fn what_failed_is_told_apart() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    let none = Program::new("/no/such/program").confined(within(&yard.path(), true));
    let report = run(none, &helper()).await.1;
    assert!(matches!(report, Report::NotStarted(NotStarted::Refused(_))), "{report:?}");
    // What lies outside is there, and is not executed.
    let outside = Yard::new();
    fs::copy("/bin/true", outside.path().join("program")).unwrap();
    let report =
        run(Program::new(outside.path().join("program")).confined(within(&yard.path(), true)), &helper())
            .await
            .1;
    assert!(
        matches!(&report, Report::NotStarted(NotStarted::Refused(why)) if why.contains("Permission denied")),
        "{report:?}"
    );
    let nowhere = Program::new("/bin/true").directory("/no/such/place").confined(within(&yard.path(), true));
    assert!(refused(nowhere).await.starts_with("cannot enter its directory: "));
}

/// SB-7: whatever it starts is gone with it, however it tries to stay.
#[tokio::test]
async fn nothing_of_it_is_left() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    let stays = "trap '' TERM; (setsid sleep 600 &); (setsid sh -c 'trap \"\" TERM; sleep 600 & wait' &); nohup sleep 600 & echo ready; wait";
    let started = yard.shell(stays).confined(within(&yard.path(), true)).start(&helper()).unwrap();
    let mut output = OutputReader::new(started.stdout);
    while !String::from_utf8_lossy(output.read().await.expect("it runs")).contains("ready") {}
    let mut processes = started.processes;
    processes.kill();
    let Report::Ran(ran) = processes.ended().await else { panic!("it ran") };
    assert_eq!(ran.rest.map(|rest| rest.surviving), Some(0));
    assert_eq!(yard.census(), 0);
    let (_, end) = shell(&yard, within(&yard.path(), true), "(setsid sleep 600 &); exit 3").await;
    assert_eq!((end, yard.census()), (Some(End::Exited(3)), 0));
}

/// SB-7: nothing is left of a hundred programs that are ended at any moment of their start.
#[tokio::test]
async fn nothing_is_left_of_a_hundred_that_were_cancelled() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    for number in 0..100 {
        let program = yard.shell("(setsid sleep 600 &); sleep 600").confined(within(&yard.path(), true));
        let mut started = program.start(&helper()).unwrap();
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

/// SB-7: when the engine is killed outright nothing is left, neither processes nor temporary files.
#[tokio::test]
async fn a_killed_engine_leaves_nothing() {
    if is_missing() {
        return;
    }
    let yard = Yard::new();
    let command = "trap '' TERM; (setsid sleep 600 &); echo x >$TMPDIR/a; echo $TMPDIR >named; mv named ready; sleep 600";
    let mut engine = Command::new(ENGINE);
    engine.arg(yard.path()).arg(command).arg("landlock");
    let mut engine = engine.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    until("the program runs", || yard.has("ready")).await;
    let home = fs::read_to_string(yard.path().join("ready")).unwrap();
    let home = Path::new(home.trim());
    let is_there = home.join("a").exists();
    until("what left its session runs", || yard.census() >= 2).await;
    engine.kill().unwrap();
    engine.wait().unwrap();
    yard.until_empty().await;
    until("its temporary files are gone", || !home.exists()).await;
    assert!(is_there);
    assert!(home.file_name().and_then(OsStr::to_str).unwrap().starts_with("toolyard-tmp-"));
}
