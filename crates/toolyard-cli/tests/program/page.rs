//! Pages of runs and of event logs.

use crate::{
    child::{program, toolyard},
    place::dir,
    workspace::workspace,
};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn calls() -> String {
    let call = |index: usize, text: &str| json!({"call_id": format!("c{index}"), "name": "echo", "arguments": {"text": text}});
    json!({"calls": [call(0, "a"), call(1, "</script>")]}).to_string()
}

/// The events in a page.
fn events(page: &Path) -> Vec<Value> {
    let page = fs::read_to_string(page).unwrap();
    events_in(&page)
}

fn events_in(page: &str) -> Vec<Value> {
    assert!(page.starts_with("<!doctype html>"), "{}", &page[..page.len().min(200)]);
    let after = page.split_once("id=\"events\">").unwrap().1;
    let events = after.split_once("</script>").unwrap().0;
    serde_json::from_str(events).unwrap()
}

fn kinds(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["event"] == kind).count()
}

#[test]
fn a_run_leaves_a_page_with_its_events() {
    let file = dir("page-run").join("report.html");
    let done = toolyard(&["run", "--report", &format!("html={}", file.display())], &calls());
    assert_eq!(done.code, Some(0), "{done:?}");
    let said: Vec<&str> = done.stderr.lines().collect();
    assert!(said[0].starts_with("2 calls in 1 run: 2 ok, 0 failed"), "{said:?}");
    assert_eq!(said[1], format!("toolyard: the report is in {}", file.display()));
    let events = events(&file);
    assert_eq!((kinds(&events, "engine.started"), kinds(&events, "tool.completed")), (1, 2));
    assert_eq!(events.last().unwrap()["event"], "engine.drain");
}

#[test]
fn a_page_replaces_what_the_file_held_and_only_its_owner_reads_it() {
    let dir = dir("page-replaced");
    let (old, new) = (dir.join("old.html"), dir.join("new.html"));
    fs::write(&old, "x".repeat(1 << 20)).unwrap();
    for file in [&old, &new] {
        let done = toolyard(&["run", "--report", &format!("html={}", file.display())], &calls());
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(fs::read_to_string(file).unwrap().ends_with("</html>\n"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Nothing is run if its report could not be written, and no report is written over what the run reads or records.
#[test]
fn a_page_goes_into_no_file_that_the_run_needs() {
    let dir = dir("page-protected");
    let (input, log) = (dir.join("batch.json"), dir.join("log.jsonl"));
    fs::write(&input, calls()).unwrap();
    let run = |more: &[&str]| toolyard(&[&["run", input.to_str().unwrap()], more].concat(), "");
    let html = |path: &Path| format!("html={}", path.display());
    let done = run(&["--report", &html(&input)]);
    let why = format!(
        "toolyard: --report html={} would write into the input: name another file\n",
        input.display()
    );
    assert_eq!((done.code, done.stderr), (Some(2), why));
    assert_eq!(fs::read_to_string(&input).unwrap(), calls());
    let done = run(&["--events", log.to_str().unwrap(), "--trace", log.to_str().unwrap()]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("would write into the events"), "{}", done.stderr);
    let done = run(&["--report", &html(&dir.join("missing/report.html"))]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""));
}

/// SB-11: what records a run is not written by its tools.
#[test]
fn tools_do_not_write_the_page() {
    let workspace = workspace("page-guarded");
    let file = workspace.join("report.html");
    let write = json!({"calls": [{"call_id": "w", "name": "write_file", "arguments": {"path": "report.html", "content": "mine"}}]});
    let report = format!("html={}", file.display());
    let args = ["run", "--approve", "auto", "--workspace", workspace.to_str().unwrap(), "--report", &report];
    let done = toolyard(&args, &write.to_string());
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(kinds(&events(&file), "tool.completed"), 0);
}

#[test]
fn a_report_that_is_none_is_refused() {
    for (kind, why) in [
        ("xml", "possible values: text, json, none, html=FILE"),
        ("html", "name a file, as in html=report.html"),
    ] {
        let done = toolyard(&["run", "--report", kind], "");
        let expect =
            format!("toolyard: invalid value '{kind}' for '--report <KIND>': {why}; see toolyard --help\n");
        assert_eq!((done.code, done.stderr), (Some(2), expect));
    }
}

/// A log of a run in a folder of its own.
fn log(name: &str) -> std::path::PathBuf {
    let log = dir(name).join("log.jsonl");
    let done = toolyard(&["run", "-q", "--events", log.to_str().unwrap()], &calls());
    assert_eq!(done.code, Some(0), "{done:?}");
    log
}

#[test]
fn a_log_becomes_a_page_beside_it() {
    let log = log("view");
    let text = fs::read_to_string(&log).unwrap();
    let done = toolyard(&["view", log.to_str().unwrap()], "");
    let page = fs::canonicalize(log.with_extension("html")).unwrap();
    assert_eq!(
        (done.code, done.stdout, done.stderr),
        (Some(0), format!("{}\n", page.display()), String::new())
    );
    let of_log: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events(&page), of_log);
    // Once more, over the page of before.
    assert_eq!(toolyard(&["view", log.to_str().unwrap()], "").code, Some(0));
}

#[test]
fn a_log_becomes_a_page_on_standard_output() {
    let text = fs::read_to_string(log("view-stdin")).unwrap();
    let done = toolyard(&["view", "-", "--out", "-"], &text);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(events_in(&done.stdout).len(), text.lines().count());
}

#[test]
fn what_is_no_page_is_not_overwritten() {
    let log = log("view-other");
    let other = log.with_extension("html");
    fs::write(&other, "<title>Mine</title>").unwrap();
    let done = toolyard(&["view", log.to_str().unwrap()], "");
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("holds something else: name a file for the page with --out"),
        "{}",
        done.stderr
    );
    assert_eq!(fs::read_to_string(&other).unwrap(), "<title>Mine</title>");
    let onto_itself = toolyard(&["view", log.to_str().unwrap(), "--out", log.to_str().unwrap()], "");
    assert_eq!(onto_itself.code, Some(2));
    let named = toolyard(&["view", log.to_str().unwrap(), "--out", other.to_str().unwrap()], "");
    assert_eq!(named.code, Some(0));
}

#[test]
fn all_parts_of_a_log_are_in_its_page() {
    let log = log("view-parts");
    let text = fs::read_to_string(&log).unwrap();
    let (first, rest) = text.split_at(text.match_indices('\n').nth(3).unwrap().0 + 1);
    fs::write(log.with_extension("jsonl.1"), first).unwrap();
    fs::write(&log, rest).unwrap();
    assert_eq!(toolyard(&["view", log.to_str().unwrap()], "").code, Some(0));
    assert_eq!(events(&log.with_extension("html")).len(), text.lines().count());
}

#[test]
fn a_line_that_breaks_off_is_left_out_and_said() {
    let log = log("view-torn");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, format!("{text}{{\"v\":1,\"se")).unwrap();
    let done = toolyard(&["view", log.to_str().unwrap()], "");
    assert_eq!(done.code, Some(0));
    assert_eq!(done.stderr, "toolyard: 1 line breaks off and is left out; toolyard audit names it\n");
}

#[test]
fn what_is_no_log_has_no_page() {
    let dir = dir("view-none");
    let refused = |text: &str| {
        let file = dir.join("file.jsonl");
        fs::write(&file, text).unwrap();
        let done = toolyard(&["view", file.to_str().unwrap()], "");
        assert!(!file.with_extension("html").exists(), "{text}");
        assert_eq!(done.code, Some(3), "{done:?}");
        done.stderr
    };
    assert!(refused("").contains("it contains no events"));
    assert!(refused("{\"v\":9}\n").contains("an event of version 9"));
    assert!(refused("{\"calls\":[]}\n").contains("line 1"));
    let missing = toolyard(&["view", dir.join("missing.jsonl").to_str().unwrap()], "");
    assert_eq!(missing.code, Some(3));
}

#[test]
fn a_page_on_standard_output_cannot_be_opened() {
    let done = program(&["view", "-", "--out", "-", "--open"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
}
