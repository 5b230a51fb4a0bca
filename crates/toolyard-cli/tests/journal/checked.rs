//! `check --journal`: what is open, and whether the tools of that are as they were (JR-5, JR-8).

use crate::{
    child::{Done, fed, program},
    yard::{CONFIG, Yard, response},
};
use std::fs;

fn check(yard: &Yard, config: &str, args: &[&str]) -> Done {
    fs::write(yard.file("toolyard.toml"), config).unwrap();
    let mut check = program(&["check"]);
    check.arg("--config").arg(yard.file("toolyard.toml")).arg("--workspace").arg(yard.file("work"));
    check.arg("--journal").arg(yard.file("agent.journal")).args(args);
    fed(check, "")
}

/// For each open call its id, its state and how its tool has changed.
fn open_calls(done: &Done) -> Vec<[String; 3]> {
    let calls = done.json()["open_calls"].as_array().unwrap().clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
    calls.iter().map(|call| [text(&call["call_id"]), text(&call["state"]), text(&call["change"])]).collect()
}

/// JR-5, JR-8: each open call is listed with what has become of its tool, and the exit code says whether any has changed.
#[test]
fn open_calls_are_listed_with_what_became_of_their_tools() {
    let yard = Yard::new();
    yard.killed(&response(&["a", "b"]));
    let listed = |done: &Done| {
        let all = open_calls(done);
        all.iter()
            .map(|call| call.each_ref().map(String::as_str))
            .map(|[id, state, change]| format!("{id} {state} {change}"))
            .collect::<Vec<_>>()
    };
    let same = check(&yard, CONFIG, &["--json"]);
    assert_eq!((same.code, listed(&same)), (Some(0), vec!["a attempted -".into(), "b not_started -".into()]));

    let changed = CONFIG.replace("line=$(cat)", "line=$(cat )");
    let changed = check(&yard, &changed, &["--json"]);
    let expect = vec!["a attempted version".into(), "b not_started -".into()];
    assert_eq!((changed.code, listed(&changed)), (Some(1), expect), "{changed:?}");

    let schema = CONFIG.to_owned()
        + r#"
[program.note.input_schema]
type = "object"
required = ["text"]
properties = { text = { type = "integer" } }
"#;
    let schema = check(&yard, &schema.replace("[policy.rules.note]\nsandbox = \"host\"\n", ""), &["--json"]);
    assert_eq!(schema.code, Some(1), "{schema:?}");
    assert_eq!(open_calls(&schema)[1], ["b", "not_started", "schema"].map(str::to_owned));

    let gone = CONFIG.replace("program.note", "program.notes").replace("rules.note", "rules.notes");
    let gone_json = check(&yard, &gone, &["--json"]);
    let expect = vec!["a attempted gone".into(), "b not_started gone".into()];
    assert_eq!((gone_json.code, listed(&gone_json)), (Some(1), expect));
    let text = check(&yard, &gone, &[]);
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains(": 2, of which the tool has changed: 2\n"), "{text:?}");
    assert!(text.stdout.contains("gone: the call will end as interrupted"), "{text:?}");

    fs::write(yard.file("toolyard.toml"), CONFIG).unwrap();
    yard.done(&["--resume"], "");
    let ended = check(&yard, CONFIG, &[]);
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.ends_with(": 0, of which the tool has changed: 0\n"), "{ended:?}");
}

/// What is no journal is said so, and none is made.
#[test]
fn what_is_no_journal_is_an_error() {
    let yard = Yard::new();
    let none = check(&yard, CONFIG, &["--json"]);
    assert_eq!((none.code, &none.json()["valid"]), (Some(3), &false.into()), "{none:?}");
    assert!(!yard.file("agent.journal").exists());
}
