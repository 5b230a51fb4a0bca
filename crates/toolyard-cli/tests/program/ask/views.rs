//! What is seen of a call before it is allowed (PO-4).

use super::*;

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
        asked.types_until(early, "type v to view the whole of it first");
        assert_eq!(asked.reads("a"), None);
    }
    let whole = asked.types_until("v\n", "toolyard: the whole call");
    assert!(
        whole.contains("; rm -rf ~; ") && whole.contains("[y]es, [n]o, [e]dit, [a]lways, never, [q]uit"),
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
    asked.types_until("y\n", "type v to view the whole of it first");
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
