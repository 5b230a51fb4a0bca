//! How MCP servers that cannot be used are reported. The tests of worlds cover servers that work.
#![cfg(unix)]

#[cfg(target_os = "linux")]
use crate::named_pipe::NamedPipe;
use crate::{
    child::{Done, fed, program, toolyard},
    inn::Inn,
    place::dir,
};
use std::{
    fs,
    io::{BufRead, BufReader},
};

const CALL: &str = r#"{"calls":[{"call_id":"a","name":"echo","arguments":{"text":"x"}}]}"#;

/// Runs a command with a server that prints why it cannot start, and exits.
fn with_a_broken_server(name: &str, more: &str, command: &[&str]) -> Done {
    let file = dir(name).join("toolyard.toml");
    let server = "command = \"sh\"\nargs = [\"-c\", \"echo no licence >&2; exit 3\"]";
    fs::write(&file, format!("[mcp.lame]\n{server}\n{more}\n")).unwrap();
    let args: Vec<&str> = command.iter().copied().chain(["--config", file.to_str().unwrap()]).collect();
    toolyard(&args, CALL)
}

const RUN: &[&str] = &["run", "--report", "none"];

#[test]
fn a_server_that_is_required_keeps_the_program_from_its_work() {
    for command in [RUN, &["plan"], &["tools"], &["check"]] {
        let done = with_a_broken_server("required", "", command);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{command:?}");
        // Whether writing to it or reading from it fails first is a matter of chance.
        let (begin, end) = (
            "toolyard: the MCP server 'lame' cannot be used: it closed its ",
            "(exit status: 3; on stderr: no licence)\n",
        );
        assert!(done.stderr.starts_with(begin) && done.stderr.ends_with(end), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1);
    }
}

/// The last line of a crash seldom says why; what is left out can be seen, and the message says how.
#[test]
fn a_server_that_dies_at_start_is_explained_by_the_lines_that_matter() {
    let dir = dir("crash");
    let stderr = "node:internal/loader:1\n  throw err;\n\nError: Cannot find module 'x'\n    at a\n\nNode.js v20.1.0\n";
    fs::write(dir.join("crash.txt"), stderr).unwrap();
    let file = dir.join("toolyard.toml");
    let server =
        "[mcp.lame]\ncommand = \"sh\"\nargs = [\"-c\", \"cat crash.txt >&2; exit 1\"]\ncwd = \".\"\n";
    fs::write(&file, server).unwrap();
    let done = toolyard(&["tools", "--config", file.to_str().unwrap()], "");
    let end = "(exit status: 1; on stderr: Error: Cannot find module 'x' (4 more lines are logged by \
               toolyard_mcp=info)); to see them, set TOOLYARD_LOG=toolyard_mcp=info\n";
    assert!(done.stderr.ends_with(end), "{}", done.stderr);
    let mut all = program(&["tools", "--config", file.to_str().unwrap()]);
    all.env("TOOLYARD_LOG", "toolyard_mcp=info");
    let done = fed(all, "");
    assert!(done.stderr.contains("throw err;") && done.stderr.contains("Node.js v20.1.0"), "{}", done.stderr);
    assert!(!done.stderr.contains("to see them"), "{}", done.stderr);
}

#[test]
fn a_server_that_is_not_required_is_reported_and_left_out() {
    let more = "required = false\n[tools.lame__x]\nside_effects = \"read\"";
    let done = with_a_broken_server("not_required", more, RUN);
    assert_eq!((done.code, done.json()["results"][0]["status"].as_str()), (Some(0), Some("ok")));
    assert!(done.stderr.contains("cannot use an MCP server that is not required"), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    let done = with_a_broken_server("not_required", more, &["tools"]);
    assert!(done.stdout.contains("warning: mcp 'lame' is not available: "), "{}", done.stdout);
}

/// PO-7: a registered secret that a server puts into a description, or into its reason to end, is shown to nobody.
#[test]
fn lists_of_servers_tools_are_without_secrets() {
    let secret = "correct-horse-battery";
    let inn = Inn::open("secretive", "");
    inn.says(&format!("books a room, key {secret}"));
    let lame = format!("command = \"sh\"\nargs = [\"-c\", \"echo no licence for {secret} >&2; exit 3\"]");
    let more = format!("[redaction]\nsecrets = [\"env:INN_KEY\"]\n[mcp.lame]\nrequired = false\n{lame}\n");
    fs::write(inn.path("toolyard.toml"), format!("{more}{}", inn.section())).unwrap();
    for (args, shown) in [
        (&["tools"][..], &["books a room, key [redacted]", "no licence for [redacted]"][..]),
        (&["tools", "--as", "mcp"], &["books a room, key [redacted]"]),
        (&["check"], &["no licence for [redacted]"]),
    ] {
        let config = inn.config();
        let args = [args, &["--config", &config]].concat();
        let mut command = program(&args);
        command.env("INN_KEY", secret);
        let done = fed(command, "");
        assert!(shown.iter().all(|shown| done.stdout.contains(shown)), "{args:?}: {}", done.stdout);
        assert!(!(done.stdout + &done.stderr).contains(secret), "{args:?}");
    }
}

/// PO-1b: the list has what the role sees, with servers as without.
#[test]
fn a_role_is_not_shown_what_is_hidden_from_it() {
    let inn = Inn::open("hides", "");
    let hidden = "[tools.inn__book]\nhidden_from = [\"guest\"]\n";
    fs::write(inn.path("toolyard.toml"), format!("{hidden}{}", inn.section())).unwrap();
    let list = |role: &[&str]| toolyard(&[&["tools", "--config", &inn.config()], role].concat(), "").stdout;
    assert!(list(&[]).contains("inn__book") && list(&[]).contains("inn__ring"));
    let guest = list(&["--role", "guest"]);
    assert!(!guest.contains("inn__book") && guest.contains("inn__ring"), "{guest}");
}

/// A server that detaches a daemon, forked twice, in a session of its own and deaf to SIGTERM. All its processes hold the
/// pipe.
#[cfg(target_os = "linux")]
fn detaching(name: &str) -> (Inn, NamedPipe) {
    let inn = Inn::open(name, "");
    let held = NamedPipe::make(&inn.path("held"));
    let serve = fs::read_to_string(inn.path("inn.sh")).unwrap();
    let detach = "exec 9> held\n(trap '' TERM HUP; setsid sleep 600 &)\necho detached >&9\n";
    fs::write(inn.path("inn.sh"), detach.to_owned() + &serve).unwrap();
    (inn, held)
}

/// SC-8: what a server detached ends with it.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_detaches_leaves_nothing_after_its_end() {
    let (inn, held) = detaching("detaches");
    let done = toolyard(&["tools", "--config", &inn.config()], "");
    assert!(done.stdout.contains("inn__book"), "{done:?}");
    held.end();
}

/// SB-7: what a server detached ends with the program, even if that is killed.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_detaches_leaves_nothing_after_the_program_is_killed() {
    let (inn, held) = detaching("detaches-killed");
    let mut child = program(&["mcp", "--config", &inn.config()]).spawn().unwrap();
    held.until("detached");
    child.kill().unwrap();
    child.wait().unwrap();
    held.end();
}

const BOOK: &str = r#"{"calls":[{"call_id":"a","name":"inn__book","arguments":{}}]}"#;

/// V5: the complete output of a failing tool is in the results.
#[test]
fn the_report_has_the_whole_error_of_a_server() {
    let inn = Inn::open("says_no", "");
    let done = toolyard(&["run", "--report", "none", "--config", &inn.config()], BOOK);
    let result = done.json()["results"][0].clone();
    assert_eq!(result["status"], "error", "{}", done.stderr);
    assert_eq!(result["content"][0]["text"], "no such room\n[audio audio/wav]");
    let error = &result["error"];
    assert_eq!((&error["code"], &error["message"]), (&"execution_error".into(), &"no such room".into()));
    assert_eq!(error["content"].as_array().map(Vec::len), Some(2));
    assert_eq!(error["structured"]["free"][0], "17");
    assert_eq!(error["metadata"]["mcp.content"][0]["part"]["data"], "UklGRg==");
}

/// I15: a server's standard error is logged on request, under the server's name and without secrets.
#[test]
fn what_a_server_mutters_is_logged_on_request() {
    let inn = Inn::open("mutters", "");
    let run = |filter: &str| {
        let mut command = program(&["run", "--report", "none", "--config", &inn.config()]);
        command.env("TOOLYARD_LOG", filter);
        let done = fed(command, BOOK);
        assert_eq!(done.json()["results"][0]["content"][0]["text"], "no such room\n[audio audio/wav]");
        done.stderr
    };
    let line = r#"an MCP server wrote to stderr server="inn" line="all rooms are taken, says postgres://ada:[redacted: url password]@db""#;
    let log = run("toolyard_mcp=info");
    let lines = log.lines().filter(|logged| logged.contains("INFO") && logged.ends_with(line));
    assert_eq!(lines.count(), 1, "{log}");
    let unasked = run("");
    assert!(!unasked.contains("taken"), "{unasked}");
}

/// A prefix may be empty if no name occurs twice. If one does, the program says what to do, and runs once that is done.
#[test]
fn names_without_a_prefix_must_not_clash() {
    let inn = Inn::open("no_prefix", "prefix = \"\"");
    let run = || {
        toolyard(&["run", "--report", "none", "--config", &inn.config()], &BOOK.replace("inn__book", "book"))
    };
    let done = run();
    let expected = "toolyard: the MCP server 'inn' has a tool 'echo', and so does this program: give [mcp.inn] a prefix, or \
                remove 'echo' from [builtin] enable\n";
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(2), "", expected));
    fs::write(inn.path("toolyard.toml"), format!("[builtin]\nenable = []\n{}", inn.section())).unwrap();
    assert_eq!(run().json()["results"][0]["error"]["message"], "no such room");
}

/// The first line on the standard error of a program that is to serve HTTP at this address with this token.
fn said_of_a_token(address: &str, token: Option<&str>) -> String {
    let inn = Inn::open(&format!("token_{}", token.map_or(0, str::len)), "");
    let mut command = program(&["mcp", "--http", address, "--config", &inn.config()]);
    command.env_remove("TOOLYARD_MCP_TOKEN").envs(token.map(|token| ("TOOLYARD_MCP_TOKEN", token)));
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    // A program that serves would print that, and would not end.
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

/// A public address is served only with a token that nobody can guess, and an empty token is not taken for none; the
/// program says so before it serves anybody.
#[test]
fn a_token_that_does_not_guard_is_an_error() {
    let public = "toolyard: --http 0.0.0.0:0: 0.0.0.0:0 is not a loopback address: ";
    let cases = [
        ("0.0.0.0:0", None, format!("{public}a bearer token is required\n")),
        (
            "0.0.0.0:0",
            Some("fifteen letters"),
            format!("{public}the bearer token must have at least 16 characters\n"),
        ),
        (
            "127.0.0.1:0",
            Some(" "),
            "toolyard: TOOLYARD_MCP_TOKEN is empty: set it to the bearer token, or unset it\n".to_owned(),
        ),
    ];
    for (address, token, expected) in cases {
        assert_eq!(said_of_a_token(address, token), expected);
    }
    for (address, token) in [("0.0.0.0:0", "sixteen letters!"), ("127.0.0.1:0", "short")] {
        let said = said_of_a_token(address, Some(token));
        assert!(said.starts_with("toolyard: serving http://"), "{said}");
    }
}

/// The gateway serves what its configuration names: without `[builtin] enable` the tools of servers alone, and nothing
/// without those. `tools --served` and `check` say so.
#[test]
fn built_in_tools_are_served_only_where_they_are_enabled() {
    let inn = Inn::open("served", "");
    let names = |args: &[&str]| {
        let listed =
            toolyard(&[&["tools", "--as", "mcp", "--config", &inn.config()], args].concat(), "").json();
        let names = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let of_inn = ["inn__book", "inn__echo", "inn__ring"];
    assert_eq!(names(&["--served"]), of_inn);
    assert!(names(&[]).contains(&"read_file".to_owned()));
    let says = |what: &str| toolyard(&["check", "--config", &inn.config()], "").stdout.contains(what);
    assert!(says("serves no built-in tools, because [builtin] enable names none"));
    // Settings of a tool that is not served are not in the way.
    let more = "[tools.read_file]\nmax_concurrency = 2\n";
    fs::write(inn.path("toolyard.toml"), format!("{more}{}", inn.section())).unwrap();
    assert_eq!(names(&["--served"]), of_inn);
    fs::write(
        inn.path("toolyard.toml"),
        format!("{more}[builtin]\nenable = [\"read_file\"]\n{}", inn.section()),
    )
    .unwrap();
    assert_eq!(names(&["--served"]), [&of_inn[..], &["read_file"]].concat());
    assert!(!says("serves no built-in tools"));
    let done = toolyard(&["mcp"], "");
    let nothing =
        "toolyard: there is nothing to serve: name servers in [mcp], or built-in tools in [builtin] enable\n";
    assert_eq!((done.code, done.stderr.as_str()), (Some(2), nothing));
}

/// CL-1, PO-3: a read of a trusted server runs unasked, unless the server writes that it reads in an open world; `check`
/// says why, and the configuration may decide otherwise.
#[test]
fn a_read_in_an_open_world_is_asked_about() {
    let inn = Inn::open("open_world", "");
    let script = fs::read_to_string(inn.path("inn.sh")).unwrap();
    let open = script.replace("\"readOnlyHint\":true", "\"readOnlyHint\":true,\"openWorldHint\":true");
    fs::write(inn.path("inn.sh"), open).unwrap();
    let run = || {
        toolyard(&["run", "--report", "none", "--config", &inn.config()], BOOK).json()["results"][0]["error"]
            ["code"]
            .clone()
    };
    assert_eq!(run(), "user_denied");
    let checked = toolyard(&["check", "--config", &inn.config()], "").stdout;
    let row = checked.lines().find(|line| line.starts_with("inn__book")).unwrap();
    let why = "its trusted server declares it read-only, in an open world: approval is as for network";
    assert!(row.contains(" read ") && row.contains(why) && row.contains(" prompt "), "{checked}");
    for allows in [
        "[confirmation]\nper_tool = { inn__book = \"auto\" }\n",
        "[confirmation]\ndefault = { network = \"auto\" }\n",
        "[tools.inn__book]\nside_effects = \"read\"\n",
    ] {
        fs::write(inn.path("toolyard.toml"), format!("{allows}{}", inn.section())).unwrap();
        assert_eq!(run(), "execution_error", "{allows}");
    }
}
