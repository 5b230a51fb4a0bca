//! A run over episodes that goes on where it stopped: `--continue`.
#![cfg(unix)]

use crate::{
    child::toolyard,
    episodes_yard::{EpisodesYard, places, read, signal},
    place::dir,
};
use serde_json::{Value, json};
use std::{fs, io::Read};

/// Eight episodes of two turns, in one of which a call can be held up.
fn eight(yard: &EpisodesYard) -> String {
    let (plain, held): (&[&[&str]], &[&[&str]]) = (&[&["x", "y"], &["z"]], &[&["x"], &["hold"]]);
    let ids = ["0", "1", "2", "3", "4", "5", "6", "7"];
    yard.write("in.jsonl", &ids.map(|id| (id, if id == "4" { held } else { plain })))
}

/// KT-9: killed while it runs, and then continued, a run gives what an undisturbed one gives.
#[test]
fn what_was_killed_goes_on() {
    let yard = EpisodesYard::new("continue-killed");
    let input = eight(&yard);
    let (whole, file) = (yard.beside("whole.jsonl"), yard.beside("out.jsonl"));
    let done = yard.run(&input, &["--continue", &whole, "-q"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
    assert_eq!(yard.run(&input, &["-q"]).stdout, read(&whole));
    for jobs in ["1", "3"] {
        let _ = fs::remove_file(&file);
        let told = yard.hold();
        let mut child = yard.start(&input, &["--jobs", jobs, "--continue", &file, "-q"]);
        told.until("here");
        signal(&child, "-KILL");
        child.wait().unwrap();
        yard.release();
        let half = read(&file);
        assert!(read(&whole).starts_with(&half) && half.lines().count() <= 8, "{half}");
        assert!(jobs != "1" || half.lines().count() == 8, "four episodes had ended: {half}");
        let done = yard.run(&input, &["--jobs", jobs, "--continue", &file, "--report", "none"]);
        assert_eq!((done.code, read(&file)), (Some(0), read(&whole)));
        let kept = format!("toolyard: kept in {file}: ");
        assert_eq!(done.stderr.contains(&kept), !half.is_empty(), "{}", done.stderr);
    }
}

/// KT-9: an episode that an interrupt reaches is not written, so it leaves no failures, and runs again.
#[test]
fn what_was_interrupted_goes_on() {
    let yard = EpisodesYard::new("continue-interrupted");
    let input = eight(&yard);
    let (whole, file) = (yard.beside("whole.jsonl"), yard.beside("out.jsonl"));
    yard.run(&input, &["--continue", &whole, "-q"]);
    for (jobs, signals) in [("1", 1), ("3", 1), ("3", 2)] {
        let _ = fs::remove_file(&file);
        let told = yard.hold();
        let child = yard.start(&input, &["--jobs", jobs, "--continue", &file, "--report", "none"]);
        told.until("here");
        (0..signals).for_each(|_| signal(&child, "-INT"));
        let output = child.wait_with_output().unwrap();
        yard.release();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(130), &b""[..]), "{stderr}");
        let hint = format!(" in {file}: to go on, run the same command again");
        assert!(stderr.contains(&hint), "{stderr}");
        let half = read(&file);
        assert!(read(&whole).starts_with(&half), "{half}");
        assert!(places(&half).iter().all(|place| place.as_str() < "4 0"), "{half}");
        assert_eq!(yard.run(&input, &["--jobs", jobs, "--continue", &file, "-q"]).code, Some(0));
        assert_eq!(read(&file), read(&whole));
    }
}

/// Three episodes, one line that cannot be read, and a call that fails.
fn three() -> String {
    let call =
        |id: &str, name: &str| json!({"call_id": id, "name": name, "arguments": {"text": "é\u{202e}"}});
    let episode = |id: &str| json!({"id": id, "turns": [[call("a", "echo"), call("b", "echo")], [], [call("c", "nope")]]});
    format!("{}\n{{\n{}\n\n{}\n", episode("one"), episode("t\u{202e}wo"), episode("three"))
}

/// KT-9: wherever a file breaks off, the run goes on behind the last whole episode.
#[test]
fn a_torn_tail_is_repaired() {
    let file = dir("continue-torn").join("out.jsonl");
    let path = file.to_str().unwrap();
    let go_on = || toolyard(&["run", "--from", "episodes", "--report", "none", "--continue", path], &three());
    let first = go_on();
    assert_eq!((first.code, first.stdout.as_str()), (Some(3), ""));
    assert_eq!(toolyard(&["run", "--from", "episodes", "-q"], &three()).stdout, read(&file));
    let whole = fs::read(&file).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    assert_eq!(ends.len(), 9);
    for (end, kept) in [
        (0, 0),
        (1, 0),
        (ends[0], 0),
        (ends[1] + 9, 0),
        (ends[2], 1),
        (ends[4] + 20, 1),
        (ends[6] - 1, 2),
        (ends[8], 3),
    ] {
        fs::write(&file, &whole[..end]).unwrap();
        let done = go_on();
        // The failures that are kept count, and so do the lines that cannot be read.
        assert_eq!((done.code, fs::read(&file).unwrap() == whole), (Some(3), true), "cut at {end}: {done:?}");
        assert_eq!(done.stderr.matches("line 2: the JSON ends too early").count(), 1, "{done:?}");
        let said = [("kept in", kept > 0), ("nothing is left to run", kept == 3)];
        said.into_iter().for_each(|(what, is)| assert_eq!(done.stderr.contains(what), is, "{done:?}"));
    }
}

/// KT-9, KT-11: a run that has nothing left to do says so, also to programs.
#[test]
fn a_run_with_nothing_left_has_a_report() {
    let file = dir("continue-nothing").join("out.jsonl");
    let call = json!({"call_id": "a", "name": "echo", "arguments": {"text": "x"}});
    let input = json!({"id": "e", "turns": [[call], [call]]}).to_string();
    let args = ["run", "--from", "episodes", "--report", "json", "--continue", file.to_str().unwrap()];
    let report = || serde_json::from_str::<Value>(&toolyard(&args, &input).stderr).unwrap();
    let kept = |report: &Value| {
        [&report["turns"], &report["kept"]["episodes"], &report["kept"]["turns"]].map(Value::as_u64)
    };
    assert_eq!(kept(&report()), [Some(2), Some(0), Some(0)]);
    let again = report();
    assert_eq!((kept(&again), &again["calls_per_s"]), ([Some(0), Some(1), Some(2)], &Value::Null));
}

/// KT-9: a file that is not the beginning of the results is refused, and stays as it is.
#[test]
fn a_foreign_file_is_refused() {
    let dir = dir("continue-foreign");
    let (file, input) = (dir.join("out.jsonl"), dir.join("in.jsonl"));
    fs::write(&input, three()).unwrap();
    let [path, from] = [&file, &input].map(|path| path.to_str().unwrap());
    let run = |more: &[&str]| toolyard(&[&["run", from, "--continue", path, "-q"], more].concat(), "");
    assert_eq!(run(&[]).code, Some(3));
    let whole = read(&file);
    let check = |text: &str, expect: &str| {
        fs::write(&file, text).unwrap();
        let done = run(&[]);
        assert_eq!((done.code, done.stdout.as_str(), read(&file).as_str()), (Some(2), "", text));
        assert!(
            done.stderr.starts_with(&format!("toolyard: --continue {path}: {expect}")),
            "{}",
            done.stderr
        );
    };
    check(
        "hello",
        "line 1 is not about turn 0 of episode 'one' (line 1 of the input), but begins with hello; ",
    );
    check(
        &format!("{whole}x"),
        "line 10 holds more than the results of this input; the file is left as it is: ",
    );
    check(
        &whole.replacen("\"call_id\":\"b\"", "\"call_id\":\"d\"", 1),
        "line 1 is about turn 0 of episode 'one'",
    );
    let second = &whole[whole.find("{\"id\":\"t").unwrap()..];
    check(
        second,
        "line 1 is not about turn 0 of episode 'one' (line 1 of the input), but begins with {\"id\":\"t",
    );

    fs::write(&file, &whole).unwrap();
    let itself = toolyard(&["run", from, "--continue", from, "-q"], "");
    assert_eq!(
        itself.stderr,
        format!("toolyard: --continue {from} would write into the input: name another file\n")
    );
    let events = run(&["--events", path]);
    assert_eq!(
        events.stderr,
        format!("toolyard: --events {path} would write into the results: name another file\n")
    );
    assert_eq!((read(&input), read(&file)), (three(), whole));
    let device = toolyard(&["run", from, "--continue", "/dev/null", "-q"], "");
    assert_eq!(device.code, Some(2), "{device:?}");
}

/// KT-9, PO-6: one program at a time writes the file, and no tool does.
#[test]
fn only_one_program_writes_the_file() {
    let yard = EpisodesYard::new("continue-locked");
    let file = yard.work("out.jsonl");
    let path = file.to_str().unwrap();
    let write =
        json!({"call_id": "w", "name": "write_file", "arguments": {"path": "out.jsonl", "content": "x"}});
    let input = yard.beside("write.jsonl");
    fs::write(&input, json!({"id": "e", "turns": [[write]]}).to_string()).unwrap();
    let done = yard.run(&input, &["--continue", path, "-q", "--approve", "auto"]);
    let line: Value = serde_json::from_str(&read(&file)).unwrap();
    assert_eq!((done.code, &line["results"][0]["ok"]), (Some(1), &json!(false)), "{line}");

    fs::remove_file(&file).unwrap();
    let (told, input) = (yard.hold(), eight(&yard));
    let mut first = yard.start(&input, &["--continue", path, "-q"]);
    told.until("here");
    let second = yard.run(&input, &["--continue", path, "-q"]);
    let why = "another program writes it: wait for its end, or name another file";
    assert_eq!((second.code, second.stderr), (Some(2), format!("toolyard: --continue {path}: {why}\n")));
    yard.open_gate();
    let mut text = String::new();
    first.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((first.wait().unwrap().code(), text.as_str(), read(&file).lines().count()), (Some(0), "", 16));
}
