//! Shell commands in the sandbox *landlock*, for machines without namespaces: that it has to be asked for, what is kept, and
//! what is refused.

use crate::{
    child::{fed, program},
    confined::{Yard, call, lacks_setpriv, until},
    missing::skip,
};
use serde_json::Value;
use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::Path,
    process::{Command, Stdio},
};

/// Lets the next program make no user namespace, wherever it runs.
const WITHOUT_NAMESPACES: [&str; 6] =
    ["unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"", "env"];

/// The rule that asks for the sandbox.
const RULE: &str = "shell = { sandbox = \"landlock\" }\n";

/// What `check` says of a configuration.
fn checked(file: &Path) -> String {
    let done = fed(program(&["check", "--config", file.to_str().unwrap()]), "");
    format!("{}{}", done.stdout, done.stderr)
}

/// Whether this machine cannot confine programs so. Where tests must run, it has to.
pub(crate) fn is_missing() -> bool {
    let checked = fed(program(&["check"]), "").stdout;
    let Some(why) = checked.lines().find_map(|line| line.strip_prefix("in landlock    not available: "))
    else {
        return false;
    };
    skip(&format!("this machine cannot confine programs by landlock: {why}"));
    true
}

/// The same command where no namespaces can be made; `None` if this machine has none that could be taken away.
fn without_namespaces(command: &Command) -> Option<Command> {
    let probe = Command::new(WITHOUT_NAMESPACES[0]).args(&WITHOUT_NAMESPACES[1..]).arg("true").output();
    if !probe.is_ok_and(|done| done.status.success()) {
        skip("'unshare -Ur' does not work here");
        return None;
    }
    let mut without = Command::new(WITHOUT_NAMESPACES[0]);
    without.args(&WITHOUT_NAMESPACES[1..]).arg(command.get_program()).args(command.get_args());
    without.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(without)
}

/// SB-4: where there are no namespaces, a call that is granted the process sandbox is refused, and told what to do; it is
/// never run by less. One whose rule says `landlock` runs.
#[test]
fn without_namespaces_less_is_taken_only_where_a_rule_says_so() {
    if is_missing() {
        return;
    }
    let run = |yard: &Yard, verb: &str| {
        let file = yard.place.join("toolyard.toml");
        let mut args = vec![verb, "--config", file.to_str().unwrap()];
        if verb == "run" {
            args.extend(["--report", "none", "--approve", "auto"]);
        }
        Some(fed(without_namespaces(&program(&args))?, &call("echo ran; touch ran")))
    };
    let yard = Yard::new("landlock-unasked", "");
    let Some(done) = run(&yard, "run") else { return };
    let error = &done.json()["results"][0]["error"];
    let message = error["message"].as_str().unwrap_or_else(|| panic!("{done:?}"));
    assert_eq!((&error["code"], &error["outcome"]), (&"sandbox_error".into(), &"not_started".into()));
    for part in [
        "cannot make namespaces: ",
        "user.max_user_namespaces is 0",
        "docs/sandboxes.md",
        "sandbox = \"landlock\"",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!yard.place.join("work/ran").exists());
    let checked = run(&yard, "check").unwrap().stdout;
    let line = checked.lines().find(|line| line.starts_with("in process")).unwrap();
    assert!(
        line.contains("not available: cannot make namespaces: ") && line.contains("sandbox = \"landlock\""),
        "{line}"
    );

    let yard = Yard::new("landlock-asked", RULE);
    let done = run(&yard, "run").unwrap();
    assert_eq!(done.json()["results"][0]["content"][0]["text"], "ran\n", "{done:?}");
    assert!(yard.place.join("work/ran").exists());
}

/// SB-4: `check` spells out what it lacks, line by line, where a rule names it, and that it is there where none does.
#[test]
fn check_spells_out_what_it_lacks() {
    if is_missing() {
        return;
    }
    let unused = checked(&Yard::new("landlock-unused", "").place.join("toolyard.toml"));
    assert!(
        unused.contains("in landlock    only where a rule says so, because it is weaker than process; "),
        "{unused}"
    );
    let used = checked(&Yard::new("landlock-used", RULE).place.join("toolyard.toml"));
    let mut lines = used.lines().skip_while(|line| !line.starts_with("in landlock")).skip(1);
    let lacks: Vec<&str> = lines.by_ref().map_while(|line| line.strip_prefix("               - ")).collect();
    let expect = toolyard_process::landlock_alone_lacks(toolyard_process::landlock_version()).unwrap();
    assert_eq!(lacks, expect, "{used}");
    assert!(used.contains("landlock") && !unused.contains("               - "), "{unused}");
}

/// SB-4, SB-7: what an agent's shell must not do ends in a code and a text that say what happened, and reaches nothing.
#[test]
fn what_a_shell_must_not_do_ends_by_name() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let limits = "shell = { sandbox = \"landlock\", open_files = 64, memory_per_process = \"64MiB\", \
                  cpu_time_per_process = \"1s\", wall_time = \"10s\" }\n";
    let yard = Yard::new("landlock-escape", limits);
    let outside = yard.place.join("outside");
    fs::write(&outside, "secret").unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o666)).unwrap();
    let socket = yard.place.join("work/daemon");
    let _daemon = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = "Permission denied";
    for (what, shell, code, text) in [
        ("write in its workspace", "echo new >a; mv a b; cat b", "ok", "new\n"),
        ("keep temporary files", "echo a >$TMPDIR/a; cat $HOME/a", "ok", "a\n"),
        ("read outside", "cat ../outside", "execution_error", refused),
        ("write outside", "echo new >../outside", "execution_error", refused),
        ("list outside", "ls ..", "execution_error", refused),
        ("link out", "ln ../outside stolen", "execution_error", "Invalid cross-device link"),
        ("write in /tmp", "echo x >/tmp/toolyard-landlock-escaped", "execution_error", refused),
        (
            "open a socket",
            "bash -c 'exec 3<>/dev/tcp/127.0.0.1/80'",
            "execution_error",
            "Operation not permitted",
        ),
        ("watch its user", "cat /proc/$PPID/environ", "execution_error", refused),
        ("make namespaces", "unshare -Ur true", "execution_error", "Operation not permitted"),
        (
            "leave a daemon",
            "(setsid sleep 600 &); echo left",
            "ok",
            "left\n[background processes were left and have been terminated]",
        ),
        ("fill memory", "head -c 200m /dev/zero | tail -c 150m", "execution_error", "memory exhausted"),
        ("spin", "while :; do :; done", "execution_error", "killed by signal 24"),
    ] {
        let (found, said) = yard.ended(shell);
        assert!(found == code && said.contains(text), "{what}: {found}: {said}");
        assert_eq!(yard.census(), 0, "{what}: something is left");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
}

/// SB-11: what governs is not written by programs, nor what git would run; what lies beside it is.
#[test]
fn what_governs_is_not_written_by_programs() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let yard = Yard::new("landlock-governs", RULE);
    let config = fs::read_to_string(yard.place.join("toolyard.toml")).unwrap();
    let work = yard.place.join("work");
    for directory in [".git/hooks", "src"] {
        fs::create_dir_all(work.join(directory)).unwrap();
    }
    fs::write(work.join(".git/config"), "[core]\n").unwrap();
    fs::write(work.join("plain"), "old\n").unwrap();
    fs::write(work.join("toolyard.toml"), config.replace("root = \"work\"", "root = \".\"")).unwrap();
    for path in [".git", ".git/config", ".git/hooks", "toolyard.toml", "plain", "src"] {
        fs::set_permissions(work.join(path), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let write = "for file in toolyard.toml .git/config .git/hooks/pre-commit new; do echo x >>$file; done; rm -f toolyard.toml; \
                 mv .git src; echo x >src/hook; ln src/hook .git/hooks/post-commit; mv src/hook .git/hooks/pre-push; \
                 echo new >plain; echo new >src/new; true";
    let done = fed(yard.command("work/toolyard.toml"), &call(write));
    let result = &done.json()["results"][0];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{done:?}"));
    assert!(work.join("toolyard.toml").exists() && work.join(".git/config").exists(), "{text}");
    assert_eq!(fs::read_to_string(work.join(".git/config")).unwrap(), "[core]\n", "{text}");
    assert_eq!(fs::read_dir(work.join(".git/hooks")).unwrap().count(), 0, "{text}");
    assert!(!work.join("new").exists(), "{text}");
    assert_eq!(fs::read_to_string(work.join("plain")).unwrap(), "new\n", "{text}");
    assert_eq!(fs::read_to_string(work.join("src/new")).unwrap(), "new\n", "{text}");
}

/// SB-4, SB-6: what it cannot keep or give is refused by name, and `check` says so before.
#[test]
fn what_it_cannot_keep_is_refused() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    for (limit, more, why) in [
        (", memory = \"64MiB\"", "", "sandbox 'landlock' cannot limit memory"),
        (", processes = 20", "", "sandbox 'landlock' cannot limit processes"),
        (", cpu_time = \"1s\"", "", "sandbox 'landlock' cannot limit CPU time"),
        (
            "",
            "[policy.capabilities]\nnet = [\"example.com\"]\n",
            "sandbox 'landlock' has no way to the hosts ",
        ),
    ] {
        let rule = format!("shell = {{ sandbox = \"landlock\"{limit} }}\n{more}");
        let yard = Yard::new("landlock-refused", &rule);
        let (code, text) = yard.ended("echo ran");
        assert!(
            code == "sandbox_error" && text.starts_with(why) && text.contains("the call was not run"),
            "{code}: {text}"
        );
        let checked = checked(&yard.place.join("toolyard.toml"));
        assert!(checked.contains(&format!("warning: tool 'shell': {why}")), "{checked}");
    }
}

/// SB-9: the event of the end says where the call ran.
#[test]
fn the_event_of_the_end_says_where_it_ran() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let yard = Yard::new("landlock-event", RULE);
    let mut command = yard.command("toolyard.toml");
    let events = yard.place.join("work/events.jsonl");
    command.arg("--events").arg(&events);
    fed(command, &call("echo ran"));
    let text = fs::read_to_string(events).unwrap();
    let mut events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let end = events.find(|event| event["event"] == "tool.completed").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(end["sandbox"], "landlock");
}

/// SB-7: a program that was killed leaves nothing of what it had confined, neither processes nor temporary files.
#[test]
fn nothing_outlives_a_program_that_was_killed() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let yard = Yard::new("landlock-killed", RULE);
    let mut command = yard.command("toolyard.toml");
    let ready = yard.place.join("work/ready");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let shell = "(trap '' TERM; setsid sleep 600 &); echo x >$TMPDIR/a; echo $TMPDIR >named; mv named ready; sleep 600";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), call(shell).as_bytes()).unwrap();
    until(|| ready.exists());
    let home = fs::read_to_string(ready).unwrap();
    let home = Path::new(home.trim());
    until(|| yard.census() > 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| yard.census() == 0);
    until(|| !home.exists());
    assert!(home.file_name().unwrap().to_str().unwrap().starts_with("toolyard-tmp-"));
}
