//! The examples of README and the guide, run as they are written.

use crate::{
    checkout::Checkout,
    child::root,
    page::{Block, Page, guide},
    served,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Command, Output, Stdio},
};

/// Commands that are not run here, by page and block: those that install or name what is not there, those that need a feature
/// (`tests/journal` runs them), and those that start a server, which `program/serve.rs` does.
const NOT_RUN: [(&str, &str); 9] = [
    ("docs/guide/agents.md", "toolyard supervise "),
    ("docs/guide/first-steps.md", "cargo add "),
    ("docs/guide/packages.md", "npm install "),
    ("docs/guide/packages.md", "pip install "),
    ("docs/guide/program.md", "cargo install "),
    ("docs/guide/resilience.md", "toolyard journal "),
    ("docs/guide/server.md", "toolyard serve"),
    ("docs/guide/server.md", "toolyard serve "),
    ("docs/guide/server.md", "toolyard serve --config toolyard.toml --journal"),
];

/// How the program in Python begins that `tests/browser/guide.mjs` runs.
const AGENT: &str = "\"\"\"Sends a model's response to `toolyard serve`";

/// How the agent in Python begins that the page about agents runs from its file.
const SUPERVISED: &str = "\"\"\"An agent in twenty lines";

/// The page about the packages, whose examples their own tests run (`.ci/packages`).
const PACKAGES: &str = "docs/guide/packages.md";

fn supervised() -> String {
    fs::read_to_string(root().join("examples/agents/notes.py")).unwrap()
}

/// Files whose doc tests are the Rust of the pages that they include.
const DOC_TESTS: [&str; 2] = ["examples/src/lib.rs", "crates/toolyard-mcp/src/lib.rs"];

/// Runs all examples of a page in one place, in their order.
fn run(path: &str) {
    let page = Page::open(path);
    let checkout = Checkout::new(&format!("texts-{}", path.replace(['/', '.'], "-")));
    let mut said = String::new();
    for Block { tag, code } in page.blocks() {
        let code = checkout.here(&code);
        match tag.as_str() {
            "sh" => said.push_str(&shell(&checkout, &code)),
            "text" => assert_said(&said, &code),
            "toml" => configuration(&checkout, &code),
            "json" => client(&checkout, &code),
            "python" if path == PACKAGES || code.starts_with(AGENT) => {}
            "python" if code.starts_with(SUPERVISED) => assert_eq!(code, supervised()),
            "python" => receiver(&code),
            // `served` runs those of a server.
            _ => {} // see `every_block_is_run_or_says_that_it_is_not`
        }
    }
}

/// Runs the lines in a shell, which must succeed; returns what they print.
fn shell(checkout: &Checkout, lines: &str) -> String {
    let done = checkout.command("sh").args(["-euc", lines]).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{lines}\n{done:?}");
    String::from_utf8([done.stdout, done.stderr].concat()).unwrap()
}

/// What is shown of a call, apart from times, was said: its id, and the two words after it.
fn assert_said(said: &str, shown: &str) {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let said = words(said);
    for line in shown.lines().map(words).filter(|line| line.len() > 3 && line[1].starts_with("call_")) {
        assert!(said.windows(3).any(|three| three == &line[1..4]), "not said: {:?}", &line[1..4]);
    }
}

/// Checks a configuration with the program. It stays, for the client that follows.
fn configuration(checkout: &Checkout, text: &str) {
    let file = checkout.dir.join("toolyard.toml");
    fs::write(&file, text).unwrap();
    let check = ["check", "--config", file.to_str().unwrap()];
    let done = checkout.command("toolyard").args(check).stdin(Stdio::null()).output().unwrap();
    fs::rename(&file, checkout.dir.join("elsewhere/toolyard.toml")).unwrap();
    if text.contains("url = \"https://") {
        return assert_remote(&done);
    }
    assert!(done.status.success(), "{text}\n{done:?}");
    let shown = String::from_utf8(done.stdout).unwrap();
    assert!(!shown.contains("warning:"), "{text}\n{shown}");
}

/// A server over HTTPS is not there to be reached, and a build without HTTP refuses its section for that alone.
fn assert_remote(done: &Output) {
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{done:?}");
    let expect = if cfg!(feature = "mcp-https") { "tracker" } else { "without the feature mcp-http" };
    assert!(said.lines().count() == 1 && said.contains(expect), "{said}");
}

/// Checks the example of Standard Webhooks as a receiver in Python does (HT-5), where there is Python.
fn receiver(code: &str) {
    let checks = r#"
headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
           "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
assert is_genuine(headers, body, secret, within=10**12)
assert not is_genuine(headers, body, secret), "too old"
assert not is_genuine(headers, body + b" ", secret, within=10**12)
"#;
    match Command::new("python3").args(["-c", &format!("{code}{checks}")]).output() {
        Ok(done) => assert!(done.status.success(), "{done:?}"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
    }
}

/// Starts the program as the configuration of an MCP client says, and lists its tools.
fn client(checkout: &Checkout, text: &str) {
    let entry: Value = serde_json::from_str(text).unwrap();
    let server = &entry["mcpServers"]["toolyard"];
    let elsewhere = checkout.dir.join("elsewhere");
    fs::rename(elsewhere.join("toolyard.toml"), checkout.dir.join("toolyard.toml")).unwrap();
    let mut command = checkout.command(server["command"].as_str().unwrap());
    command.args(server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()));
    let mut yard =
        command.current_dir(elsewhere).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = yard.stdin.take().unwrap();
    let asks = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asks}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let mut lines = BufReader::new(yard.stdout.take().unwrap()).lines().map(Result::unwrap);
    let listed = lines.find(|line| line.contains("\"id\":2")).expect("an answer");
    drop(input);
    assert!(listed.contains("\"files__read_file\""), "{listed}");
    assert!(yard.wait().unwrap().success());
}

#[test]
fn the_readme_does_what_it_shows() {
    run("README.md");
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_about_agents_does_what_it_shows() {
    run("docs/guide/agents.md");
}

#[test]
fn the_page_about_approvals_does_what_it_shows() {
    run("docs/guide/approvals.md");
}

#[test]
fn the_page_about_the_library_does_what_it_shows() {
    run("docs/guide/library.md");
}

#[test]
fn the_page_about_mcp_does_what_it_shows() {
    run("docs/guide/mcp.md");
}

#[test]
fn the_page_about_the_program_does_what_it_shows() {
    run("docs/guide/program.md");
}

#[test]
fn the_page_about_the_page_does_what_it_shows() {
    run("docs/guide/page.md");
}

#[test]
fn the_page_about_the_server_does_what_it_shows() {
    run("docs/guide/server.md");
}

#[test]
fn the_page_about_resilience_does_what_it_shows() {
    run("docs/guide/resilience.md");
}

#[test]
fn the_page_about_packages_shows_their_examples() {
    run("docs/guide/packages.md");
    let page = Page::open(PACKAGES);
    let shown: Vec<String> = page.blocks().iter().map(|block| block.code.clone()).collect();
    for example in [
        "python/examples/twenty_lines.py",
        "python/examples/langgraph_agent.py",
        "node/examples/twenty-lines.mjs",
    ] {
        let text = fs::read_to_string(root().join("packages").join(example)).unwrap();
        assert!(shown.contains(&text), "{example} is not shown");
    }
}

#[test]
fn the_first_steps_do_what_they_show() {
    run("docs/guide/first-steps.md");
}

#[test]
fn the_page_about_testing_does_what_it_shows() {
    run("docs/guide/testing.md");
}

/// The tests above run commands, configurations and clients, `served` requests to a server, doc tests run Rust, a browser's test runs Python, and the
/// rest is shown: output and
/// pictures. Each page begins with an example that is run.
#[test]
fn every_block_is_run_or_says_that_it_is_not() {
    let tests = fs::read_to_string(root().join(THIS)).unwrap();
    let doc_tests = DOC_TESTS.map(|path| fs::read_to_string(root().join(path)).unwrap()).concat();
    let mut not_run = 0;
    for page in guide() {
        assert!(tests.contains(&format!("    run(\"{}\");", page.path)), "{} is not run", page.path);
        let included = doc_tests.contains(&format!("../{}\")]", page.path));
        for (at, Block { tag, code }) in page.blocks().iter().enumerate() {
            match tag.as_str() {
                "sh" | "toml" | "json" | "python" => {}
                "sh served" => assert_eq!(page.path, served::PAGE, "{code}"),
                "js" => assert_eq!(page.path, PACKAGES, "{code}"),
                "rust" => assert!(included, "{}: no doc test", page.path),
                "text" => assert!(at > 0 && !code.contains("toolyard "), "{}: output\n{code}", page.path),
                "sh install" => {
                    let mut starts = NOT_RUN.iter().filter(|(path, _)| *path == page.path);
                    let is_named = starts.any(|(_, start)| code.lines().all(|line| line.starts_with(start)));
                    assert!(at > 0 && is_named, "{code}");
                    not_run += 1;
                }
                other => panic!("{}: '{other}' is a block that nothing runs", page.path),
            }
        }
    }
    assert_eq!(not_run, NOT_RUN.len());
}

/// This file.
const THIS: &str = "crates/toolyard-cli/tests/texts/examples.rs";

#[test]
fn the_readme_is_short() {
    let words = Page::open("README.md").prose().split_whitespace().count();
    assert!(words <= 900, "README has {words} words");
}

/// README's second command is the one that `.ci/run` runs.
#[test]
fn the_readme_names_the_command_that_runs_the_tests() {
    let first = &Page::open("README.md").blocks()[0];
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert_eq!(first.tag, "sh");
    for line in first.code.lines() {
        let runs = |ran: &str| ran == line || ran.starts_with(&format!("{line} ||"));
        assert!(ci.lines().any(runs), ".ci/run does not run: {line}");
    }
}
