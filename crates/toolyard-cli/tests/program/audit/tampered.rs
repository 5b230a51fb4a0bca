//! A real log, and the ways in which it is tampered with.

use crate::{
    child::{Done, toolyard},
    place::dir,
    workspace::workspace,
};
use std::{fs, path::PathBuf};

/// The lines of the log of a run of eight calls, two of which need approval.
pub(crate) fn log(name: &str) -> (PathBuf, Vec<String>) {
    let dir = workspace(&format!("audit-{name}"));
    let events = dir.join("log.jsonl");
    let (workspace, file) = (dir.to_str().unwrap(), events.to_str().unwrap());
    let response = "examples/responses/openai-chat.json";
    toolyard(&["run", response, "--workspace", workspace, "--approve", "auto", "--events", file, "-q"], "");
    let text = fs::read_to_string(&events).unwrap();
    (events, text.lines().map(str::to_owned).collect())
}

pub(crate) fn audit(lines: &[String]) -> Done {
    toolyard(&["audit", "-"], &(lines.join("\n") + "\n"))
}

/// Audits the log after `change`; the verdict must name the line.
fn check(log: &[String], code: i32, line: usize, message: &str, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines = log.to_vec();
    change(&mut lines);
    let done = audit(&lines);
    assert_eq!(done.code, Some(code), "{done:?}");
    let output = if code == 3 { &done.stderr } else { &done.stdout };
    let place = format!("line {line}");
    let found = output.lines().any(|line| {
        let rest = line.split_once(&place).map(|(_, rest)| rest);
        rest.is_some_and(|rest| rest.starts_with([',', ':']) && rest.contains(message))
    });
    assert!(found, "{place} {message}: {done:?}");
}

/// The number of the first line that contains all of these.
fn find(log: &[String], has: &[&str]) -> usize {
    1 + log.iter().position(|line| has.iter().all(|part| line.contains(part))).unwrap()
}

/// I2: the log of a run is whole.
#[test]
fn the_log_of_a_run_is_whole() {
    let (file, lines) = log("whole");
    let done = toolyard(&["audit", file.to_str().unwrap()], "");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    let verdict = format!("whole: {} events, 8 calls, 1 session", lines.len());
    assert_eq!(done.stdout.lines().last(), Some(verdict.as_str()), "{done:?}");
    assert_eq!(audit(&lines).stdout, done.stdout);
}

/// I2, I14: lines that were removed, doubled, swapped or changed are reported at their place.
#[test]
fn what_is_done_to_a_log_is_found_with_its_line() {
    let (_, log) = log("tampered");
    for at in [2, 3, 10, 20, log.len() - 6] {
        check(&log, 1, at, "missing", |lines| drop(lines.remove(at - 1)));
        check(&log, 1, at + 1, "it is duplicated or out of order", |lines| {
            lines.insert(at, lines[at - 1].clone())
        });
        check(&log, 1, at + 1, "it is duplicated or out of order", |lines| lines.swap(at - 1, at));
    }
    let called = find(&log, &["\"tool.called\"", "\"write_file\""]);
    let digest = "\"digest\":\"";
    check(&log, 1, called, "is not the one approved", |lines| {
        let line = &mut lines[called - 1];
        let at = line.find(digest).unwrap() + digest.len();
        let digit = if &line[at..=at] == "0" { "1" } else { "0" };
        line.replace_range(at..=at, digit);
    });
    check(&log, 1, called, "call_id", |lines| {
        lines[called - 1] = lines[called - 1].replace("\"call_4\"", "\"call_5\"");
    });
    let ended = find(&log, &["\"turn.ended\""]);
    check(&log, 1, ended, "8 calls that ended with an output, but 7 were found", |lines| {
        let done = find(lines, &["\"tool.completed\"", "\"call_8\""]);
        lines[done - 1] = lines[done - 1]
            .replace("tool.completed", "tool.failed")
            .replace("\"dedupe\":\"fresh\"", "\"code\":\"timeout\",\"class\":\"timeout\",\"message\":\"x\",\"outcome\":\"unknown\",\"attempts\":1");
    });
    let resolved = find(&log, &["confirmation_resolved", "call_4"]);
    check(&log, 1, called, "was refused", |lines| {
        lines[resolved - 1] = lines[resolved - 1].replace("\"approved\":true", "\"approved\":false");
    });
}

/// I1: a log that breaks off has open calls, and a torn last line is reported as such.
#[test]
fn a_log_that_breaks_off_is_found() {
    let (_, log) = log("torn");
    let ended = find(&log, &["\"tool.completed\"", "\"call_8\""]);
    check(&log, 1, 3, "the turn has not ended", |lines| lines.truncate(ended - 1));
    let begun = find(&log, &["received", "\"call_8\""]);
    check(&log, 1, begun, "has not ended", |lines| lines.truncate(ended - 1));
    let text = log[..3].join("\n") + "\n" + &log[3][..40];
    let done = toolyard(&["audit", "-"], &text);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stdout.contains("line 4: the line breaks off"), "{done:?}");
    assert!(done.stdout.contains("the log has no engine end"), "{done:?}");
}

/// OB-2: anything that is not a log of this version is refused with its line, and gets no verdict.
#[test]
fn what_is_no_log_is_refused() {
    let (_, log) = log("strange");
    check(&log, 3, 5, "not JSON", |lines| lines[4] = "half a li".to_owned());
    check(&log, 3, 5, "not an event", |lines| lines[4] = "{\"a\":1}".to_owned());
    check(&log, 3, 7, "version 2; this program reads version 1", |lines| {
        lines[6] = lines[6].replace("\"v\":1", "\"v\":2");
    });
    let done = toolyard(&["audit", "-"], "\n");
    assert_eq!((done.code, done.stdout.contains("whole: ")), (Some(3), false), "{done:?}");
    assert!(done.stderr.contains("it contains no events"), "{done:?}");
    let done = toolyard(&["audit", "no/such/file"], "");
    assert_eq!(done.code, Some(3), "{done:?}");
    assert_eq!(toolyard(&["audit"], "").code, Some(2));
}

/// OB-2: bytes that are not text are refused.
#[test]
fn bytes_that_are_no_text_are_refused() {
    let dir = dir("audit-bytes");
    let file = dir.join("log.jsonl");
    fs::write(&file, b"{\"a\":\"\xff\"}\n{}\n").unwrap();
    let done = toolyard(&["audit", file.to_str().unwrap()], "");
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("line 1: byte 6 is not valid UTF-8"), "{done:?}");
}

/// OB-2: an event kind of a later program is skipped and reported, and its number counts.
#[test]
fn a_kind_that_is_not_known_is_passed_over() {
    let (_, mut log) = log("later");
    let at = find(&log, &["\"turn.started\""]) - 1;
    log[at] = log[at].replace("turn.started", "turn.blessed");
    let done = audit(&log);
    // Without its start event, the end of the turn is a fault.
    assert_eq!(done.code, Some(1), "{done:?}");
    let note = format!("skipped: 1 event of unknown kinds, first 'turn.blessed' in line {}", at + 1);
    assert!(done.stdout.contains(&note), "{done:?}");
    assert!(!done.stdout.contains("missing"), "{done:?}");
}
