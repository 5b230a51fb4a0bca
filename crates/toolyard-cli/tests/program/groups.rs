//! Limits of all processes of a call together. Those that are kept need a delegated group of cgroup v2, which
//! `TOOLYARD_CGROUP` names; without one they are skipped, unless CI=true.

use crate::{
    child::{Done, fed, program},
    confined::is_missing,
    inn::Inn,
    missing::skip,
    place::dir,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A delegated group; `None` if there is none, or nothing can be confined.
fn delegated() -> Option<String> {
    let Ok(path) = std::env::var("TOOLYARD_CGROUP") else {
        skip("TOOLYARD_CGROUP names no delegated group");
        return None;
    };
    (!is_missing()).then_some(path)
}

/// Writes a configuration with this group; returns its file.
fn configured(name: &str, group: &str, more: &str) -> PathBuf {
    let place = dir(name).canonicalize().unwrap();
    fs::create_dir_all(place.join("work")).unwrap();
    fs::write(place.join("spin.sh"), "echo so far; while :; do :; done & while :; do :; done\n").unwrap();
    let config = format!(
        "[workspace]\nroot = \"work\"\n[builtin]\nenable = [\"shell\"]\n[shell]\nsandbox = \"process\"\n\
         [program.spin]\ndescription = \"Spins\"\ncommand = [\"sh\", \"./spin.sh\"]\n\
         [sandbox.process]\ncgroup = {}\n[policy.rules]\n{more}\n",
        json!(group)
    );
    let file = place.join("toolyard.toml");
    fs::write(&file, config).unwrap();
    file
}

/// The results of calls.
fn results(file: &Path, calls: &[Value]) -> Value {
    let args = ["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()];
    let done = fed(program(&args), &json!({ "calls": calls }).to_string());
    done.json()["results"].take()
}

fn check(file: &Path) -> Done {
    fed(program(&["check", "--config", file.to_str().unwrap()]), "")
}

fn checked(file: &Path) -> String {
    let done = check(file);
    format!("{}{}", done.stdout, done.stderr)
}

/// A confined server with these limits, and these settings beside it.
fn server(name: &str, limits: &str, more: &str) -> Inn {
    let inn = Inn::open(name, "");
    let server = format!("{}sandbox = \"process\"\nfiles = [\".\"]\n{limits}\n", inn.section());
    fs::write(inn.path("toolyard.toml"), server + more).unwrap();
    inn
}

/// What `check` says of it.
fn of_a_server(name: &str, limits: &str, more: &str) -> Done {
    check(&server(name, limits, more).path("toolyard.toml"))
}

/// The line of the server in what `check` prints.
fn line_of(done: &Done) -> &str {
    done.stdout.lines().find(|line| line.starts_with("mcp inn")).unwrap_or_else(|| panic!("{done:?}"))
}

/// SB-4, SB-8: limits of all processes together are kept, and the result names the one that was reached.
#[test]
fn a_limit_of_all_processes_ends_by_name() {
    let Some(group) = delegated() else { return };
    let rules = "shell = { cpu_time = \"300ms\" }\nspin = { cpu_time = \"300ms\" }";
    let file = configured("groups", &group, rules);
    let spin = "echo so far; while :; do :; done & while :; do :; done";
    let calls = [
        json!({"call_id": "a", "name": "shell", "arguments": {"command": spin}}),
        json!({"call_id": "b", "name": "spin", "arguments": {}}),
        json!({"call_id": "c", "name": "shell", "arguments": {"command": "echo fine"}}),
    ];
    let results = results(&file, &calls);
    let error = |at: usize, field: &str| results[at]["error"][field].as_str().unwrap_or_default().to_owned();
    assert_eq!(error(0, "code"), "execution_error", "{results}");
    assert_eq!(error(0, "message"), "ran into its limit of CPU time", "{results}");
    assert_eq!(results[0]["content"][0]["text"], "ran into its limit of CPU time\nso far\n");
    assert_eq!((&*error(1, "code"), &*error(1, "outcome")), ("execution_error", "unknown"), "{results}");
    let expect = "the program ran into its limit of CPU time";
    assert!(error(1, "message").starts_with(expect), "{results}");
    assert_eq!(results[2]["content"][0]["text"], "fine\n");
}

/// SB-4: `check` prints which limits are kept, and why not the others; what it says is what happens.
#[test]
fn check_says_which_limits_are_kept() {
    let Some(group) = delegated() else { return };
    let file = configured("groups-check", &group, "shell = { memory = \"64MiB\", processes = 20 }");
    let checked = checked(&file);
    let line =
        checked.lines().find(|line| line.starts_with("in process")).unwrap_or_else(|| panic!("{checked}"));
    assert!(line.contains(&format!("; groups in '{group}'")), "{line}");
    let kept = |limit: &str| !line.contains(&format!("{limit} (its "));
    assert!(kept("CPU time"), "{line}");
    let calls =
        [json!({"call_id": "a", "name": "shell", "arguments": {"command": "while :; do sleep 600 & done"}})];
    let results = results(&file, &calls);
    let message = results[0]["error"]["message"].as_str().unwrap_or_default();
    let expect = match (kept("memory"), kept("processes")) {
        (true, true) => "ran into its limit of processes",
        (false, _) => "sandbox 'process' cannot limit memory: the call was not run",
        (true, false) => "sandbox 'process' cannot limit processes: the call was not run",
    };
    assert!(message.starts_with(expect), "{line}\n{results}");
}

/// SB-4: what only looks like a group is refused by every command, before anything runs.
#[test]
fn a_directory_is_no_group() {
    for (group, why) in [
        ("/tmp", "it does not lie in a cgroup2 file system"),
        ("/no/such/group", "No such file or directory"),
        ("sys/fs/cgroup", "it is not an absolute path"),
    ] {
        let checked = checked(&configured("groups-none", group, ""));
        let expect = format!("cgroup: '{group}' is no delegated group: {why}");
        assert!(checked.contains(&expect), "{checked}");
    }
}

/// SB-4, SB-5: a confined server has the limits of its section for as long as it lives, and `check` prints them; one that
/// it ran into is named.
#[test]
fn a_server_has_its_own_limits() {
    if is_missing() {
        return;
    }
    let done = of_a_server("groups-server", "memory_per_process = \"1GiB\"\nopen_files = 40", "");
    assert!(
        line_of(&done).ends_with("3 tools, in process, limited to 1GiB memory per process, 40 open files"),
        "{done:?}"
    );
    let inn = server("groups-server-says", "memory_per_process = \"1GiB\"\nopen_files = 40", "");
    fs::write(inn.path("inn.sh"), "echo $(ulimit -n) files, $(ulimit -v) KiB >&2; exit 3\n").unwrap();
    let done = check(&inn.path("toolyard.toml"));
    assert!(done.stderr.contains("on stderr: 40 files, 1048576 KiB"), "{done:?}");
    let Some(group) = delegated() else { return };
    let cgroup = format!("[sandbox.process]\ncgroup = {}\n", json!(group));
    let done = of_a_server("groups-server-plain", "", &cgroup);
    assert!(line_of(&done).ends_with("3 tools, in process"), "{done:?}");
    let limited = |most: u32| of_a_server("groups-server-own", &format!("processes = {most}"), &cgroup);
    match kept(&cgroup, "processes") {
        Err(why) => assert!(limited(20).stderr.contains(&why), "{why}"),
        Ok(()) => {
            let done = limited(20);
            assert!(line_of(&done).ends_with(", in process, limited to 20 processes"), "{done:?}");
            // It needs a second one for all that it says.
            let done = limited(1);
            assert!(done.stderr.contains("it ran into its limit of processes"), "{done:?}");
        }
    }
    let done = of_a_server("groups-server-memory", "memory = \"4MiB\"", &cgroup);
    let expect = match kept(&cgroup, "memory") {
        Err(why) => why,
        // Those who start it have about as much.
        Ok(()) => "it ran into its limit of memory".to_owned(),
    };
    assert!(done.stderr.contains(&expect), "{expect}: {done:?}");
}

/// Whether `check` says that a limit is kept with these settings; otherwise how a server with it is refused.
fn kept(cgroup: &str, limit: &str) -> Result<(), String> {
    let done = of_a_server("groups-server-check", "", cgroup);
    let line = done.stdout.lines().find(|line| line.starts_with("in process")).unwrap();
    let unkept = line.split_once(&format!("{limit} (its ")).map(|(_, why)| why.split(')').next().unwrap());
    match unkept {
        None => Ok(()),
        Some(why) => Err(format!("sandbox 'process' cannot limit {limit} (its {why})")),
    }
}

/// SB-4, SB-5: a limit of all processes of a server together is refused by name where there is no group, and the server
/// does not start.
#[test]
fn a_limit_of_a_server_that_is_not_kept_is_refused_by_name() {
    if is_missing() {
        return;
    }
    let done = of_a_server("groups-server-none", "memory = \"64MiB\"", "");
    let expect = "'sh' cannot be started: sandbox 'process' cannot limit memory (it needs a cgroup)";
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains(expect) && done.stderr.lines().count() == 1, "{done:?}");
    let done = of_a_server("groups-server-optional", "memory = \"64MiB\"\nrequired = false", "");
    assert!(line_of(&done).contains("cannot limit memory (it needs a cgroup)"), "{done:?}");
}
