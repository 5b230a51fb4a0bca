//! The user at the terminal is asked, and the answer counts (PO-3, PO-4).
#![cfg(unix)]

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
                  write_file {\"path\":\"old.txt\"}, whatever its content\r\n  [y]es, [n]o, [e]dit, [a]lways, [q]uit; 5m";
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
        asked.terminal.types(odd);
        asked.terminal.until("y  yes, this call may run");
        asked.terminal.until(" left: ");
    }
    asked.terminal.types(CTRL_D);
    asked.terminal.until("end of input, which counts as no");
    assert_eq!(codes(&asked.end()), ["user_denied"]);
}

/// PO-4: a model cannot draw on the user's terminal, or hide anything from the user.
#[test]
fn hostile_arguments_are_shown_escaped() {
    let path = "a\u{202e}txt.exe";
    let content = "\u{1b}[2J\u{1b}[H\rfine\u{7}\n\u{9b}1A  tool       read_file (read)\n\u{200b}";
    let mut asked = Asked::start("ask-hostile", &[write(path, content)]);
    let page = asked.terminal.question();
    for shown in [
        r#""path": "a\u202etxt.exe""#,
        r#""content": "\u001b[2J\u001b[H\rfine\u0007\n\u009b1A  tool"#,
        "\r\n             +\\u001b[2J\\u001b[H\\u000dfine\\u0007\r\n",
        "\r\n             +\\u009b1A  tool       read_file (read)\r\n",
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
    let odd = |char: char| char.is_control() && !"\r\n".contains(char) || "\u{202e}\u{200b}".contains(char);
    assert!(!page.replace("\r\n", "\n").contains(|char| odd(char) || char == '\r'), "{page:?}");
    asked.terminal.types("n\n");
    asked.end();
}

/// PO-4: what the page leaves out has to be viewed before a yes or an "always" counts, and "always" is not offered.
#[test]
fn a_cut_call_is_viewed_before_it_is_allowed() {
    let hidden = format!("{}; rm -rf ~; {} # end", "x".repeat(700), "y".repeat(700));
    let mut asked = Asked::start("ask-cut", &[write("a", &hidden), write("b", "1")]);
    let page = asked.terminal.question();
    assert!(!page.contains("rm -rf") && page.contains("y # end\""), "{page}");
    assert!(
        !page.contains("always") && page.contains("[v]iew the whole call, [n]o, [e]dit, [q]uit"),
        "{page}"
    );
    for early in ["y\n", "a\n"] {
        asked.terminal.types(early);
        asked.terminal.until("type v to view the whole of it first");
        asked.terminal.until(" left: ");
        assert_eq!(asked.reads("a"), None);
    }
    asked.terminal.types("v\n");
    asked.terminal.until("toolyard: the whole call");
    let whole = asked.terminal.until(" left: ");
    assert!(
        whole.contains("; rm -rf ~; ") && whole.contains("[y]es, [n]o, [e]dit, [a]lways, [q]uit"),
        "{whole}"
    );
    asked.terminal.types("y\n");
    asked.terminal.question();
    asked.terminal.types("n\n");
    assert_eq!(codes(&asked.end()), ["ok", "user_denied"]);
}

/// PO-4: a call that is longer than the screen is viewed page by page, and a view that is left early does not count.
#[test]
fn a_long_call_is_viewed_page_by_page() {
    let many: Vec<String> = (0..150).map(|at| format!("line {at} of the file\n")).collect();
    let mut asked = Asked::start("ask-pages", &[write("a", &many.concat())]);
    let page = asked.terminal.question();
    assert!(
        page.contains("+line 40 of") && !page.contains("+line 75 of") && page.contains("+line 149 of"),
        "{page}"
    );
    asked.terminal.types("v\n");
    asked.terminal.until("for the question: ");
    asked.terminal.types("q\n");
    asked.terminal.until(" left: ");
    asked.terminal.types("y\n");
    asked.terminal.until("type v to view the whole of it first");
    asked.terminal.until(" left: ");
    asked.terminal.types("v\n");
    let mut whole = String::new();
    for at in 1..=3 {
        whole += &asked.terminal.until(&format!("line {} of 196", 58 * at));
        whole += &asked.terminal.until("for the question: ");
        asked.terminal.types("\n");
    }
    whole += &asked.terminal.until(" left: ");
    assert!((0..150).all(|at| whole.contains(&format!("+line {at} of the file\r\n"))), "{whole}");
    asked.terminal.types("y\n");
    assert_eq!(codes(&asked.end()), ["ok"]);
}

/// PO-4: a path that is a link says so and where it leads; if it leads elsewhere when the call is to run, nothing runs.
#[test]
fn a_link_says_where_it_leads_and_may_not_change() {
    use std::os::unix::fs::symlink;
    let dir = dir("ask-link");
    for (to, name) in [("old", "in"), ("old/a\nb", "odd")] {
        symlink(to, dir.join(name)).unwrap();
    }
    fs::create_dir(dir.join("old")).and_then(|()| fs::create_dir(dir.join("new"))).unwrap();
    let calls = [write("in/a", "1"), write("in/b", "2"), write("odd", "3")];
    let events = dir.join("events");
    let happens = NamedPipe::make(&events);
    let more = ["--approve", "ask", "--events", events.to_str().unwrap()];
    let mut asked = Asked::in_dir(dir, &calls, &more);
    let page = asked.terminal.question();
    assert!(page.contains("\r\n  links      \"in/a\" is a link and leads to \"old/a\"\r\n"), "{page}");
    asked.terminal.types("y\n");
    let page = asked.terminal.question();
    assert!(page.contains("leads to \"old/b\"\r\n"), "{page}");
    // The first call writes beside the second question.
    happens.until("\"tool.completed\"");
    fs::remove_file(asked.dir.join("in")).unwrap();
    symlink("new", asked.dir.join("in")).unwrap();
    asked.terminal.types("y\n");
    let page = asked.terminal.question();
    assert!(page.contains("\"odd\" is a link and leads to \"old/a\\nb\"\r\n"), "{page}");
    asked.terminal.types("n\n");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!(codes(&done), ["ok", "permission_denied", "user_denied"]);
    assert!(dir.join("old/a").exists() && !dir.join("new/b").exists() && !dir.join("old/b").exists());
    let message = done.json()["results"][1]["error"]["message"].clone();
    assert_eq!(message, "Path 'in/b' led to 'old/b' when this call was approved and now leads to 'new/b'");
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
    fs::write(&config, "[confirmation]\ntimeout = \"2s\"\n").unwrap();
    let more = ["--approve", "ask", "--config", config.to_str().unwrap()];
    let mut asked = Asked::with("ask-late", &[write("a", "1"), write("b", "1")], &more);
    asked.terminal.question();
    asked.terminal.types("y");
    asked.terminal.until("not answered in time, so the call does not run");
    asked.terminal.question();
    asked.terminal.types("\n");
    asked.terminal.until("y  yes, this call may run");
    let dir = asked.dir.clone();
    let done = asked.end();
    assert_eq!(codes(&done), ["confirmation_timeout", "confirmation_timeout"]);
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

/// What the model reads of a call whose arguments were changed.
fn told(done: &Done) -> String {
    done.json()["results"][0]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// SM-5: `e` opens the arguments in the user's editor, in a file that nobody else can read and that is gone afterwards;
/// what was changed is shown again before a yes counts, and the model is told.
#[test]
fn arguments_are_changed_in_the_editor() {
    use std::os::unix::fs::PermissionsExt;
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
    asked.terminal.types("a\n");
    asked.terminal.until("changed arguments hold for this call alone");
    asked.terminal.until("left: ");
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
    for (line, then) in [
        ("\n", "[y]es, [n]o, [e]dit, [a]lways, [q]uit; "),
        ("{\"path\": \n", "not JSON: EOF while parsing"),
        ("{\"path\": \"../c\", \"content\": \"1\"}\n", "[y]es, with these arguments"),
    ] {
        asked.terminal.types("e\n");
        asked.terminal.until("the arguments as JSON, on one line");
        asked.terminal.until("as they are: ");
        asked.terminal.types(line);
        asked.terminal.until(then);
        asked.terminal.until("left: ");
    }
    asked.terminal.types("y\n");
    let again = asked.terminal.question();
    let why = "refused    your change may not run: Path '../c' escapes workspace boundary";
    assert!(again.contains("\"path\": \"a\"") && again.contains(why), "{again}");
    asked.terminal.types("e\n");
    asked.terminal.until("as they are: ");
    asked.terminal.types("{\"path\": \"c\", \"content\": \"2\"}\n");
    asked.terminal.until("[y]es, with these arguments");
    asked.terminal.until("left: ");
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
    asked.terminal.until("[y]es, [n]o, [e]dit, [a]lways, [q]uit; ");
    asked.terminal.types("y\n");
    assert_eq!(codes(&asked.end()), ["ok"]);

    let dir = dir("ask-slow-editor");
    fs::write(dir.join("toolyard.toml"), "[confirmation]\ntimeout = \"1s\"\n").unwrap();
    let config = dir.join("toolyard.toml");
    let more = ["--approve", "ask", "--config", config.to_str().unwrap()];
    let never_ends = [("EDITOR", "sleep 1000 #")];
    let mut asked = Asked::with_variables(dir, &calls, &more, &never_ends);
    asked.terminal.question();
    asked.terminal.types("e\n");
    asked.terminal.until("not answered in time, so the call does not run");
    assert_eq!(codes(&asked.end()), ["confirmation_timeout"]);
}
