//! Episodes side by side: `--jobs`.
#![cfg(unix)]

use crate::{
    child::{program, toolyard},
    episodes_yard::{EpisodesYard, places, signal},
    terminal::Terminal,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read},
};

/// KT-9, KT-11: two calls of different episodes wait for each other, so neither ends unless both run; the report tells of
/// the real time.
#[test]
fn episodes_run_side_by_side() {
    let yard = EpisodesYard::new("jobs-meet");
    let input = yard.write("in.jsonl", &[("taker", &[&["take"], &["x"]]), ("giver", &[&["y"], &["give"]])]);
    let done = yard.run(&input, &["--jobs", "2", "--report", "json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(places(&done.stdout), ["taker 0", "taker 1", "giver 0", "giver 1"]);
    let report: Value = serde_json::from_str(&done.stderr).unwrap();
    assert!(report["at_once"]["most"].as_u64().unwrap() >= 2, "{report}");
    let wall = report["wall_ms"].as_f64().unwrap();
    let walls: Vec<f64> =
        report["episodes"].as_array().unwrap().iter().map(|one| one["wall_ms"].as_f64().unwrap()).collect();
    assert_eq!(walls.len(), 2);
    assert!(walls.iter().all(|one| *one <= wall) && walls.iter().sum::<f64>() > wall, "{report}");
}

/// KT-9: later episodes that have ended wait for the first, whose turns are printed as they end.
#[test]
fn results_are_printed_in_the_order_of_the_input() {
    let yard = EpisodesYard::new("jobs-order");
    let told = yard.hold();
    let input = yard.write("in.jsonl", &[("a", &[&["x"], &["hold"]]), ("b", &[&["y"], &["z"]])]);
    let mut child = yard.start(&input, &["--jobs", "2", "-q"]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert_eq!(places(&first), ["a 0"]);
    told.until("here");
    yard.open_gate();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(places(&rest), ["a 1", "b 0", "b 1"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// KT-9: the results do not depend on the number of jobs; lines that cannot be read cost no other, and episodes of one name
/// are sessions of their own.
#[test]
fn results_do_not_depend_on_the_number_of_jobs() {
    let episode = |n: usize| {
        let call =
            |at: usize| json!({"call_id": at, "name": "echo", "arguments": {"text": format!("{n} {at}")}});
        json!({"id": format!("e{}", n % 7), "turns": [[call(0), call(1)], [], [call(2)]]}).to_string()
    };
    let mut lines: Vec<String> = (0..60).map(episode).collect();
    lines.insert(20, "{\"id\":".to_owned());
    let run = |jobs: &str| {
        let done =
            toolyard(&["run", "--from", "episodes", "--report", "none", "--jobs", jobs], &lines.join("\n"));
        assert_eq!((done.code, done.stderr.lines().count()), (Some(3), 1), "{done:?}");
        done.stdout
    };
    let expect = run("1");
    assert_eq!(expect.lines().count(), 180);
    assert!(["2", "16", "1000"].into_iter().all(|jobs| run(jobs) == expect));
}

/// KT-9, SC-8: after an interrupt no episode starts, and each that has started has all its turns.
#[test]
fn an_interrupt_leaves_no_episode_half() {
    let yard = EpisodesYard::new("jobs-interrupt");
    let told = yard.hold();
    let turns: &[&[&str]] = &[&["hold"], &["x"], &["y"]];
    let input = yard.write("in.jsonl", &[("a", turns), ("b", turns), ("c", turns)]);
    let child = yard.start(&input, &["--jobs", "2", "--report", "none"]);
    told.until("here");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let found = places(&stdout);
    let all = ["a 0", "a 1", "a 2", "b 0", "b 1", "b 2"];
    // The second may not have been read yet.
    assert!(found == all || found == all[..3], "{found:?}");
    assert!(stdout.lines().all(|line| line.contains("\"ok\":false")), "{stdout}");
    assert!(stderr.contains("--continue FILE"), "{stderr}");
}

/// PO-3, PO-4, KT-9: questions of several episodes come one at a time, and "always" covers one session.
#[test]
fn questions_come_one_at_a_time() {
    let yard = EpisodesYard::new("jobs-ask");
    let write = json!([{"call_id": "w", "name": "write_file", "arguments": {"path": "a", "content": "x"}}]);
    let episode = |id: &str| json!({"id": id, "turns": [write, write]}).to_string();
    let workspace = yard.dir.to_str().unwrap();
    let args = [
        "run",
        "--report",
        "none",
        "--approve",
        "ask",
        "--jobs",
        "2",
        "--no-progress",
        "--workspace",
        workspace,
    ];
    let mut terminal = Terminal::start(&args, &[episode("one"), episode("two")].join("\n"));
    for _ in 0..2 {
        let page = terminal.question();
        assert!(page.contains("write_file"), "{page}");
        terminal.types("a\n");
    }
    let done = terminal.end();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(places(&done.stdout), ["one 0", "one 1", "two 0", "two 1"]);
    assert_eq!(done.stderr.matches("may this call run?").count(), 2);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let check = |args: &[&str], input: &str, expect: &str| {
        let done = toolyard(&[&["run", "-q"], args].concat(), input);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""));
        assert!(done.stderr.starts_with(&format!("toolyard: {expect}")), "{}", done.stderr);
    };
    let (episode, batch) = (r#"{"id":"e","turns":[[]]}"#, r#"{"calls":[]}"#);
    check(&["--jobs", "2", "--sequential"], episode, "--sequential runs one call at a time, which is");
    check(&["--jobs", "2"], batch, "--jobs is for episodes, and the input is one response");
    check(&["--continue", "never.jsonl"], batch, "--continue is for episodes, and the input is one response");
    check(&["--jobs", "0"], episode, "invalid value '0' for '--jobs <N>': must be at least 1");
    assert!(!fs::exists(crate::child::root().join("never.jsonl")).unwrap());
    assert_eq!(toolyard(&["run", "-q", "--jobs", "1", "--sequential"], episode).code, Some(0));
}

/// KT-12: the turns of a file are counted before it runs, what runs longest is named; those of a pipe have no total.
#[test]
fn the_live_view_tells_how_far_it_is() {
    let yard = EpisodesYard::new("jobs-live");
    let input = yard.write("in.jsonl", &[("a", &[&["x"]]), ("b", &[&["hold"], &["y"]])]);
    for is_piped in [false, true] {
        let told = yard.hold();
        let text = if is_piped { fs::read_to_string(&input).unwrap() } else { String::new() };
        let from = if is_piped { "-" } else { &input };
        let mut terminal = Terminal::start(&yard.args(from, &["--report", "none"]), &text);
        told.until("here");
        let shown =
            if is_piped { [" 1 turns", "/s  longest: t "] } else { [" 1/3 turns", " left  longest: t "] };
        shown.iter().for_each(|what| drop(terminal.until(what)));
        terminal.until("(b turn 0)");
        yard.open_gate();
        let done = terminal.end();
        assert_eq!((done.code, done.lines().len()), (Some(0), 3), "{done:?}");
        assert_eq!(
            (done.stderr.contains("/3 turns"), done.stderr.contains(" left  ")),
            (!is_piped, !is_piped)
        );
        assert!(!done.stderr.contains("/2 turns") && !done.stderr.contains("/1 turns"), "{done:?}");
    }
}

/// KT-12: where a run goes on, the turns of a line that cannot be read are done from the beginning, as kept ones are.
#[test]
fn a_line_that_cannot_be_read_is_done_where_a_run_goes_on() {
    let yard = EpisodesYard::new("jobs-live-kept");
    let episodes: [(&str, &[&[&str]]); 2] = [("a", &[&["x"]]), ("b", &[&["hold"], &["y"]])];
    let (results, first) = (yard.beside("out.jsonl"), yard.write("in.jsonl", &episodes[..1]));
    let no_episode = json!({"turns": [[], []]}).to_string() + "\n";
    fs::write(&first, no_episode.clone() + &fs::read_to_string(&first).unwrap()).unwrap();
    let go_on = ["--report", "none", "--continue", &results];
    assert_eq!(yard.run(&first, &go_on).code, Some(3));
    let input = yard.write("in.jsonl", &episodes);
    fs::write(&input, no_episode + &fs::read_to_string(&input).unwrap()).unwrap();
    let told = yard.hold();
    let mut terminal = Terminal::start(&yard.args(&input, &go_on), "");
    told.until("here");
    terminal.until(" 3/5 turns");
    yard.open_gate();
    let done = terminal.end();
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(!done.stderr.contains(" 1/5 turns"), "{done:?}");
}

/// KT-9: an episode is printed although a reader who stops early ends the program.
#[test]
fn a_reader_who_has_seen_enough_ends_the_run() {
    let text = "x".repeat(10_000);
    let call = json!({"call_id": "a", "name": "echo", "arguments": {"text": text}});
    let episode = |n: usize| json!({"id": n.to_string(), "turns": [[call], [call]]}).to_string();
    let input: Vec<String> = (0..200).map(episode).collect();
    let place = crate::place::dir("jobs-reader").join("in.jsonl");
    fs::write(&place, input.join("\n")).unwrap();
    let args = ["run", place.to_str().unwrap(), "--from", "episodes", "--jobs", "4", "-q"];
    let mut child = program(&args).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    assert_eq!((places(&line), child.wait().unwrap().code()), (vec!["0 0".to_owned()], Some(0)));
}
