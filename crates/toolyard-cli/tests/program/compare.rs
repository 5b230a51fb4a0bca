//! Two reports side by side.

use crate::{
    child::{Done, toolyard},
    place::dir,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// A report of calls of these tools: name, calls, failures, and the 95th percentile of how long they ran.
fn report(tools: &[(&str, u64, u64, f64)]) -> Value {
    let spread = |p95: f64| json!({"p50": p95 / 2.0, "p95": p95, "p99": p95 * 2.0, "max": p95 * 3.0});
    let tool = |(name, calls, failed, p95): &(&str, u64, u64, f64)| {
        let queued = (*p95 > 0.0).then(|| spread(1.0));
        let ran = (*p95 > 0.0).then(|| spread(*p95));
        let of_tool =
            json!({"calls": calls, "failed": failed, "calls_per_s": 1.5, "ran_ms": ran, "queued_ms": queued});
        ((*name).to_owned(), of_tool)
    };
    let sum = |of: fn(&(&str, u64, u64, f64)) -> u64| tools.iter().map(of).sum::<u64>();
    json!({
        "calls": sum(|tool| tool.1), "failed": sum(|tool| tool.2), "wall_ms": 2000.0, "calls_per_s": 7.0,
        "at_once": {"average": 1.5, "most": 3}, "tools": Value::Object(tools.iter().map(tool).collect()),
    })
}

struct Reports {
    dir: PathBuf,
}

impl Reports {
    fn new(name: &str, a: &str, b: &str) -> Self {
        let dir = dir(name);
        fs::write(dir.join("a.json"), a).unwrap();
        fs::write(dir.join("b.json"), b).unwrap();
        Self { dir }
    }

    fn path(&self, file: &str) -> String {
        self.dir.join(file).to_str().unwrap().to_owned()
    }

    fn compare(&self, more: &[&str]) -> Done {
        toolyard(&[&["compare", &self.path("a.json"), &self.path("b.json")], more].concat(), "")
    }
}

const A: [(&str, u64, u64, f64); 3] = [("gone", 2, 0, 3.0), ("search", 100, 4, 20.0), ("quick", 50, 0, 0.1)];
const B: [(&str, u64, u64, f64); 3] = [("new", 3, 3, 0.0), ("search", 100, 5, 23.0), ("quick", 50, 0, 0.3)];

/// KT-11: all calls and each tool, with the relative change; a tool in one report alone is shown as that.
#[test]
fn two_reports_are_shown_side_by_side() {
    let reports = Reports::new("compare", &report(&A).to_string(), &report(&B).to_string());
    let done = reports.compare(&[]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let rows: Vec<String> =
        done.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for row in [
        "all calls 152 153 +0.7 %",
        "failed 4 8 +100.0 %",
        "elapsed 2.00 s 2.00 s same",
        "gone calls 2 - only in the first",
        "new calls 3 - only in the second",
        "ran p95 20.0 ms 23.0 ms +15.0 %",
        "ran p50 10.0 ms 11.5 ms +15.0 %",
        "queued p95 1.00 ms 1.00 ms same",
    ] {
        let row = row.replace("new calls 3 -", "new calls - 3");
        assert!(rows.contains(&row), "'{row}' is not in {rows:#?}");
    }
    let json = reports.compare(&["--json"]).json();
    let search = &json["tools"]["search"];
    assert_eq!(search["ran_p95_ms"], json!({"a": 20.0, "b": 23.0, "change_percent": 15.0}));
    assert_eq!(search["failed"], json!({"a": 4.0, "b": 5.0, "change_percent": 25.0}));
    assert_eq!(json["tools"]["gone"]["calls"], json!({"a": 2.0, "b": null, "change_percent": null}));
    assert_eq!(json["tools"]["new"]["ran_p95_ms"], json!({"a": null, "b": null, "change_percent": null}));
    assert_eq!((&json["totals"]["calls"]["b"], &json["worse"]), (&json!(153.0), &Value::Null));
}

/// KT-11: with a bound, what got worse by more is named, and the exit code says so. Noise is no growth.
#[test]
fn what_got_worse_fails_a_build() {
    let reports = Reports::new("compare-fail", &report(&A).to_string(), &report(&B).to_string());
    let check = |percent: &str, expect: &[&str]| {
        let done = reports.compare(&["--fail-over", percent, "--json"]);
        assert_eq!(done.code, Some(i32::from(!expect.is_empty())));
        assert_eq!(done.json()["worse"], json!(expect));
        let lines: String = expect.iter().map(|line| format!("toolyard: {line}\n")).collect();
        assert_eq!(done.stderr, lines);
    };
    let all = "all: the share of failed calls grew from 2.63 % to 5.23 %";
    let failures = "search: the share of failed calls grew from 4.00 % to 5.00 %";
    let slower = "search: p95 of how long calls ran grew from 20.0 ms to 23.0 ms";
    check("100", &[]);
    check("50%", &[all]);
    check("20", &[all, failures]);
    check("14.9", &[all, slower, failures]);
    let wrong = reports.compare(&["--fail-over", "much"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

/// KT-11: what the program itself prints can be compared, also with an error of its own around it; other files cannot.
#[test]
fn reports_of_runs_are_read_and_nothing_else() {
    let call = json!({"call_id": "a", "name": "echo", "arguments": {"text": "x"}});
    let input = format!("{}\n{{\n", json!({"id": "e", "turns": [[call], [call]]}));
    let run = toolyard(&["run", "--report", "json"], &input);
    assert!(run.code == Some(3) && run.stderr.contains("toolyard: standard input line 2: "), "{run:?}");
    let reports = Reports::new("compare-read", &run.stderr, &run.stderr);
    let json = reports.compare(&["--json", "--fail-over", "0"]).json();
    assert_eq!(json["tools"]["echo"]["calls"], json!({"a": 2.0, "b": 2.0, "change_percent": 0.0}));
    assert_eq!(json["worse"], json!([]));
    assert!(json["totals"]["episodes_per_s"]["a"].is_f64(), "{json}");
    for other in ["", "hello", "[1]", "{\"calls\":3}", "\u{0}"] {
        fs::write(reports.dir.join("b.json"), other).unwrap();
        let done = reports.compare(&[]);
        let begin = format!("toolyard: {}: is no JSON report of this version (", reports.path("b.json"));
        assert_eq!((done.code, done.stdout.as_str()), (Some(3), ""));
        assert!(done.stderr.starts_with(&begin) && done.stderr.lines().count() == 1, "{}", done.stderr);
    }
    fs::remove_file(reports.dir.join("b.json")).unwrap();
    let done = reports.compare(&[]);
    assert!(done.code == Some(3) && done.stderr.contains("b.json: cannot be read: "), "{done:?}");
}
