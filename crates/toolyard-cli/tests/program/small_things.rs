//! KT-16: small things that people run into.

use crate::{
    child::{Done, toolyard},
    place::dir,
    workspace::workspace,
};
use serde_json::{Value, json};
use std::fs;

/// KT-16: a command, an option or a value that is mistyped is answered with the nearest one, in one line.
#[test]
fn a_mistyped_word_is_answered_with_the_nearest() {
    for (args, hint) in [
        (&["rnu", "x.json"][..], "'run'"),
        (&["mcp", "fecth"], "'fetch'"),
        (&["run", "x.json", "--aprove", "auto"], "'--approve'"),
        (&["run", "x.json", "--approve", "atuo"], "'auto'"),
        (&["schema", "confg"], "'config'"),
    ] {
        let done = toolyard(args, "");
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(done.stderr.contains("similar") && done.stderr.contains(hint), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}

/// KT-16: `--exit-zero` makes failed calls no failure of the program, and changes nothing else.
#[test]
fn failed_calls_may_leave_the_exit_code_zero() {
    let unknown = json!({"calls": [{"call_id": "a", "name": "nothing", "arguments": {}}]}).to_string();
    let run = |more: &[&str], input: &str| toolyard(&[&["run", "--report", "json"], more].concat(), input);
    let (plain, zero) = (run(&[], &unknown), run(&["--exit-zero"], &unknown));
    assert_eq!((plain.code, zero.code), (Some(1), Some(0)));
    assert_eq!(plain.stdout, zero.stdout);
    let report: Value = serde_json::from_str(&zero.stderr).unwrap();
    assert_eq!((&report["failed"], &report["exit_code"]), (&json!(1), &json!(0)));
    // What the program itself could not do.
    assert_eq!(run(&["--exit-zero"], "{").code, Some(3));
    assert_eq!(run(&["--exit-zero", "--config", "no/such.toml"], &unknown).code, Some(2));
    let episode =
        json!({"id": "e", "turns": [[{"call_id": "a", "name": "nothing", "arguments": {}}]]}).to_string();
    let lines = format!("{episode}\nnot an episode\n");
    assert_eq!(run(&["--exit-zero", "--from", "episodes"], &lines).code, Some(3));
    // Failures that an earlier run has kept.
    let kept = dir("exit-zero").join("results.jsonl");
    let kept = ["--from", "episodes", "--continue", kept.to_str().unwrap()];
    assert_eq!(run(&kept, &episode).code, Some(1));
    assert_eq!(run(&kept, &episode).code, Some(1));
    assert_eq!(run(&[&kept[..], &["--exit-zero"]].concat(), &episode).code, Some(0));
}

fn check(name: &str, config: &str) -> Done {
    let file = dir(name).join("toolyard.toml");
    fs::write(&file, config).unwrap();
    toolyard(&["check", "--json", "--config", file.to_str().unwrap()], "")
}

/// KT-16: `check --json` says what the text says, and all errors of a configuration that is invalid.
#[test]
fn check_speaks_json() {
    let config = "[session]\nmax_in_flight = 3\n[tools.patch_file]\nside_effects = \"read\"\n\
                  [tools.write_file]\nkey = \"derive\"\n";
    let done = check("check-json", config);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let found = done.json();
    assert_eq!((&found["valid"], &found["settings"]["max_in_flight"]), (&json!(true), &json!("3")));
    let tool =
        |name: &str| found["tools"].as_array().unwrap().iter().find(|tool| tool["tool"] == name).unwrap();
    let write = tool("write_file");
    assert_eq!([&write["class"], &write["policy"], &write["sandbox"]], ["serial", "allow", "host"]);
    assert_eq!(
        [&write["approval"], &write["same_key"], &write["may_call"]],
        ["prompt", "join, derived", "-"]
    );
    assert_eq!(tool("patch_file")["repeatable"], "yes");
    let warning = "tool 'patch_file': its author declares side effects write, the configuration sets read";
    assert_eq!(found["warnings"], json!([warning]));
    assert_eq!(found["notes"][0], "max_in_flight 3 is less than the width of the widest pool, 20");

    let done = check("check-json-invalid", "[pools]\nread = 0\n[nothing]\n");
    let found = done.json();
    assert_eq!((done.code, done.stderr.as_str(), &found["valid"]), (Some(2), "", &json!(false)));
    let lines: Vec<_> =
        found["errors"].as_array().unwrap().iter().map(|error| error["line"].as_u64()).collect();
    assert_eq!(lines, [Some(2), Some(3)]);
    assert!(found["errors"][1]["what"].as_str().unwrap().starts_with("unknown key 'nothing'"), "{found}");
}

/// KT-16: names that differ in a `-` alone are two names, of tools and of servers.
#[test]
fn names_that_look_alike_are_two() {
    let tool = |name: &str| format!("[mock.{name}]\ndescription = \"A tool\"\n");
    let server = |name: &str| format!("[mcp.{name}]\ncommand = \"./nothing\"\nrequired = false\n");
    let config = [tool("a-b"), tool("a_b"), server("c-d"), server("c_d")].concat();
    let done = check("check-json-alike", &config);
    assert_eq!(done.code, Some(0), "{done:?}");
    let found = done.json();
    let names: Vec<_> = found["tools"].as_array().unwrap().iter().map(|tool| &tool["tool"]).collect();
    assert!(names.contains(&&json!("a-b")) && names.contains(&&json!("a_b")), "{names:?}");
    for name in ["mcp_c-d", "mcp_c_d"] {
        let state = found["settings"][name].as_str().unwrap_or_else(|| panic!("{name}: {found}"));
        assert!(state.starts_with("not available: "), "{state}");
    }
}

/// KT-16: what keeps a configuration from being used is one JSON document too, whatever it is.
#[test]
fn check_speaks_json_of_all_that_is_wrong() {
    let place = dir("check-json-wrong");
    let file = |name: &str, text: &str| {
        let file = place.join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let server = file("server.toml", "[mcp.broken]\ncommand = \"./nothing\"\n");
    let empty = file("empty.toml", "");
    let no_place = place.join("nowhere");
    for (args, expect) in [
        (vec!["--config", &server], "broken"),
        (vec!["--config", &empty, "--workspace", no_place.to_str().unwrap()], "nowhere"),
        (vec!["--config", no_place.to_str().unwrap()], "nowhere"),
    ] {
        let text = toolyard(&[&["check"], &args[..]].concat(), "");
        assert_eq!((text.code, text.stdout.as_str()), (Some(2), ""), "{text:?}");
        let done = toolyard(&[&["check", "--json"], &args[..]].concat(), "");
        assert_eq!(done.code, Some(2), "{done:?}");
        let found = done.json();
        assert_eq!(found["valid"], json!(false), "{found}");
        let [error] = found["errors"].as_array().unwrap().as_slice() else { panic!("one error: {found}") };
        assert!(error.to_string().contains(expect), "{found}");
        assert!(text.stderr.contains(error["what"].as_str().unwrap()), "{found}: {text:?}");
    }
}

/// KT-16: with `key = "derive"`, an equal call of a session does not run again; a tool that only reads cannot have it.
#[test]
fn an_equal_call_does_not_run_again_where_keys_are_derived() {
    let place = workspace("derived-key");
    let config = place.join("../derived-key.toml");
    fs::write(&config, "[tools.write_file]\nkey = \"derive\"\n").unwrap();
    let write = |id: &str, text: &str| json!({"call_id": id, "name": "write_file", "arguments": {"path": "a.txt", "content": text}});
    let batch = json!({"calls": [write("a", "1"), write("b", "2"), write("c", "1")]}).to_string();
    let args = ["run", "--report", "json", "--approve", "auto", "--workspace", place.to_str().unwrap()];
    let args = [&args[..], &["--config", config.to_str().unwrap()]].concat();
    let done = toolyard(&args, &batch);
    assert_eq!(done.code, Some(0), "{done:?}");
    let report: Value = serde_json::from_str(&done.stderr).unwrap();
    let dedupe: Vec<_> = report["timeline"].as_array().unwrap().iter().map(|call| &call["dedupe"]).collect();
    assert_eq!(dedupe, ["fresh", "fresh", "replayed"]);
    let results = &done.json()["results"];
    assert_eq!(results[0]["output"], results[2]["output"]);
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "2");

    fs::write(&config, "[tools.read_file]\nkey = \"derive\"\n").unwrap();
    let done = toolyard(&args, &batch);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("line 2: [tools.\"read_file\"] key = derive is for tools that change something"),
        "{}",
        done.stderr
    );
}

/// JR-14: a program that was built without journals says how to get one that has them, and still describes the commands.
#[cfg(not(feature = "journal"))]
#[test]
fn a_program_without_journals_says_so() {
    let done = toolyard(&["journal", "ls", "agent.journal"], "");
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
    assert!(done.stderr.contains("build it with the feature 'journal'"), "{}", done.stderr);
    let help = toolyard(&["journal", "export", "--help"], "");
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("--anchor"), "{}", help.stdout);
}
