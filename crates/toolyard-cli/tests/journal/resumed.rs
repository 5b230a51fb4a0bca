//! `toolyard run --journal`: the same response in the same session runs once, whatever ends the program (JR-5, JR-8).

use crate::{
    child::{Done, fed, program},
    yard::{CONFIG, Yard, response},
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

/// The ids of the results, and which of them are errors.
fn results(done: &Done) -> Vec<(String, bool)> {
    let all = done.json();
    let of = |result: &Value| {
        (result["tool_use_id"].as_str().unwrap().to_owned(), result["is_error"] == Value::Bool(true))
    };
    all["content"].as_array().unwrap().iter().map(of).collect()
}

/// The children of a process.
#[cfg(target_os = "linux")]
fn children(of: u32) -> Vec<u32> {
    let parent = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(|process| parent(process) == Some(of)).collect()
}

#[cfg(target_os = "linux")]
fn signal(name: &str, process: u32) {
    let arguments = [format!("-{name}"), process.to_string()];
    assert!(Command::new("kill").args(arguments).status().unwrap().success());
}

/// JR-4: as long as a program runs that a killed engine has started, nobody takes up what that has left, and whoever would
/// is told what runs; once it is gone, whoever waits goes on.
#[cfg(target_os = "linux")]
#[test]
fn nobody_goes_on_beside_an_old_helper() {
    let (yard, input) = (Yard::new(), response(&["a", "b"]));
    let mut helpers = Vec::new();
    yard.killed_after(&input, |engine| {
        helpers = children(engine.id());
        // A helper ends its programs as soon as the engine is gone, unless it cannot.
        signal("STOP", helpers[0]);
    });
    let [helper] = helpers[..] else { panic!("{helpers:?}") };
    let refused = fed(
        {
            let mut prune = program(&["journal", "prune"]);
            prune.arg(yard.file("agent.journal")).args(["--older-than", "1d"]);
            prune
        },
        "",
    );
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let said = format!("what it has started still runs (process {helper})");
    assert!(refused.stderr.contains(&said), "{refused:?}");
    let mut waiting = yard.run(&[]).spawn().unwrap();
    std::io::Write::write_all(&mut waiting.stdin.take().unwrap(), input.as_bytes()).unwrap();
    assert!(!children(helper).is_empty(), "its program has ended");
    signal("CONT", helper);
    let done = waiting.wait_with_output().unwrap();
    assert!(!Path::new(&format!("/proc/{helper}/fd")).exists() || children(helper).is_empty());
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(yard.effects(), [json!({"text": "a"})]);
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok() || Path::new("/usr/bin").join(program).exists()
}

/// JR-5, JR-8: killed while a call runs, the same command gives an `interrupted`, runs nothing twice, and gives the same
/// results however often it is run.
#[test]
fn the_same_command_goes_on() {
    assert!(is_installed("mkfifo"));
    let yard = Yard::new();
    let input = response(&["a", "b"]);
    yard.killed(&input);
    assert_eq!(yard.effects(), [json!({"text": "a"})]);
    let first = yard.done(&[], &input);
    assert_eq!(first.code, Some(1), "{first:?}");
    assert_eq!(results(&first), [("a".to_owned(), true), ("b".to_owned(), true)]);
    assert!(first.stdout.contains("nobody knows what it has done"), "{first:?}");
    let second = yard.done(&[], &input);
    assert_eq!((second.code, &second.stdout), (first.code, &first.stdout));
    assert_eq!(yard.effects(), [json!({"text": "a"})]);
    // Another response in the session is another turn.
    let other = yard.done(&[], &response(&["c"]));
    assert_eq!((other.code, results(&other)), (Some(0), vec![("c".to_owned(), false)]));
    assert_eq!(yard.effects(), [json!({"text": "a"}), json!({"text": "c"})]);
}

/// JR-8: `--resume` needs no response; while one is open, another one in its session is refused.
#[test]
fn what_is_open_is_finished_first() {
    let yard = Yard::new();
    yard.killed(&response(&["a", "b"]));
    let refused = yard.done(&[], &response(&["c"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("finish it first with --session s --resume"), "{refused:?}");
    let config = CONFIG.replace("[confirmation]", "[session]\non_interrupted = \"continue\"\n[confirmation]");
    fs::write(yard.file("toolyard.toml"), config).unwrap();
    let resumed = yard.done(&["--resume", "--to", "anthropic"], "");
    assert_eq!(results(&resumed), [("a".to_owned(), true), ("b".to_owned(), false)]);
    assert_eq!(yard.effects(), [json!({"text": "a"}), json!({"text": "b"})]);
    let nothing = yard.done(&["--resume"], "");
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("has left nothing open"), "{nothing:?}");
    assert!(yard.done(&[], &response(&["c"])).code == Some(0));
}

/// JR-8: `journal resume` goes on in the same way, with the tools of the configuration; a journal that is not there is not
/// made.
#[test]
fn a_journal_is_resumed() {
    let yard = Yard::new();
    yard.killed(&response(&["a", "b"]));
    let resume = |journal: &str| {
        let mut command = program(&["journal", "resume", "--quiet", "--session", "s", "--to", "anthropic"]);
        let place = |name: &str| yard.file(name).into_os_string();
        command.arg("--config").arg(place("toolyard.toml")).arg("--workspace").arg(place("work"));
        command.arg(yard.file(journal));
        fed(command, "")
    };
    let missing = resume("other.journal");
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(!yard.file("other.journal").exists());
    let resumed = resume("agent.journal");
    assert_eq!(results(&resumed), [("a".to_owned(), true), ("b".to_owned(), true)]);
    assert_eq!(
        yard.effects(),
        [json!({"text": "a"})],
        "b is behind a call of which nobody knows what it did"
    );
    assert_eq!(resume("agent.journal").code, Some(2), "nothing is open");
}

/// JR-8: what cannot go on call by call is refused, and says what to do.
#[test]
fn episodes_and_toolsets_have_no_journal() {
    let yard = Yard::new();
    let episodes = yard.done(&[], "{\"id\": \"e\", \"turns\": []}\n");
    assert_eq!(episodes.code, Some(2), "{episodes:?}");
    assert!(episodes.stderr.contains("--continue FILE"), "{episodes:?}");
    let mut toolset = serde_json::from_str::<Value>(&response(&["a"])).unwrap();
    toolset["content"][0]["toolset_name"] = json!("browser");
    let toolset = yard.done(&[], &toolset.to_string());
    assert_eq!(toolset.code, Some(2), "{toolset:?}");
    assert!(yard.effects().is_empty());
}
