//! `--record` and `--replay`.
#![cfg(unix)]

use crate::{
    child::{Done, toolyard},
    inn::Inn,
    place::dir,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// A tool that says something else each time, fails at times, and dies at others.
const TOOL: &str = r#"
args=$(cat)
case $args in
*fail*) echo "no such thing" >&2; exit 1 ;;
*hang*) exec sleep 60 ;;
*) echo x >>count; echo "call $(wc -l <count) at $(date +%N): $args" ;;
esac
"#;

const CONFIG: &str = "[workspace]\nroot = \"work\"\n[policy.rules]\nt = { sandbox = \"host\" }\n[program.t]\n\
    description = \"A tool\"\ncommand = [\"sh\", \"./tool.sh\"]\nside_effects = \"write\"\n[tools.t]\ntimeout = \"300ms\"\n\
    [redaction]\nsecrets = [\"file:one\", \"file:other\"]\n";

struct Recorded {
    dir: PathBuf,
}

impl Recorded {
    fn new(name: &str) -> Self {
        let dir = dir(name).canonicalize().unwrap();
        fs::create_dir(dir.join("work")).unwrap();
        fs::write(dir.join("tool.sh"), TOOL).unwrap();
        fs::write(dir.join("toolyard.toml"), CONFIG).unwrap();
        fs::write(dir.join("one"), "tok-1234567").unwrap();
        fs::write(dir.join("other"), "tok-7654321").unwrap();
        Self { dir }
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, input: &str, more: &[&str]) -> Done {
        let config = self.file("toolyard.toml");
        let args =
            ["run", "--from", "episodes", "--config", &config, "--approve", "auto", "--report", "none"];
        toolyard(&[&args, more].concat(), input)
    }

    fn record(&self, input: &str) -> Done {
        self.run(input, &["--record", &self.file("rec.jsonl"), "--jobs", "3"])
    }

    fn replay(&self, input: &str, more: &[&str]) -> Done {
        self.run(input, &[&["--replay", &self.file("rec.jsonl")], more].concat())
    }

    /// Takes away what the tool does; what it is stays.
    fn without_tool(&self) {
        fs::write(self.dir.join("tool.sh"), "echo called >>called\nexit 9\n").unwrap();
    }
}

fn episodes(does: &[&str]) -> String {
    let call = |at: usize, does: &str| json!({"call_id": at, "name": "t", "arguments": {"does": does}});
    let turn = || does.iter().enumerate().map(|(at, does)| call(at, does)).collect::<Value>();
    let line = |n: usize| format!("{}\n", json!({"id": format!("e{}", n % 3), "turns": [turn(), turn()]}));
    (0..8).map(line).collect()
}

/// KT-10: what was recorded is given again byte for byte, failures and timeouts too, whatever runs beside what, and no tool
/// runs.
#[test]
fn a_replay_gives_the_same_bytes_without_tools() {
    let recorded = Recorded::new("recorded-same");
    let mut input = episodes(&["a", "b", "a", "fail", "a"]);
    let odd = json!([
        {"call_id": "h", "name": "t", "arguments": {"does": "hang"}},
        {"call_id": "n", "name": "nothing", "arguments": {}},
        {"call_id": "m", "name": "read_file", "arguments": {"path": "none.txt"}},
        {"call_id": "x", "name": "read_file", "arguments": {"path": 1}},
    ]);
    input += &format!("{}\n", json!({"id": "odd", "turns": [odd]}));
    let done = recorded.record(&input);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stdout.contains("\"timeout\"") && done.stdout.contains("no such thing"), "{}", done.stdout);
    recorded.without_tool();
    fs::write(recorded.dir.join("work/none.txt"), "there now").unwrap();
    for more in [&[][..], &["--jobs", "4"], &["--sequential"], &["--replay-latency"]] {
        let again = recorded.replay(&input, more);
        assert_eq!((again.code, &again.stdout), (Some(1), &done.stdout), "{more:?} {}", again.stderr);
    }
    assert!(!recorded.dir.join("work/called").exists());
}

/// KT-10, ID-3: calls that shared a result by their key have it in a replay too, and those whose key was forgotten run as
/// they did.
#[test]
fn calls_with_keys_are_given_again_as_they_were() {
    let recorded = Recorded::new("recorded-keys");
    let keyed = CONFIG.replace("[tools.t]\n", "[tools.t]\nkey = \"derive\"\n");
    fs::write(recorded.dir.join("toolyard.toml"), keyed).unwrap();
    let input = episodes(&["a", "a", "fail", "b", "fail", "a"]);
    let done = recorded.record(&input);
    assert_eq!(done.code, Some(1), "{done:?}");
    recorded.without_tool();
    for more in [&[][..], &["--jobs", "4"]] {
        let again = recorded.replay(&input, more);
        assert_eq!((again.code, &again.stdout), (Some(1), &done.stdout), "{more:?} {}", again.stderr);
    }
}

/// KT-10: a run that comes to nothing leaves an earlier record as it is.
#[test]
fn a_run_that_does_not_begin_leaves_the_record() {
    let recorded = Recorded::new("recorded-kept");
    assert_eq!(recorded.record(&episodes(&["a"])).code, Some(0));
    let before = fs::read(recorded.dir.join("rec.jsonl")).unwrap();
    let server = "[mcp.none]\ncommand = \"/no/such/server\"\nrequired = true\n";
    fs::write(recorded.dir.join("toolyard.toml"), format!("{CONFIG}{server}")).unwrap();
    assert_eq!(recorded.record(&episodes(&["a"])).code, Some(2));
    assert_eq!(fs::read(recorded.dir.join("rec.jsonl")).unwrap(), before);
}

/// KT-10: a call that is not in the file fails, and says so.
#[test]
fn a_call_that_was_not_recorded_fails() {
    let recorded = Recorded::new("recorded-missing");
    assert_eq!(recorded.record(&episodes(&["a", "a"])).code, Some(0));
    let again = recorded.replay(&episodes(&["a", "a", "a", "c"]), &[]);
    assert_eq!(again.code, Some(1), "{again:?}");
    let first: Value = serde_json::from_str(again.stdout.lines().next().unwrap()).unwrap();
    let results = first["results"].as_array().unwrap();
    let ok: Vec<bool> = results.iter().map(|result| result["ok"].as_bool().unwrap()).collect();
    assert_eq!(ok, [true, true, false, false], "{first}");
    let said = results[2]["error"]["message"].as_str().unwrap();
    assert!(said.contains("in turn 1 of episode 'e0', number 3 of equal calls: record it again"), "{said}");
    assert_eq!(fs::read_to_string(recorded.dir.join("work/count")).unwrap().lines().count(), 32);
}

/// KT-10: secrets are not in the file, and calls that differ in them are told apart.
#[test]
fn secrets_are_not_recorded() {
    let recorded = Recorded::new("recorded-secrets");
    let input = episodes(&["tok-1234567", "tok-7654321"]);
    let done = recorded.record(&input);
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = fs::read_to_string(recorded.file("rec.jsonl")).unwrap();
    assert!(!text.contains("tok-1234567") && !text.contains("tok-7654321"), "{text}");
    assert_eq!(recorded.replay(&input, &[]).stdout, done.stdout);
}

/// KT-10: a last line that breaks off is told of and left out; any other line that cannot be read is refused.
#[test]
fn a_torn_last_line_is_told_of() {
    let recorded = Recorded::new("recorded-torn");
    let input = episodes(&["a"]);
    let done = recorded.record(&input);
    let text = fs::read_to_string(recorded.file("rec.jsonl")).unwrap();
    fs::write(recorded.file("rec.jsonl"), &text[..text.len() - 9]).unwrap();
    let again = recorded.replay(&input, &[]);
    assert!(again.stderr.contains("the last line breaks off, and is left out"), "{again:?}");
    assert_eq!(again.code, Some(1));
    let differ = again.stdout.lines().zip(done.stdout.lines()).filter(|(again, once)| again != once).count();
    assert_eq!(differ, 1);
    let broken = text.replacen("\"turn\"", "\"trn\"", 1);
    fs::write(recorded.file("rec.jsonl"), broken).unwrap();
    let refused = recorded.replay(&input, &[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("line 2: it is no call, and declares no tool"), "{refused:?}");
    fs::write(recorded.file("rec.jsonl"), input).unwrap();
    assert!(recorded.replay("", &[]).stderr.contains("begins with toolyard_record"));
    let over = recorded.record("");
    assert!(over.code == Some(2) || over.code == Some(3), "{over:?}");
}

/// KT-10, SB-11: nothing that the run reads or writes is overwritten by the record, and tools cannot write it.
#[test]
fn the_record_is_protected() {
    let recorded = Recorded::new("recorded-protected");
    let write = |path: &str| {
        let call = json!({"call_id": 1, "name": "write_file", "arguments": {"path": path, "content": "{}"}});
        json!({"id": "w", "turns": [[call]]}).to_string()
    };
    let inside = recorded.file("work/rec.jsonl");
    let done = recorded.run(&write("rec.jsonl"), &["--record", &inside]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(fs::read_to_string(&inside).unwrap().starts_with("{\"toolyard_record\":1}\n"));
    let done = recorded.run(&write("rec.jsonl"), &["--replay", &inside]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(fs::read_to_string(&inside).unwrap().starts_with("{\"toolyard_record\":1}\n"));
    for (file, what) in [("toolyard.toml", "the configuration"), ("tool.sh", "other than a record")] {
        let before = fs::read_to_string(recorded.file(file)).unwrap();
        let refused = recorded.run(&write("a"), &["--record", &recorded.file(file)]);
        assert!(refused.code == Some(2) && refused.stderr.contains(what), "{refused:?}");
        assert_eq!(fs::read_to_string(recorded.file(file)).unwrap(), before);
    }
    let events = recorded.run(&write("a"), &["--replay", &inside, "--events", &inside]);
    assert!(events.code == Some(2) && events.stderr.contains("the recorded results"), "{events:?}");
}

/// KT-9, KT-10: with `--continue`, the record goes on too, and a replay of all of it gives what a whole run has given.
#[test]
fn a_record_goes_on_with_its_results() {
    let recorded = Recorded::new("recorded-continued");
    let (input, results) = (episodes(&["a", "fail"]), recorded.file("results.jsonl"));
    let half: String = input.lines().take(4).map(|line| format!("{line}\n")).collect();
    let run = |input: &str| {
        let record = recorded.file("rec.jsonl");
        recorded.run(input, &["--record", &record, "--continue", &results, "--jobs", "2"])
    };
    assert_eq!(run(&half).code, Some(1));
    let record = fs::read_to_string(recorded.file("rec.jsonl")).unwrap();
    fs::write(recorded.file("rec.jsonl"), format!("{record}{{\"episode\":\"e")).unwrap();
    assert_eq!(run(&input).code, Some(1));
    recorded.without_tool();
    let again = recorded.replay(&input, &["--jobs", "4"]);
    assert_eq!(again.stdout, fs::read_to_string(&results).unwrap(), "{}", again.stderr);
}

/// KT-10: a replay starts no server, and has the tools that the servers had, with their settings.
#[test]
fn a_replay_starts_no_server() {
    let inn = Inn::open("recorded-server", "");
    let tools = "[tools.inn__ring]\nmax_concurrency = 1\n";
    let write = |section: &str| fs::write(inn.path("toolyard.toml"), format!("{tools}{section}")).unwrap();
    let call = |at: usize, name: &str| json!({"call_id": at, "name": name, "arguments": {"text": at}});
    let calls = [call(0, "inn__ring"), call(1, "inn__book"), call(2, "inn__echo"), call(3, "echo")];
    let input = json!({"id": "e", "turns": [calls]}).to_string();
    let (record, config) = (inn.path("rec.jsonl"), inn.config());
    let run = |option: &str| {
        let args = ["run", "--from", "episodes", "--report", "none", "--config", &config, option];
        toolyard(&[&args[..], &[record.to_str().unwrap()]].concat(), &input)
    };
    write(&inn.section());
    let done = run("--record");
    assert!(done.code == Some(1) && done.stdout.contains("somebody comes"), "{done:?}");
    assert!(done.stdout.contains("no such room"), "{done:?}");
    write("[mcp.inn]\ncommand = \"sh\"\nargs = [\"-c\", \"exit 3\"]\n[tools.inn__gone]\ntimeout = \"1s\"\n");
    let again = run("--replay");
    assert_eq!((again.code, again.stdout), (Some(1), done.stdout), "{}", again.stderr);
}
