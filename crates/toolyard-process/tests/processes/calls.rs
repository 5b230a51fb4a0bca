//! The system calls that no confined program may make: which error each of them gives, by every number that it has.
//!
//! A filter answers before the kernel looks, so the errors are the same on every kernel, also on one that lacks a call.

use super::{
    alone,
    compiled::compiled,
    confined,
    containments::helper,
    yard::{Yard, run},
};
use std::{collections::BTreeMap, fs, fs::File, path::Path};
use toolyard_process::{Confinement, End, Program, Report};

/// Calls that runtimes try first, and do without.
const UNKNOWN: [&str; 4] = ["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"];

/// What the program says of each call.
struct Said(BTreeMap<String, String>);

/// Makes the calls; `None` where they cannot be compiled.
async fn said(confinement: impl FnOnce(&Path) -> Option<Confinement>) -> Option<Said> {
    let yard = Yard::new();
    let program = Program::new(compiled(&yard, "calls.c", "calls")?).directory(yard.path());
    let program = match confinement(&yard.path()) {
        Some(confinement) => program.confined(confinement),
        None => program,
    };
    let (text, report) = run(program, &helper()).await;
    assert!(matches!(report, Report::Ran(ran) if ran.end == Some(End::Exited(0))), "{report:?}: {text}");
    let lines = text.lines().map(|line| line.rsplit_once(": ").unwrap());
    Some(Said(lines.map(|(name, said)| (name.to_owned(), said.to_owned())).collect()))
}

/// With the terminals of this machine, where they are files that can be granted.
fn with_terminals(confinement: Confinement) -> Confinement {
    let grant = |confinement: Confinement, path: &str| match File::open(path) {
        Ok(opened) => confinement.grant(opened, path, true),
        Err(_) => confinement,
    };
    ["/dev/pts", "/dev/ptmx"].into_iter().fold(confinement, grant)
}

/// What a filter has to say of a call.
fn expected(name: &str, has_door: bool) -> &'static str {
    let native = name.strip_prefix("x32 ").unwrap_or(name);
    match native {
        "pipe of a runtime" => "done",
        _ if UNKNOWN.contains(&native) => "ENOSYS",
        // Neither sandbox has any, also where they are granted.
        "no terminal" => "allowed",
        _ if has_door && native.starts_with("tcp ") => "allowed",
        _ => "EPERM",
    }
}

impl Said {
    /// Every call is answered by the filter.
    fn is_refused(&self, has_door: bool) {
        assert!(self.0.len() > 2048, "{} lines", self.0.len());
        for (name, said) in &self.0 {
            let expected = expected(name, has_door);
            assert!(said == expected || expected == "allowed", "{name}: {said}, and not {expected}");
        }
    }
}

/// SB-4: in the sandbox *process*, without a way out
#[tokio::test]
async fn calls_of_a_process_are_refused_by_their_errors() {
    if confined::is_missing().await {
        return;
    }
    let Some(said) = said(|path| Some(with_terminals(confined::within(path, true)))).await else { return };
    said.is_refused(false);
}

/// and with one, which leaves TCP alone;
#[tokio::test]
async fn calls_of_a_process_with_a_door_are_refused_by_their_errors() {
    if confined::is_missing().await {
        return;
    }
    let Some(said) = said(|path| Some(confined::within(path, true).door())).await else { return };
    said.is_refused(true);
    assert_eq!(said.0["tcp 2 1"], "done");
}

/// in the sandbox *landlock*.
#[tokio::test]
async fn calls_under_landlock_are_refused_by_their_errors() {
    if alone::is_missing() {
        return;
    }
    let Some(said) = said(|path| Some(with_terminals(alone::within(path, true)))).await else { return };
    said.is_refused(false);
}

/// It is the filter that answers: where there is none the kernel says something else, by one of the numbers at least.
#[tokio::test]
async fn without_a_filter_these_calls_say_something_else() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    if !status.contains("\nSeccomp:\t0\n") {
        eprintln!("skipped: a filter of somebody else is in the way");
        return;
    }
    let Some(Said(said)) = said(|_| None).await else { return };
    // A kernel that knows x32 looks for privileges first under both numbers.
    let is_root = rustix::process::geteuid().is_root();
    if !is_root && said.get("x32 unshare").is_none_or(|said| said != "ENOSYS") {
        eprintln!("skipped: this kernel says the same, for want of privileges");
        return;
    }
    let is_refused = |name: &str| said.get(name).is_none_or(|said| said == "EPERM");
    // Nobody else may type into a terminal that is not its session's, and there is one number for that here.
    let is_told_apart = |name: &&String| is_root || !name.contains("terminal");
    let refused = said.keys().filter(|name| !name.starts_with("x32 ") && expected(name, false) == "EPERM");
    for name in refused.filter(is_told_apart) {
        assert!(!is_refused(name) || !is_refused(&format!("x32 {name}")), "{name}");
    }
    assert_eq!((&*said["unshare"], &*said["socket 1 1"]), ("done", "done"));
}
