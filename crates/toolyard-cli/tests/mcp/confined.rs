//! In front of servers that are confined: third-party ones, and one that does whatever it is told.

use crate::{
    client::{Person, Yard, text, until, working_in},
    missing::skip,
    place::dir,
    real,
};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

/// Whether this machine cannot confine programs. Where tests must run, it has to.
pub(crate) fn is_missing() -> bool {
    lacks("process")
}

/// The same of any sandbox.
pub(crate) fn lacks(sandbox: &str) -> bool {
    let line_of = format!("in {sandbox:<12}not available: ");
    let checked = Command::new(env!("CARGO_BIN_EXE_toolyard")).arg("check").output().unwrap();
    let checked = String::from_utf8(checked.stdout).unwrap();
    let Some(why) = checked.lines().find_map(|line| line.strip_prefix(&*line_of)) else {
        return false;
    };
    skip(&format!("this machine has no sandbox '{sandbox}': {why}"));
    true
}

/// A place with a directory that is granted, and one that is not.
struct Place {
    granted: PathBuf,
    other: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let place = dir(&format!("{name}-place")).canonicalize().unwrap();
        let [granted, other] = ["granted", "other"].map(|directory| place.join(directory));
        for directory in [&granted, &other] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("a.txt"), "hello").unwrap();
        }
        Self { granted, other }
    }
}

/// A yard in which every call is approved, before one server.
async fn before(name: &str, server: &str) -> Yard {
    Yard::before(name, server, &["--approve", "auto"], Person::default()).await
}

/// Whether a call failed, and its text.
fn ended(result: &CallToolResult) -> (bool, String) {
    (result.is_error == Some(true), text(result).to_owned())
}

fn path(directory: &Path, file: &str) -> String {
    directory.join(file).display().to_string()
}

/// SB-5: the filesystem server is told that it may use everything, and reaches what it is granted.
#[tokio::test]
async fn the_filesystem_server_reaches_what_it_is_granted() {
    let Some(script) = real::script("filesystem") else { return };
    if is_missing() {
        return;
    }
    let place = Place::new("mcp-confined-files");
    let node = script.split("/node_modules/").next().unwrap();
    let (granted, other) = (place.granted.display(), place.other.display());
    let server = format!(
        "[mcp.files]\ncommand = \"node\"\nargs = [{script:?}, \"/\"]\ntrust = true\nsandbox = \"process\"\n\
         files = [\"r:{node}\", \"rw:{granted}\", \"r:{other}/a.txt\"]\n"
    );
    fs::write(place.other.join("b.txt"), "secret").unwrap();
    let mut yard = before("mcp-confined-files", &server).await;
    let read =
        async |path: String| ended(&yard.call("files__read_text_file", json!({"path": path})).await.unwrap());
    assert_eq!(read(path(&place.granted, "a.txt")).await, (false, "hello".to_owned()));
    assert_eq!(read(path(&place.other, "a.txt")).await, (false, "hello".to_owned()));
    for hidden in [path(&place.other, "b.txt"), path(&yard.dir, "toolyard.toml"), "/etc/shadow".to_owned()] {
        let (failed, text) = read(hidden.clone()).await;
        assert!(failed && text.contains("ENOENT"), "{hidden}: {text}");
    }
    let write = async |path: String| {
        ended(&yard.call("files__write_file", json!({"path": path, "content": "x"})).await.unwrap())
    };
    let (failed, said) = write(path(&place.granted, "c.txt")).await;
    assert!(!failed, "{said}");
    assert_eq!(fs::read_to_string(place.granted.join("c.txt")).unwrap(), "x");
    let (failed, said) = write(path(&place.other, "a.txt")).await;
    assert!(failed, "{said}");
    assert_eq!(fs::read_to_string(place.other.join("a.txt")).unwrap(), "hello");

    // SB-7: nothing of it is left.
    yard.client.close().await.unwrap();
    assert_eq!(yard.ended().await, Some(0));
    let directory = yard.dir.clone();
    until("the server has ended", || working_in(&directory, None) == 0).await;
}

/// SB-5, SB-11: the git server works in its repository, and does not change what git runs.
#[tokio::test]
async fn the_git_server_works_in_its_repository() {
    let Some(program) = real::program("git") else { return };
    if is_missing() {
        return;
    }
    let place = Place::new("mcp-confined-git");
    for directory in [&place.granted, &place.other] {
        for args in [
            &["init", "--quiet"][..],
            &["config", "user.name", "Test"],
            &["config", "user.email", "test@example.com"],
        ] {
            assert!(Command::new("git").arg("-C").arg(directory).args(args).status().unwrap().success());
        }
    }
    let environment = Path::new(&program).parent().unwrap().parent().unwrap();
    // The interpreter of an environment lies where it was made from.
    let python = environment.join("bin/python3").canonicalize().unwrap();
    let python = python.parent().unwrap().parent().unwrap().display();
    let server = format!(
        "[mcp.git]\ncommand = {program:?}\nargs = []\nsandbox = \"process\"\n\
         files = [\"r:{}\", \"r:{python}\", \"rw:{}\"]\n",
        environment.display(),
        place.granted.display()
    );
    let yard = before("mcp-confined-git", &server).await;
    let repository = place.granted.display().to_string();
    let add = json!({"repo_path": repository, "files": ["a.txt"]});
    let (failed, said) = ended(&yard.call("git__git_add", add).await.unwrap());
    assert!(!failed, "{said}");
    let commit = json!({"repo_path": repository, "message": "from inside"});
    let (failed, said) = ended(&yard.call("git__git_commit", commit).await.unwrap());
    assert!(!failed, "{said}");
    let log =
        Command::new("git").arg("-C").arg(&place.granted).args(["log", "--format=%s"]).output().unwrap();
    assert_eq!(String::from_utf8(log.stdout).unwrap(), "from inside\n");
    let elsewhere = json!({"repo_path": place.other.display().to_string()});
    let (failed, said) = ended(&yard.call("git__git_status", elsewhere).await.unwrap());
    assert!(failed, "{said}");
}

/// A server that runs what it is told with a shell of its own: this program.
async fn told(name: &str, more: &str) -> (Yard, Place) {
    let place = Place::new(name);
    fs::create_dir_all(place.granted.join(".git/hooks")).unwrap();
    let config = place.granted.join("inner.toml");
    let inner = "[builtin]\nenable = [\"shell\"]\n[shell]\n\
                 env = [\"PATH\", \"http_proxy\", \"HTTPS_PROXY\", \"HOME\"]\n";
    fs::write(&config, inner).unwrap();
    let server = format!(
        "[mcp.told]\ncommand = {:?}\nargs = [\"mcp\", \"--approve\", \"auto\", \"--config\", {config:?}]\n\
         sandbox = \"process\"\nfiles = [\"rw:{}\"]\n{more}\n",
        env!("CARGO_BIN_EXE_toolyard"),
        place.granted.display()
    );
    (before(name, &server).await, place)
}

async fn shell(yard: &Yard, command: &str) -> (bool, String) {
    let args: Value = json!({"command": command});
    ended(&yard.call("told__shell", args).await.unwrap())
}

/// SB-5, SB-11: whatever it is told, a server reaches what it is granted, and does not change what governs.
#[tokio::test]
async fn a_server_that_does_what_it_is_told_reaches_what_it_is_granted() {
    if is_missing() {
        return;
    }
    let (yard, place) = told("mcp-confined-told", "").await;
    let granted = place.granted.display();
    let (failed, text) = shell(&yard, &format!("cat {granted}/a.txt; echo; echo $HOME; pwd")).await;
    assert!(!failed && text.starts_with("hello\n/tmp\n/tmp"), "{text}");
    for (what, command) in [
        ("another directory", format!("cat {}/a.txt", place.other.display())),
        ("the home of the user", "ls /root /home".to_owned()),
        ("the configuration", format!("cat {}/toolyard.toml", yard.dir.display())),
        ("what git runs", format!("touch {granted}/.git/hooks/a")),
        ("the network", "bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128'".to_owned()),
        ("other processes", format!("kill -0 {}", yard.program.id().unwrap())),
    ] {
        let (failed, text) = shell(&yard, &command).await;
        assert!(failed, "{what}: {text}");
    }
}

/// SB-6, SB-10: a server reaches the hosts that are named, by the proxy alone.
#[tokio::test]
async fn a_server_reaches_the_hosts_that_are_named() {
    if is_missing() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello\n";
            let _ = stream.write_all(answer);
        }
    });
    let more =
        format!("hosts = [\"127.0.0.1:{port}\"]\n[sandbox.process]\nallow_private = [\"127.0.0.1:{port}\"]");
    let (yard, _place) = told("mcp-confined-hosts", &more).await;
    let (_, text) = shell(&yard, "echo $http_proxy $HTTPS_PROXY").await;
    assert!(text.starts_with("http://127.0.0.1:3128 http://127.0.0.1:3128"), "{text}");
    let ask = |port: u16| {
        format!(
            "bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; \
             printf \"GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\" >&3; cat <&3'"
        )
    };
    let (_, text) = shell(&yard, &ask(port)).await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("hello"), "{text}");
    let (_, text) = shell(&yard, &ask(port ^ 1)).await;
    assert!(text.contains("is not granted to this program"), "{text}");
    let direct = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
    let (failed, text) = shell(&yard, &direct).await;
    assert!(failed && text.contains("Connection refused"), "{text}");
}

/// SB-5: what is missing to start is said, with what the server reaches.
#[tokio::test]
async fn a_server_that_lacks_its_files_says_so() {
    if is_missing() {
        return;
    }
    let place = Place::new("mcp-confined-lacks");
    let script = place.granted.join("server");
    fs::write(&script, format!("#!{}/interpreter\n", place.other.display())).unwrap();
    fs::write(place.other.join("interpreter"), "#!/bin/sh\n").unwrap();
    for file in [&script, &place.other.join("interpreter")] {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let config = place.granted.join("toolyard.toml");
    fs::write(&config, "[mcp.lame]\ncommand = \"./server\"\nsandbox = \"process\"\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
    let done = command.args(["tools", "--config"]).arg(&config).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("it reaches the system, its program and its files"), "{said}");
    assert!(!done.status.success());
}
