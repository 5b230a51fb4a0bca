//! Programs and shell commands in the process sandbox: what they reach, and how what they must not do ends.
#![cfg(target_os = "linux")]

use crate::{
    child::{Done, fed, program},
    missing::skip,
    place::dir,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::ErrorKind,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::PathBuf,
    process::{Command, Stdio},
};

/// A user who is nobody: root's processes cannot be limited in number.
const NOBODY: [&str; 7] =
    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "env", "LANG=C"];

/// Whether this machine cannot confine programs. Where tests must run, it has to.
pub(crate) fn is_missing() -> bool {
    let checked = fed(program(&["check"]), "").stdout;
    let Some(why) = checked.lines().find_map(|line| line.strip_prefix("in process     not available: "))
    else {
        return false;
    };
    skip(&format!("this machine cannot confine programs: {why}"));
    true
}

/// Whether root has nothing here to become nobody with, as yards need it. Where tests must run, it has to.
pub(crate) fn lacks_setpriv() -> bool {
    let is_lacking = rustix::process::geteuid().is_root()
        && Command::new(NOBODY[0])
            .arg("--version")
            .output()
            .is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if is_lacking {
        skip("root has no setpriv to become nobody");
    }
    is_lacking
}

/// A yard in which commands are confined.
pub(crate) struct Yard {
    pub(crate) place: PathBuf,
    /// What marks the processes of this yard, in their environment.
    mark: String,
}

impl Yard {
    pub(crate) fn new(name: &str, more: &str) -> Self {
        let place = std::env::temp_dir().join(format!("toolyard-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(place.join("work")).unwrap();
        // Whoever runs the commands may write here.
        fs::set_permissions(place.join("work"), fs::Permissions::from_mode(0o777)).unwrap();
        let config = format!(
            "[workspace]\nroot = \"work\"\n[builtin]\nenable = [\"shell\"]\n[shell]\nsandbox = \"process\"\n\
             env = [\"PATH\", \"LANG\", \"MARK\"]\n[policy.rules]\n{more}"
        );
        fs::write(place.join("toolyard.toml"), config).unwrap();
        Self { mark: place.to_str().unwrap().to_owned(), place }
    }

    /// The program, with the configuration of this name.
    pub(crate) fn command(&self, file: &str) -> Command {
        let toolyard = program(&[]);
        let mut command = if rustix::process::geteuid().is_root() {
            // The binary may lie where only root may look.
            let copy = self.place.join("toolyard");
            if !copy.exists() {
                fs::hard_link(toolyard.get_program(), &copy)
                    .or_else(|_| fs::copy(toolyard.get_program(), &copy).map(drop))
                    .unwrap();
            }
            let mut command = Command::new(NOBODY[0]);
            command.args(&NOBODY[1..]).arg(copy);
            command
        } else {
            toolyard
        };
        let file = self.place.join(file);
        command.args(["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()]);
        command.env("MARK", &self.mark).env("LANG", "C").current_dir(&self.place);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, shell: &str) -> Done {
        fed(self.command("toolyard.toml"), &call(shell))
    }

    pub(crate) fn result(&self, shell: &str) -> Value {
        let mut json = self.run(shell).json();
        json["results"][0].take()
    }

    /// The code of a result, and its text.
    pub(crate) fn ended(&self, shell: &str) -> (String, String) {
        let result = self.result(shell);
        let code = result["error"]["code"].as_str().unwrap_or("ok").to_owned();
        let text = result["content"][0]["text"].as_str().or(result["error"]["message"].as_str());
        (code, text.unwrap_or_default().to_owned())
    }

    /// How many living processes bear the mark.
    pub(crate) fn census(&self) -> usize {
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let bears = |process: &PathBuf| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            let mark = format!("MARK={}", self.mark);
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        processes.filter(bears).count()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// A response with one call of the shell.
pub(crate) fn call(shell: &str) -> String {
    json!({"calls": [{"call_id": "a", "name": "shell", "arguments": {"command": shell}}]}).to_string()
}

/// SB-4, SB-7: what an agent's shell must not do ends in a code and a text that say what happened, and reaches nothing.
#[test]
fn what_a_shell_must_not_do_ends_by_name() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    // The first process inside is this program again, and has that limit too: a debug build takes over 64 MiB.
    let limits =
        "shell = { processes = 20, open_files = 64, memory_per_process = \"96MiB\", wall_time = \"10s\" }\n";
    let yard = Yard::new("escape", limits);
    let socket = yard.place.join("work/daemon");
    let _daemon = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
    let daemon = "#include <stdio.h>\n#include <sys/socket.h>\n#include <sys/un.h>\nint main() {\n  if (socket(AF_UNIX, \
                  SOCK_STREAM, 0) < 0) { perror(\"socket\"); return 1; }\n  return 0;\n}\n";
    fs::write(yard.place.join("work/talk.c"), daemon).unwrap();
    let compiled =
        Command::new("cc").args(["-o", "talk", "talk.c"]).current_dir(yard.place.join("work")).status();
    if compiled.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return skip("there is no C compiler, cc");
    }
    assert!(compiled.unwrap().success(), "it does not compile");
    for (what, shell, code, text) in [
        (
            "read the keys of its user",
            "cat ~/.ssh/id_rsa",
            "execution_error",
            "exit code 1\ncat: /tmp/.ssh/id_rsa: No such file or directory\n",
        ),
        (
            "open a socket",
            "bash -c 'exec 3<>/dev/tcp/127.0.0.1/80'",
            "execution_error",
            "exit code 1\nbash: socket: Operation not permitted\nbash: line 1: /dev/tcp/127.0.0.1/80: Operation not permitted\n",
        ),
        ("talk to a daemon", "./talk", "execution_error", "exit code 1\nsocket: Operation not permitted\n"),
        (
            "leave a daemon",
            "(setsid sleep 600 &); echo left",
            "ok",
            "left\n[background processes were left and have been terminated]",
        ),
        (
            "fork without end",
            "while :; do sleep 600 & done",
            "execution_error",
            "exit code 2\n/bin/sh: 1: Cannot fork\n[background processes were left and have been terminated]",
        ),
        (
            "fill memory",
            "head -c 200m /dev/zero | tail -c 150m",
            "execution_error",
            "exit code 1\ntail: memory exhausted\n",
        ),
        (
            "fill its disk",
            "head -c 300m /dev/zero >/tmp/big",
            "execution_error",
            "exit code 1\nhead: error writing 'standard output': No space left on device\n",
        ),
    ] {
        let (found, said) = yard.ended(shell);
        // Shells number the lines of a command differently.
        assert_eq!((&*found, &*said.replace("sh: 0: ", "sh: 1: ")), (code, text), "{what}");
        assert_eq!(yard.census(), 0, "{what}: something is left");
    }
}

/// SB-7: a program that goes on for ever ends at its time, with what it said so far.
#[test]
fn a_program_that_spins_ends_at_its_time() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let yard = Yard::new("spin", "shell = { wall_time = \"700ms\" }\n");
    let (code, text) = yard.ended("echo so far; (setsid sleep 600 &); while :; do :; done");
    assert_eq!(code, "timeout");
    assert!(text.starts_with("Tool exceeded 700ms wall time limit\nso far\n"), "{text}");
    assert_eq!(yard.census(), 0);
}

/// SB-11: in the sandbox what governs is not written by programs either, nor what git would run.
#[test]
fn what_governs_is_not_written_by_programs() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let yard = Yard::new("governs", "");
    let config = fs::read_to_string(yard.place.join("toolyard.toml")).unwrap();
    let work = yard.place.join("work");
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    fs::write(work.join(".git/config"), "[core]\n").unwrap();
    fs::write(work.join("toolyard.toml"), config.replace("root = \"work\"", "root = \".\"")).unwrap();
    for path in [".git/config", ".git/hooks", "toolyard.toml"] {
        fs::set_permissions(work.join(path), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let write = "for file in toolyard.toml .git/config .git/hooks/pre-commit; do echo x >>$file; done; rm -f toolyard.toml; true";
    let done = fed(yard.command("work/toolyard.toml"), &call(write));
    let result = &done.json()["results"][0];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{done:?}"));
    assert_eq!(text.matches("Read-only file system").count(), 3, "{text}");
    assert!(work.join("toolyard.toml").exists() && !work.join(".git/hooks/pre-commit").exists());
}

/// SB-4: a limit that this sandbox cannot keep is refused by name, and `check` says so before.
#[test]
fn what_cannot_be_kept_is_refused() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let yard = Yard::new("refused", "shell = { memory = \"64MiB\" }\n");
    let (code, text) = yard.ended("echo ran");
    assert_eq!(code, "sandbox_error");
    assert!(text.starts_with("sandbox 'process' cannot limit memory: the call was not run\n"), "{text}");
    let file = yard.place.join("toolyard.toml");
    let checked = fed(program(&["check", "--config", file.to_str().unwrap()]), "").stdout;
    let warning = "warning: tool 'shell': sandbox 'process' cannot limit memory: its calls will fail with sandbox_error";
    assert!(checked.contains(warning) && checked.contains("in process"), "{checked}");
}

/// SB-4: `check` prints by which layers programs are confined, and what they see of the system; a part that is added is
/// there, to read.
#[test]
fn check_prints_the_layers_and_the_system() {
    if is_missing() {
        return;
    }
    let yard = Yard::new("system", "");
    let (part, file) = (yard.place.join("part"), yard.place.join("toolyard.toml"));
    fs::create_dir(&part).unwrap();
    fs::write(part.join("tool"), "a tool\n").unwrap();
    fs::set_permissions(part.join("tool"), fs::Permissions::from_mode(0o777)).unwrap();
    let part = part.to_str().unwrap();
    let look = format!("cat {part}/tool; (echo x >>{part}/tool)");
    let (_, text) = yard.ended(&look);
    assert!(text.contains("No such file") && !text.contains("a tool\n"), "{text}");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{config}[sandbox.process]\nsystem = [\"{part}\"]\n")).unwrap();
    let (_, text) = yard.ended(&look);
    assert!(text.contains("a tool\n") && text.contains("Read-only file system"), "{text}");

    let checked = fed(program(&["check", "--config", file.to_str().unwrap()]), "").stdout;
    let line = checked.lines().find_map(|line| line.strip_prefix("in process     ")).expect("a line of it");
    let landlock = match toolyard_process::landlock_version() {
        0 => " (the kernel has no landlock)",
        _ => ", landlock",
    };
    let layers = format!("files, processes and network by namespaces and seccomp{landlock}; granted hosts");
    assert!(line.starts_with(&layers), "{line}");
    let (_, system) = line.split_once("; of the system ").unwrap_or_else(|| panic!("{line}"));
    assert!(system.starts_with("/usr, /bin, "), "{system}");
    assert!(system.ends_with(&format!("some files of /etc, {part}, read only")), "{system}");
}

/// SB-7: a program that was killed leaves nothing of what it had confined.
#[test]
fn nothing_outlives_a_program_that_was_killed() {
    if is_missing() || lacks_setpriv() {
        return;
    }
    let yard = Yard::new("killed", "");
    let mut command = yard.command("toolyard.toml");
    let ready = yard.place.join("work/ready");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let shell = "(trap '' TERM; setsid sleep 600 &); touch ready; sleep 600";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), call(shell).as_bytes()).unwrap();
    until(|| ready.exists());
    assert!(yard.census() > 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| yard.census() == 0);
}

/// SB-3: a program runs confined unless something else is said.
#[test]
fn a_program_is_confined_by_default() {
    if is_missing() {
        return;
    }
    let place = dir("confined-program").canonicalize().unwrap();
    fs::create_dir_all(place.join("work")).unwrap();
    fs::write(place.join("tool.sh"), "cat; echo; ls ..; cat ~/.bashrc || echo none\n").unwrap();
    fs::write(place.join("secret"), "secret").unwrap();
    let config = "[workspace]\nroot = \"work\"\n[program.t]\ndescription = \"A tool\"\ncommand = [\"sh\", \"./tool.sh\"]\n";
    fs::write(place.join("toolyard.toml"), config).unwrap();
    let calls = json!({"calls": [{"call_id": "a", "name": "t", "arguments": {"a": 1}}]}).to_string();
    let file = place.join("toolyard.toml");
    let args = ["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()];
    let done = fed(program(&args), &calls);
    let json = done.json();
    let text = json["results"][0]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{done:?}"));
    assert_eq!(text, "{\"a\":1}\ntool.sh\nwork\nnone\n");
}

/// SB-3, SB-4: a linter from the Python index is a tool by its command line alone. It finds what is wrong with the
/// workspace, may not mend it, and is not the less useful for having no network and no home.
#[test]
fn a_linter_is_a_tool() {
    let Some(linter) = std::env::var_os("TOOLYARD_LINTER") else {
        return skip("TOOLYARD_LINTER names no linter");
    };
    if is_missing() {
        return;
    }
    let place = dir("confined-linter").canonicalize().unwrap();
    fs::create_dir_all(place.join("work")).unwrap();
    fs::write(place.join("work/a.py"), "import os\nx = 1\n").unwrap();
    let linter = json!(linter.to_str().unwrap());
    let config = format!(
        "[workspace]\nroot = \"work\"\n\
         [program.lint]\ndescription = \"Lints\"\nside_effects = \"read\"\n\
         command = [{linter}, \"check\", \"--isolated\", \"--no-cache\", \"--select=F\", \"--output-format=concise\", \".\"]\n\
         [program.mend]\ndescription = \"Mends\"\nside_effects = \"write\"\n\
         command = [{linter}, \"check\", \"--isolated\", \"--no-cache\", \"--select=F\", \"--fix\", \"--quiet\", \".\"]\n"
    );
    let file = place.join("toolyard.toml");
    fs::write(&file, config).unwrap();
    let call = |id: &str, name: &str| json!({"call_id": id, "name": name, "arguments": {}});
    let calls = json!({"calls": [call("a", "lint"), call("b", "mend"), call("c", "lint")]}).to_string();
    let args = ["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()];
    let done = fed(program(&args), &calls);
    let json = done.json();
    let text = |at: usize| json["results"][at]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text(0).starts_with("exit code 1\na.py:1:8: F401"), "{done:?}");
    assert_eq!(text(2), "All checks passed!\n", "{done:?}");
    assert_eq!(fs::read_to_string(place.join("work/a.py")).unwrap(), "x = 1\n");
}

/// Waits for a condition, for half a minute at most.
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let is_time = |_: &usize| {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
        true
    };
    assert!((0..1500).filter(is_time).any(|_| holds()), "it never came to this");
}
