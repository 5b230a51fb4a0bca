//! Commands in virtual machines: set up, checked and called by the program.

use crate::{
    child::{Done, fed, program},
    place::dir,
};
use serde_json::{Value, json};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// What the configuration says of machines, as `TOOLYARD_VM_KERNEL`, `_MODULES` and `_AGENT` name their parts.
pub(crate) fn parts() -> String {
    let agent = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("x86_64-unknown-linux-gnu")
        .join("release/toolyard-vm-agent");
    let named = |name: &str| env::var_os(format!("TOOLYARD_VM_{name}")).map(PathBuf::from);
    let agent = named("AGENT").unwrap_or(agent);
    let all = [("kernel", named("KERNEL")), ("modules", named("MODULES")), ("agent", Some(agent))];
    let there = all.into_iter().filter_map(|(key, path)| Some((key, path.filter(|path| path.exists())?)));
    there.map(|(key, path)| format!("{key} = {:?}\n", path.to_str().unwrap())).collect()
}

/// A yard with one tool, a script of the shell, whose machines are kept for the next test.
struct Yard {
    place: PathBuf,
}

impl Yard {
    fn new(name: &str, script: &str, of_machines: &str) -> Self {
        let place = dir(name).canonicalize().unwrap();
        fs::create_dir_all(place.join("work")).unwrap();
        fs::write(place.join("tool.sh"), script).unwrap();
        fs::write(place.join("vmlinuz-none"), "").unwrap();
        let config = format!(
            "[workspace]\nroot = \"work\"\n[policy.rules]\nt = {{ sandbox = \"micro_vm\" }}\n[program.t]\n\
             description = \"A tool\"\ncommand = [\"/bin/sh\", \"./tool.sh\"]\n[sandbox.micro_vm]\n{of_machines}\n"
        );
        fs::write(place.join("toolyard.toml"), config).unwrap();
        Self { place }
    }

    fn command(&self, args: &[&str]) -> Done {
        self.called(args, &json!({"calls": [{"call_id": "a", "name": "t", "arguments": {"b": 1}}]}))
    }

    /// The program with these calls.
    fn called(&self, args: &[&str], calls: &Value) -> Done {
        let file = self.place.join("toolyard.toml");
        let mut command = program(&[args, &["--config", file.to_str().unwrap()]].concat());
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines-of-program"));
        fed(command, &calls.to_string())
    }

    fn set_up(&self) -> Done {
        self.command(&["sandbox", "setup", "micro-vm", "--json"])
    }
}

/// Whether this machine lacks parts of others. With `TOOLYARD_VM=required` it must not.
pub(crate) fn is_missing(done: &Done) -> bool {
    if done.code == Some(0) {
        return false;
    }
    assert_ne!(env::var("TOOLYARD_VM").as_deref(), Ok("required"), "{}", done.stderr);
    eprintln!("skipped: {}", done.stderr);
    true
}

/// SB-3, SB-4, SB-9: what was set up is checked and called: a kernel of its own, the files of the call, no network.
#[test]
fn a_program_runs_in_a_machine_of_its_own() {
    let script = "cat; echo; uname -s; cat words; grep -c : /proc/net/dev; echo more >> words";
    let yard = Yard::new("machine-program", script, &parts());
    fs::write(yard.place.join("work/words"), "two words\n").unwrap();
    let set_up = yard.set_up();
    if is_missing(&set_up) {
        return;
    }
    let document = set_up.json();
    assert!(Path::new(document["snapshots"][0]["file"].as_str().unwrap()).is_file(), "{document}");
    assert_eq!((&document["accel"], &document["snapshots"][0]["memory_mib"]), (&json!("tcg"), &json!(128)));
    let checked = yard.command(&["check"]).stdout;
    let what = "commands in a virtual machine of their own (tcg), with copies of their files and no network";
    assert!(checked.contains(what) && !checked.contains("warning"), "{checked}");
    let result: Value =
        yard.command(&["run", "--report", "none", "--approve", "auto"]).json()["results"][0].take();
    assert_eq!(result["content"][0]["text"], "{\"b\":1}\nLinux\ntwo words\n1\n", "{result}");
    assert!(result["usage"]["wall_ms"].is_u64(), "{result}");
    assert_eq!(fs::read_to_string(yard.place.join("work/words")).unwrap(), "two words\nmore\n");
}

/// SB-4: what is missing is named with how to get it, and calls are refused before anything runs.
#[test]
fn what_is_missing_is_named() {
    let with = |line: &str| {
        let name = format!("machine-missing-{}", line.len());
        Yard::new(&name, "true", line).set_up()
    };
    let done = with("agent = \"none\"");
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("micro_vm agent: there is no '"), "{}", done.stderr);
    let done = with("memory = [\"1000KiB\"]");
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("memory: a size is a whole number of MiB"), "{}", done.stderr);
    let yard = Yard::new("machine-missing", "true", "kernel = \"vmlinuz-none\"");
    let done = yard.set_up();
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("there is no directory of modules '/lib/modules/none' (apt-get"),
        "{}",
        done.stderr
    );
    let checked = yard.command(&["check"]).stdout;
    assert!(checked.contains("not available: "), "{checked}");
    assert!(checked.contains("it runs in sandbox 'micro_vm', which this program has not"), "{checked}");
    let result: Value =
        yard.command(&["run", "--report", "none", "--approve", "auto"]).json()["results"][0].take();
    assert_eq!(
        (&result["error"]["code"], &result["error"]["outcome"]),
        (&json!("sandbox_error"), &json!("not_started"))
    );
}

/// SB-2, SB-3, SB-7: a session of the shell in machines: each command has the workspace as the one before left it, one
/// output, which is streamed, its exit code in the result, and its own limit of time; `check` says where they run.
#[test]
fn the_shell_runs_in_machines() {
    let yard = Yard::new("machine-shell", "true", &parts());
    if is_missing(&yard.set_up()) {
        return;
    }
    let file = yard.place.join("toolyard.toml");
    let config = fs::read_to_string(&file).unwrap();
    let more = "[builtin]\nenable = [\"shell\"]\n[shell]\nsandbox = \"micro_vm\"\n";
    fs::write(&file, format!("{more}{config}")).unwrap();
    let checked = yard.command(&["check"]).stdout;
    assert!(!checked.contains("warning") && !checked.contains("unconfined"), "{checked}");
    let call = |id: &str, command: &str, more: Value| {
        let mut arguments = json!({"command": command});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"call_id": id, "name": "shell", "arguments": arguments})
    };
    let calls = json!({"calls": [
        call("make", "mkdir notes && echo 'in a machine' > notes/a; uname -n; id -u; echo $HOME; cat", json!({})),
        call("read", "cat a; cat b; exit 3", json!({"cwd": "notes"})),
        call("kill", "kill -9 $$", json!({})),
        call("reach", "cat /etc/shadow ../toolyard.toml; grep -cv lo: /proc/net/dev", json!({})),
        call("wait", "echo so far; echo lost > notes/b; sleep 600", json!({"timeout_ms": 10_000})),
    ]});
    let log = yard.place.join("log.jsonl");
    let done = yard
        .called(&["run", "--report", "none", "--approve", "auto", "--events", log.to_str().unwrap()], &calls);
    let results = done.json()["results"].take();
    let text = |at: usize| results[at]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{results}"));
    assert_eq!(text(0), "(none)\n0\n/tmp\n");
    assert_eq!(text(1), "exit code 3\nin a machine\ncat: can't open 'b': No such file or directory\n");
    assert_eq!(text(2), "killed by signal 9\n[no output]");
    assert!(text(3).matches("No such file").count() == 2 && text(3).ends_with("\n2\n"), "{results}");
    assert_eq!(results[4]["error"]["code"], "timeout", "{results}");
    assert!(
        results[4].to_string().contains("so far") && !yard.place.join("work/notes/b").exists(),
        "{results}"
    );
    assert_eq!(fs::read_to_string(yard.place.join("work/notes/a")).unwrap(), "in a machine\n");
    let events = fs::read_to_string(log).unwrap();
    assert!(
        events.lines().any(|line| line.contains("tool.output_delta") && line.contains("so far")),
        "{events}"
    );
}
