//! A call whose arguments are changed before it is allowed (SM-5).

use super::*;
use rustix::process::{Pid, test_kill_process};
use std::os::unix::fs::PermissionsExt;

/// What the model reads of a call whose arguments were changed.
fn told(done: &Done) -> String {
    done.json()["results"][0]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// SM-5: `e` opens the arguments in the user's editor, in a file that nobody else can read and that is gone afterwards;
/// what was changed is shown again before a yes counts, and the model is told.
#[test]
fn arguments_are_changed_in_the_editor() {
    let dir = dir("ask-editor");
    let temporary = dir.join("tmp");
    fs::create_dir(&temporary).unwrap();
    let script = dir.join("editor");
    let look = "ls -ldU \"$1\" \"$(dirname \"$1\")\" | cut -c1-10 > \"$(dirname \"$0\")/modes\"";
    fs::write(&script, format!("#!/bin/sh\n{look}\nsed -i 's/old.txt/new.txt/' \"$1\"\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let variables = [
        ("EDITOR", "false"), // $VISUAL comes first
        ("VISUAL", script.to_str().unwrap()),
        ("TMPDIR", temporary.to_str().unwrap()),
    ];
    let (calls, events) = ([write("old.txt", "1")], dir.join("events"));
    let more = ["--approve", "ask", "--events", events.to_str().unwrap()];
    let mut asked = Asked::with_variables(dir.clone(), &calls, &more, &variables);
    asked.terminal.question();
    asked.terminal.types("e\n");
    let page = asked.terminal.until("[y]es, with these arguments, [n]o, [e]dit again, [q]uit; ");
    assert!(page.contains("\"path\": \"new.txt\"") && !page.contains("always"), "{page}");
    assert_eq!(asked.reads("new.txt"), None);
    asked.types_until("a\n", "changed arguments hold for this call alone");
    asked.terminal.types("y\n");
    let done = asked.end();
    assert_eq!(codes(&done), ["ok"]);
    let expect = "The arguments of this call were changed by the person who approved it: {\"path\":\"new.txt\",\"content\":\"1\"}";
    assert_eq!(told(&done), expect);
    assert_eq!(done.json()["results"][0]["edited"], json!({"path": "new.txt", "content": "1"}));
    assert_eq!(fs::read_to_string(dir.join("new.txt")).unwrap(), "1");
    assert_eq!(fs::read_to_string(dir.join("old.txt")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(dir.join("modes")).unwrap(), "-rw-------\ndrwx------\n");
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0);
    let events = events.to_str().unwrap();
    let audit = toolyard(&["audit", "--json", events], "").json();
    assert_eq!((&audit["calls"][0]["decision"]["edited"], &audit["faults"]), (&json!(true), &json!([])));
    let text = toolyard(&["audit", events], "").stdout;
    assert!(text.contains(" with other arguments, policy 1: ok"), "{text}");
}

/// SM-5: without an editor, the arguments are typed on one line. What is no JSON is told and may be typed again; what may
/// not run is asked about again, with the reason.
#[test]
fn arguments_are_changed_on_one_line() {
    let mut asked = Asked::start("ask-line", &[write("a", "1"), write("b", "1")]);
    asked.terminal.question();
    let long = format!("{{\"path\": \"{}\", \"content\": \"1\"}}\n", "c".repeat(5000));
    for (line, then) in [
        ("\n", "[y]es, [n]o, [e]dit, [a]lways, never, [q]uit; "),
        (
            "{\"path\": \n",
            "not JSON: EOF while parsing a value at line 2 column 0; type e to type them again",
        ),
        (&long, "the terminal cuts lines of 4096 bytes or more, so nothing is changed"),
        ("{\"path\": \"../c\", \"content\": \"1\"}\n", "[y]es, with these arguments"),
    ] {
        asked.terminal.types("e\n");
        asked.terminal.until("the arguments as JSON, on one line");
        asked.terminal.until("as they are: ");
        asked.types_until(line, then);
    }
    asked.terminal.types("y\n");
    let again = asked.terminal.question();
    let why = "refused    your change may not run: Path '../c' escapes workspace boundary";
    assert!(again.contains("\"path\": \"a\"") && again.contains(why), "{again}");
    asked.terminal.types("e\n");
    asked.terminal.until("as they are: ");
    asked.types_until("{\"path\": \"c\", \"content\": \"2\"}\n", "[y]es, with these arguments");
    asked.terminal.types("y\n");
    asked.terminal.question();
    asked.terminal.types("n\n");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!(codes(&done), ["ok", "user_denied"]);
    assert_eq!(fs::read_to_string(dir.join("c")).unwrap(), "2");
    assert!(!dir.join("a").exists());
}

/// SM-5: an editor that fails, or that has not ended when the question is over, changes nothing.
#[test]
fn an_editor_of_no_use_changes_nothing() {
    let fails = [("EDITOR", "false")];
    let calls = [write("a", "1")];
    let mut asked = Asked::with_variables(dir("ask-no-editor"), &calls, &["--approve", "ask"], &fails);
    asked.terminal.question();
    asked.terminal.types("e\n");
    asked.terminal.until("the editor is of no use: it ended with exit status: 1");
    asked.terminal.until("[y]es, [n]o, [e]dit, [a]lways, never, [q]uit; ");
    asked.terminal.types("y\n");
    assert_eq!(codes(&asked.end()), ["ok"]);

    let dir = dir("ask-slow-editor");
    fs::write(dir.join("toolyard.toml"), "[confirmation]\ntimeout = \"5s\"\n").unwrap();
    let (config, editor, pid) = (dir.join("toolyard.toml"), dir.join("editor"), dir.join("pid"));
    let says_who_it_is =
        "echo $$ > \"$(dirname \"$0\")/new\"; mv \"$(dirname \"$0\")/new\" \"$(dirname \"$0\")/pid\"";
    fs::write(&editor, format!("#!/bin/sh\n{says_who_it_is}\nexec sleep 1000\n")).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    let more = ["--approve", "ask", "--config", config.to_str().unwrap()];
    let never_ends = [("EDITOR", editor.to_str().unwrap())];
    let mut asked = Asked::with_variables(dir, &calls, &more, &never_ends);
    asked.terminal.question();
    asked.terminal.types("e\n");
    asked.terminal.until("not answered in time, so the call does not run");
    let pid: i32 = fs::read_to_string(pid).expect("the editor has started").trim().parse().unwrap();
    // It was waited for before that was said.
    assert!(test_kill_process(Pid::from_raw(pid).unwrap()).is_err(), "the editor goes on");
    assert_eq!(codes(&asked.end()), ["confirmation_timeout"]);
}
