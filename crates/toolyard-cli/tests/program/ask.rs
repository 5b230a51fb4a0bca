//! The user at the terminal is asked, and the answer counts (PO-3, PO-4).
#![cfg(unix)]

mod edits;
mod views;

use crate::{
    child::{Done, toolyard},
    inn::Inn,
    named_pipe::NamedPipe,
    place::dir,
    terminal::{CTRL_C, CTRL_D, Terminal},
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// A run in its own directory.
struct Asked {
    dir: PathBuf,
    terminal: Terminal,
}

impl Asked {
    /// Runs these calls, each a name and its arguments, with `--approve ask`.
    fn start(name: &str, calls: &[(&str, Value)]) -> Self {
        Self::with(name, calls, &["--approve", "ask"])
    }

    fn with(name: &str, calls: &[(&str, Value)], more: &[&str]) -> Self {
        Self::in_dir(dir(name), calls, more)
    }

    fn in_dir(dir: PathBuf, calls: &[(&str, Value)], more: &[&str]) -> Self {
        Self::with_variables(dir, calls, more, &[])
    }

    fn with_variables(
        dir: PathBuf,
        calls: &[(&str, Value)],
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        fs::write(dir.join("old.txt"), "one\ntwo\n").unwrap();
        let workspace = dir.to_str().unwrap().to_owned();
        let call = |(at, (name, arguments)): (usize, &(&str, Value))| json!({"call_id": format!("c{at}"), "name": name, "arguments": arguments});
        let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
        let mut args = vec!["run", "--report", "none", "--workspace", &workspace];
        args.extend(more);
        let input = json!({ "calls": calls }).to_string();
        Self { terminal: Terminal::start_with(&args, &input, variables), dir }
    }

    /// Types an answer that settles nothing, and waits for what is shown of it and for the prompt after that.
    fn types_until(&mut self, keys: &str, shown: &str) -> String {
        self.terminal.types(keys);
        self.terminal.until(shown);
        self.terminal.until(" left: ")
    }

    fn reads(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(file)).ok()
    }

    fn end(self) -> Done {
        self.terminal.end()
    }
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

/// The codes of the results; `ok` if there is an output.
fn codes(done: &Done) -> Vec<String> {
    let json = done.json();
    let results = json["results"].as_array().unwrap();
    results.iter().map(|result| result["error"]["code"].as_str().unwrap_or("ok").to_owned()).collect()
}

/// PO-4: the page shows what would run and what would change; a yes lets it run. The batch comes from standard input.
#[test]
fn a_call_runs_when_it_is_allowed() {
    let mut asked = Asked::start("ask-yes", &[write("old.txt", "one\n2\n")]);
    let page = asked.terminal.question();
    let expect = "\r\n  tool       write_file (write)\r\n  call       c0\r\n  arguments  {\r\n               \"path\": \
                  \"old.txt\",\r\n               \"content\": \"one\\n2\\n\"\r\n             }\r\n  changes    \
                  @@ -1,2 +1,2 @@\r\n              one\r\n             -two\r\n             +2\r\n  always     \
                  write_file {\"path\":\"old.txt\"}, whatever its content\r\n  [y]es, [n]o, [e]dit, [a]lways, never, [q]uit; 5m";
    assert_eq!(page, expect);
    assert_eq!(asked.reads("old.txt").as_deref(), Some("one\ntwo\n"));
    asked.terminal.types("y\n");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!((done.code, codes(&done)), (Some(0), vec!["ok".to_owned()]));
    assert_eq!(fs::read_to_string(dir.join("old.txt")).unwrap(), "one\n2\n");
}

/// PO-4: a no is the call's result, and the next question is asked.
#[test]
fn a_call_does_not_run_when_it_is_denied() {
    let mut asked = Asked::start("ask-no", &[write("a", "1"), write("b", "1")]);
    assert!(asked.terminal.question().contains("call       c0"));
    asked.terminal.types("n\n");
    assert!(asked.terminal.question().contains("call       c1"));
    asked.terminal.types("yes\n");
    asked.terminal.until("user_denied: c0 'write_file': User denied this operation.");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!((done.code, codes(&done)), (Some(1), vec!["user_denied".to_owned(), "ok".to_owned()]));
    assert!(!dir.join("a").exists() && dir.join("b").exists());
}

/// PO-3, PO-4: "always" covers all calls of its pattern and no others.
#[test]
fn always_is_for_a_pattern() {
    let calls = [write("a", "1"), write("b", "1"), write("a", "2"), write("a", "3")];
    let mut asked = Asked::start("ask-always", &calls);
    let page = asked.terminal.question();
    assert!(page.contains("always     write_file {\"path\":\"a\"}, whatever its content"), "{page}");
    asked.terminal.types("a\n");
    assert!(asked.terminal.question().contains("call       c1"));
    asked.terminal.types("n\n");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!(codes(&done), ["ok", "user_denied", "ok", "ok"]);
    assert_eq!(done.stderr.matches("may this call run?").count(), 2, "{}", done.stderr);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "3");
}

/// KT-16, PO-4: "never" covers all calls of its pattern and no others; the model reads the reason with each.
#[test]
fn never_is_for_a_pattern() {
    let calls = [write("a", "1"), write("b", "1"), write("a", "2")];
    let mut asked = Asked::start("ask-never", &calls);
    assert!(asked.terminal.question().contains("call       c0"));
    asked.terminal.types("never, it is kept\n");
    assert!(asked.terminal.question().contains("call       c1"));
    asked.terminal.types("y\n");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!(codes(&done), ["user_denied", "ok", "user_denied"]);
    let results = done.json();
    for place in [0, 2] {
        let message = &results["results"][place]["error"]["message"];
        assert_eq!(message, "User denied this operation. Reason: it is kept");
    }
    assert_eq!(done.stderr.matches("may this call run?").count(), 2, "{}", done.stderr);
    assert!(!dir.join("a").exists() && dir.join("b").exists());
}

/// PO-3: for a tool of an MCP server, "always" leaves the arguments open that the configuration names, and no others.
#[test]
fn always_leaves_open_what_the_configuration_says() {
    let inn = Inn::open("ask-ignores", "");
    let asks = "[confirmation]\nper_tool = { inn__book = \"prompt\" }\n";
    let ignores = "[tools.inn__book]\napproval_ignores = [\"guest\"]\n";
    fs::write(inn.path("toolyard.toml"), format!("{asks}{ignores}{}", inn.section())).unwrap();
    let book = |guest: &str, night: u32| ("inn__book", json!({"guest": guest, "night": night}));
    let calls = [book("ada", 1), book("bob", 1), book("ada", 2), book("eve", 1)];
    let mut asked = Asked::with("ask-ignores-run", &calls, &["--approve", "ask", "--config", &inn.config()]);
    let page = asked.terminal.question();
    let pattern = "always     inn__book {\"night\":1}, whatever its guest\r\n";
    assert!(page.contains("call       c0") && page.contains(pattern), "{page}");
    asked.terminal.types("a\n");
    assert!(asked.terminal.question().contains("call       c2"));
    asked.terminal.types("n\n");
    let done = asked.end();
    // The inn has no room for anybody whose call runs.
    assert_eq!(codes(&done), ["execution_error", "execution_error", "user_denied", "execution_error"]);
    assert_eq!(done.stderr.matches("may this call run?").count(), 2, "{}", done.stderr);
}

/// PO-3: `prompt_once` asks about the first call of a pattern, whatever the answer.
#[test]
fn prompt_once_asks_once() {
    let config = dir("ask-once-config").join("toolyard.toml");
    fs::write(&config, "[confirmation]\nper_tool = { write_file = \"prompt_once\" }\n").unwrap();
    let more = ["--approve", "ask", "--config", config.to_str().unwrap()];
    let mut asked = Asked::with("ask-once", &[write("a", "1"), write("a", "2"), write("b", "1")], &more);
    asked.terminal.question();
    asked.terminal.types("n\n");
    assert!(asked.terminal.question().contains("call       c2"));
    asked.terminal.types("y\n");
    assert_eq!(codes(&asked.end()), ["user_denied", "user_denied", "ok"]);
}

/// PO-3: "always" covers all turns of a session and no other session; the page shows the name of a named session.
#[test]
fn always_is_for_a_session() {
    let dir = dir("ask-sessions");
    let call = json!([{"call_id": "c", "name": "write_file", "arguments": {"path": "a", "content": "1"}}]);
    let episode = |id: &str| json!({"id": id, "turns": [call, call]});
    let args = ["run", "--report", "none", "--approve", "ask", "--workspace", dir.to_str().unwrap()];
    let mut terminal = Terminal::start(&args, &format!("{}\n{}\n", episode("one"), episode("two")));
    for id in ["one", "two"] {
        assert!(terminal.question().contains(&format!("  session    {id}\r\n")));
        terminal.types("a\n");
    }
    let done = terminal.end();
    let ok = |line: &Value| line["results"][0]["ok"] == true;
    assert_eq!((done.lines().len(), done.lines().iter().all(ok)), (4, true));
    assert_eq!(done.stderr.matches("may this call run?").count(), 2, "{}", done.stderr);
}

/// PO-4, SC-8: an interrupt withdraws the question, and no call runs that was not allowed.
#[test]
fn an_interrupt_at_a_question_stops_the_run() {
    let mut asked = Asked::start("ask-interrupt", &[write("a", "1"), write("b", "1")]);
    asked.terminal.question();
    asked.terminal.types(CTRL_C);
    asked.terminal.until("the question is withdrawn: its call was cancelled or already decided");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!((done.code, codes(&done)), (Some(130), vec!["shutting_down".to_owned(); 2]));
    assert!(!dir.join("a").exists() && !dir.join("b").exists());
    assert_eq!(done.stderr.matches("may this call run?").count(), 1, "{}", done.stderr);
}

/// PO-4, SC-8: quitting stops the run as an interrupt does; what is finished is printed.
#[test]
fn quitting_keeps_what_is_finished() {
    let calls =
        [("echo", json!({"text": "x"})), write("a", "1"), write("b", "1"), ("echo", json!({"text": "y"}))];
    let mut asked = Asked::start("ask-quit", &calls);
    asked.terminal.question();
    asked.terminal.types("q\n");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!(done.code, Some(130));
    assert_eq!(codes(&done), ["ok", "shutting_down", "shutting_down", "shutting_down"]);
    assert!(!dir.join("a").exists() && !dir.join("b").exists());
    assert_eq!(done.stderr.matches("may this call run?").count(), 1, "{}", done.stderr);
}

/// PO-4: any other input is explained and asked about again; the end of the input is a no.
#[test]
fn only_an_answer_is_an_answer() {
    let mut asked = Asked::start("ask-odd", &[write("a", "1")]);
    asked.terminal.question();
    for odd in ["\n", "ok\n", "yy\n"] {
        asked.types_until(odd, "y  yes, this call may run");
    }
    asked.terminal.types(CTRL_D);
    asked.terminal.until("end of input, which counts as no");
    assert_eq!(codes(&asked.end()), ["user_denied"]);
}

/// PO-4: questions appear one after another, each after the previous answer. Input typed earlier is not an answer to
/// the next question.
#[test]
fn questions_are_shown_one_after_another() {
    let mut asked = Asked::start("ask-two", &[write("a", "1"), write("b", "1")]);
    let first = asked.terminal.question();
    assert!(first.contains("call       c0") && !first.contains("c1"));
    // Typed ahead: the second line arrives before the second question.
    asked.terminal.types("y\ny\n");
    assert!(asked.terminal.question().contains("call       c1"));
    asked.terminal.types("n\n");
    assert_eq!(codes(&asked.end()), ["ok", "user_denied"]);
}

/// PO-4: an expired question disappears, and a half-typed answer to it does not count for the next.
#[test]
fn a_late_answer_is_none_to_the_next_question() {
    let config = dir("ask-late-config").join("toolyard.toml");
    fs::write(&config, "[confirmation]\ntimeout = \"5s\"\n").unwrap();
    let more = ["--approve", "ask", "--config", config.to_str().unwrap()];
    let mut asked = Asked::with("ask-late", &[write("a", "1"), write("b", "1")], &more);
    asked.terminal.question();
    asked.terminal.types("y");
    asked.terminal.until("not answered in time, so the call does not run");
    asked.terminal.question();
    asked.types_until("\n", "y  yes, this call may run");
    asked.terminal.types("n\n");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!(codes(&done), ["confirmation_timeout", "user_denied"]);
    assert!(!dir.join("a").exists() && !dir.join("b").exists());
}

/// PO-3: without `--approve`, the user is asked if there is a terminal; otherwise nobody is.
#[test]
fn asking_is_the_default_on_a_terminal() {
    let mut asked = Asked::with("ask-default", &[write("a", "1")], &[]);
    asked.terminal.question();
    asked.terminal.types("y\n");
    assert_eq!(codes(&asked.end()), ["ok"]);
    let asked = Asked::with("ask-not", &[write("a", "1")], &["--approve", "deny"]);
    let done = asked.end();
    assert_eq!(codes(&done), ["user_denied"]);
    assert!(!done.stderr.contains("may this call run?"));
}

/// PO-4: `--approve ask` asks on the terminal wherever standard error goes; the default asks only if it is one.
#[test]
fn the_terminal_is_asked_on_wherever_standard_error_goes() {
    let call = json!({"call_id": "c", "name": "write_file", "arguments": {"path": "a", "content": "1"}});
    let batch = json!({ "calls": [call] }).to_string();
    let dir = dir("ask-mute");
    let file = dir.join("batch.json");
    fs::write(&file, batch).unwrap();
    let args =
        ["run", "-q", file.to_str().unwrap(), "--workspace", dir.to_str().unwrap(), "--approve", "ask"];
    let mut terminal = Terminal::start_mute(&args);
    terminal.question();
    terminal.types("y\n");
    assert_eq!(codes(&terminal.end()), ["ok"]);
    let done = Terminal::start_mute(&args[..5]).end();
    assert_eq!((codes(&done), done.stderr), (vec!["user_denied".to_owned()], String::new()));
}

/// PO-4: a plan runs nothing, so nobody is asked: it shows what happens if every call is allowed.
#[test]
fn a_plan_with_ask_is_that_of_what_is_allowed() {
    let batch =
        json!({"calls": [{"call_id": "c", "name": "write_file", "arguments": {"path": "a", "content": ""}}]});
    let done = toolyard(&["plan", "--json", "--approve", "ask"], &batch.to_string());
    assert_eq!((done.code, &done.lines()[0]["calls"][0]["approval"]), (Some(0), &json!("approved")));
}
