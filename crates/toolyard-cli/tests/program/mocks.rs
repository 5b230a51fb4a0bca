//! Mocks: `[mock.TOOL]`.

use crate::{
    child::{Done, toolyard},
    place::dir,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// A directory with a configuration and an empty workspace.
struct Mocked {
    dir: PathBuf,
}

impl Mocked {
    fn new(name: &str, config: &str) -> Self {
        let dir = dir(name).canonicalize().unwrap();
        fs::create_dir(dir.join("work")).unwrap();
        fs::write(dir.join("toolyard.toml"), format!("[workspace]\nroot = \"work\"\n{config}")).unwrap();
        Self { dir }
    }

    fn toolyard(&self, command: &[&str], input: &str) -> Done {
        let config = self.dir.join("toolyard.toml");
        toolyard(&[command, &["--config", config.to_str().unwrap()]].concat(), input)
    }

    fn run(&self, input: &str, more: &[&str]) -> Done {
        self.toolyard(&[&["run", "--report", "none"], more].concat(), input)
    }
}

/// Episodes of one name and of several, with equal calls side by side.
fn episodes() -> String {
    let call =
        |at: usize, text: usize| json!({"call_id": at, "name": "search", "arguments": {"query": text}});
    let turn = |from: usize| (0..6).map(|at| call(at, (from + at) % 3)).collect::<Value>();
    let line = |n: usize| format!("{}\n", json!({"id": format!("e{}", n % 5), "turns": [turn(0), turn(n)]}));
    (0..20).map(line).collect()
}

/// The results of all turns.
fn results(stdout: &str) -> Vec<Value> {
    let turns = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    turns.flat_map(|turn| turn["results"].as_array().unwrap().clone()).collect()
}

/// KT-10: mocks need no back-end, answer with the arguments, and leave the workspace as it is.
#[test]
fn mocks_answer_without_their_tools() {
    let config = "[mock.search]\nanswer = \"found {query}\"\n[mock.write_file]\nanswer_json = { wrote = \"{path}\" }\n";
    let mocked = Mocked::new("mocks-answer", config);
    let calls = json!({"calls": [
        {"call_id": "a", "name": "search", "arguments": {"query": "Oslo"}},
        {"call_id": "b", "name": "write_file", "arguments": {"path": "x.txt", "content": "x"}},
        {"call_id": "c", "name": "write_file", "arguments": {"path": 5}},
        {"call_id": "d", "name": "write_file", "arguments": {"path": "../x.txt", "content": "x"}},
    ]});
    let done = mocked.run(&calls.to_string(), &["--approve", "auto"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let results: Value = serde_json::from_str(&done.stdout).unwrap();
    let results = &results["results"];
    assert_eq!(results[0]["content"][0]["text"], "found Oslo", "{results}");
    assert_eq!(results[1]["structured"], json!({"wrote": "x.txt"}), "{results}");
    // The schema and the workspace are those of the tool.
    assert_eq!(results[2]["error"]["code"], "invalid_input", "{results}");
    assert_eq!(results[3]["error"]["code"], "permission_denied", "{results}");
    assert_eq!(fs::read_dir(mocked.dir.join("work")).unwrap().count(), 0);
    // So is who has to approve it.
    let denied = mocked.run(&calls.to_string(), &["--approve", "deny"]);
    assert!(denied.stdout.contains("user_denied"), "{denied:?}");
}

/// KT-10: the same seed gives the same results, whatever runs beside what; another seed gives others; the share of failures
/// is about the rate, of calls that look equal too.
#[test]
fn failures_are_seeded() {
    let config = "[mock.search]\nfailure_rate = 0.4\nfailure = \"transient\"\n\
                  latency = { lognormal = { median = \"1ms\", sigma = 0.8 } }\n";
    let mocked = Mocked::new("mocks-seeded", config);
    let run = |more: &[&str]| {
        let done = mocked.run(&episodes(), more);
        assert_eq!(done.code, Some(1), "{done:?}");
        done.stdout
    };
    let expect = run(&[]);
    for more in [&["--jobs", "4"][..], &["--jobs", "16", "--seed", "0"], &["--sequential"]] {
        assert_eq!(run(more), expect, "{more:?}");
    }
    assert_ne!(run(&["--seed", "1"]), expect);
    let results = results(&expect);
    let failed = results.iter().filter(|result| result["error"]["code"] == "transient").count();
    assert_eq!(results.len(), 240);
    assert!((60..=132).contains(&failed), "{failed}");
    assert!(
        results.iter().all(|result| result["ok"] == true || result["error"]["attempts"] == 1),
        "{expect}"
    );
}

/// KT-10: calls go on behind a file of results as they would have.
#[test]
fn failures_are_the_same_behind_kept_results() {
    let mocked = Mocked::new("mocks-continued", "[mock.search]\nfailure_rate = 0.4\n");
    let file = mocked.dir.join("results.jsonl");
    let run = || mocked.run(&episodes(), &["--jobs", "3", "--continue", file.to_str().unwrap()]);
    assert_eq!(run().code, Some(1));
    let expect = fs::read_to_string(&file).unwrap();
    let half = expect.lines().take(14).fold(String::new(), |half, line| half + line + "\n");
    fs::write(&file, half).unwrap();
    assert_eq!(run().code, Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), expect);
}

/// KT-10: with retries of its own, a call that fails by lot may succeed in the end, and the breaker is one that is set.
#[test]
fn retries_and_breakers_are_those_of_the_tool_alone() {
    let mock = "[mock.search]\nfailure_rate = 1.0\n";
    let run = |name: &str, more: &str| {
        let mocked = Mocked::new(name, &format!("{mock}{more}"));
        let done = mocked.run(&episodes(), &[]);
        results(&done.stdout)
    };
    let plain = run("mocks-plain", "[retry]\nmax_attempts = 5\n[breaker]\nfailures_min = 1\n");
    assert!(
        plain.iter().all(|result| result["error"]["code"] == "transient" && result["error"]["attempts"] == 1)
    );
    let set = run("mocks-set", "[tools.search]\nbreaker = { consecutive = 1 }\n");
    assert!(set.iter().any(|result| result["error"]["code"] == "circuit_open"), "{set:?}");
}

/// KT-10: `check` and `tools` say what is a mock.
#[test]
fn mocks_are_shown_as_mocks() {
    let mocked = Mocked::new("mocks-shown", "[mock.search]\ndescription = \"Searches\"\n[mock.write_file]\n");
    for command in ["check", "tools"] {
        let done = mocked.toolyard(&[command], "");
        assert_eq!(done.code, Some(0), "{done:?}");
        let is_mock = |tool: &str| {
            let line = done.stdout.lines().find(|line| line.starts_with(tool)).unwrap();
            line.contains("mock")
        };
        assert_eq!(
            ["search", "write_file", "read_file"].map(is_mock),
            [true, true, false],
            "{}",
            done.stdout
        );
    }
    let declared = mocked.toolyard(&["tools", "--as", "anthropic"], "");
    assert!(declared.stdout.contains("\"Searches\"") && !declared.stdout.contains("mock"), "{declared:?}");
}
