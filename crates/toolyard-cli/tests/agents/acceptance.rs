//! What the protocol promises, through a real process.

use crate::yard::{Yard, call, is_missing};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink, path::Path};

const FS: &str = "fs = [\"r:data\"]";

/// The error of an answer, and whether its message says so.
fn refused(answer: &Value) -> &str {
    assert_eq!(
        (&answer["op"], &answer["tool_call_id"], &answer["ok"]),
        (&json!("tool_response"), &json!("c"), &json!(false))
    );
    assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()));
    answer["error"].as_str().unwrap()
}

/// AG-1, AG-5, AG-6: granted ⇒ ok with the expected result.
#[test]
fn what_is_granted_is_done() {
    if is_missing() {
        return;
    }
    let echo = Yard::of("agents-echo", "echo", &["Echo"], "").answer();
    assert_eq!(
        echo,
        json!({"op": "tool_response", "tool_call_id": "1", "ok": true, "result": {"text": "hello"}})
    );
    let read = Yard::of("agents-read", &call("Read", &json!({"path": "data/a.txt"})), &["Read"], FS);
    assert_eq!(read.answer()["result"], json!({"content": "old", "size": 3}));
    let args = json!({"path": read.dir.join("data/a.txt"), "content": "née"});
    let write = Yard::of("agents-write", "", &["Write"], "");
    let config = format!(
        "[agents.a]\ncommand = AGENT\ntools = [\"Write\"]\nfs = [\"rw:{}\"]\nenv = {{ CC_RUNNER_BEHAVIOR = {} }}\n",
        read.dir.join("data").display(),
        json!(call("Write", &args))
    );
    let write = Yard::new(write.dir.file_name().unwrap().to_str().unwrap(), &config);
    assert_eq!(write.answer()["result"], json!({"size": 4}));
    assert_eq!(fs::read_to_string(read.dir.join("data/a.txt")).unwrap(), "née");
    let left: Vec<_> = fs::read_dir(read.dir.join("data")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// AG-5: a tool that is not granted ⇒ `permission_denied`; one that does not exist ⇒ `tool_not_found`; both are audited, and
/// nothing has started.
#[test]
fn what_is_not_granted_is_denied() {
    if is_missing() {
        return;
    }
    let args = json!({"text": "x"});
    for (tool, error) in [("Echo", "permission_denied"), ("Nothing", "tool_not_found")] {
        let yard = Yard::of("agents-denied", &call(tool, &args), &["Read"], "");
        let answer = yard.answer();
        assert_eq!(refused(&answer), error);
        // What it may not call is not offered.
        assert!(!answer.to_string().contains("Available: [Agent"), "{answer}");
        let audit = yard.audit();
        assert_eq!(audit.len(), 1, "{audit:?}");
        let line = &audit[0];
        assert_eq!((&line["event"], &line["error"]), (&json!("tool.call.denied"), &json!(error)));
        assert_eq!((&line["tool"], &line["args"], &line["tool_call_id"]), (&json!(tool), &args, &json!("c")));
        assert_eq!(line["agent"], "root/a");
        assert!(line["pid"].is_u64() && line["at"].is_u64());
    }
}

/// AG-5, AG-6: a path that no grant covers ⇒ `fs_denied`, however it is spelt, and whatever leads there.
#[test]
fn a_path_that_is_not_granted_is_denied() {
    if is_missing() {
        return;
    }
    for path in [
        "/etc/passwd",
        "data/../agents.toml",
        "/proc/self/environ",
        "data/link",
        "",
        "dat",
        "data/a.txt/../../agents.toml",
    ] {
        let yard = Yard::of("agents-paths", &call("Read", &json!({"path": path})), &["Read"], FS);
        symlink("/etc/passwd", yard.dir.join("data/link")).unwrap();
        let answer = yard.answer();
        let error = refused(&answer);
        // The empty path is none at all.
        assert_eq!(
            error,
            if path.is_empty() { "permission_denied" } else { "fs_denied" },
            "{path}: {answer}"
        );
        assert_eq!(yard.audit()[0]["event"], "tool.call.denied");
    }
    // To read is not to write, and to write is not to read.
    let write = json!({"path": "data/a.txt", "content": "new"});
    for (tool, args, grant) in
        [("Write", &write, "r"), ("Write", &write, "w"), ("Read", &json!({"path": "data/a.txt"}), "w")]
    {
        let yard = Yard::of(
            "agents-modes",
            &call(tool, args),
            &["Read", "Write"],
            &format!("fs = [\"{grant}:data\"]"),
        );
        assert_eq!(refused(&yard.answer()), "fs_denied", "{tool} with {grant}");
        assert_eq!(fs::read_to_string(yard.dir.join("data/a.txt")).unwrap(), "old");
    }
}

/// AG-6: a link within what is granted leads where it leads; a grant of one file covers that alone.
#[test]
fn links_lead_where_they_lead() {
    if is_missing() {
        return;
    }
    let yard = Yard::of("agents-links", &call("Read", &json!({"path": "data/link"})), &["Read"], FS);
    symlink("a.txt", yard.dir.join("data/link")).unwrap();
    assert_eq!(yard.answer()["result"]["content"], "old");
    for (path, ok) in [("data/a.txt", true), ("data/b.txt", false)] {
        let yard = Yard::of(
            "agents-file",
            &call("Read", &json!({"path": path})),
            &["Read"],
            "fs = [\"r:data/a.txt\"]",
        );
        fs::write(yard.dir.join("data/b.txt"), "other").unwrap();
        assert_eq!(yard.answer()["ok"], ok, "{path}");
    }
}

/// AG-6: what is no file, no text or too large ⇒ `tool_failed`; nothing is waited for.
#[test]
fn what_is_no_text_cannot_be_read() {
    if is_missing() {
        return;
    }
    let check = |name: &str, make: &dyn Fn(&Path), says: &str| {
        let yard =
            Yard::of("agents-texts", &call("Read", &json!({"path": format!("data/{name}")})), &["Read"], FS);
        make(&yard.dir.join("data").join(name));
        let answer = yard.answer();
        assert_eq!(refused(&answer), "tool_failed");
        assert!(answer["message"].as_str().unwrap().contains(says), "{answer}");
    };
    check("binary", &|path| fs::write(path, b"a\xff").unwrap(), "UTF-8");
    check("directory", &|path| fs::create_dir(path).unwrap(), "it is no file");
    check("large", &|path| fs::write(path, vec![b'x'; (4 << 20) + 1]).unwrap(), "more than 4194304 bytes");
    check(
        "pipe",
        &|path| {
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        },
        "it is no file",
    );
    check("missing", &|_| {}, "No such file");
}

/// AG-1: a handler that fails ⇒ `tool_failed`, and the agent lives; arguments that do not fit ⇒ `invalid_args`; all is
/// audited as what it was.
#[test]
fn an_agent_outlives_a_handler_that_fails() {
    if is_missing() {
        return;
    }
    let calls = [
        json!({"op": "tool_call", "tool_call_id": "1", "tool": "Read", "args": {"path": "data/none"}}),
        json!({"op": "tool_call", "tool_call_id": "2", "tool": "Read", "args": {"paths": []}}),
        json!({"op": "tool_call", "tool_call_id": "3", "tool": "Echo", "args": {"text": "on"}}),
        json!({"op": "tool_call", "tool_call_id": "4", "tool": "Echo", "args": {"text": "x"}, "after": ["0"]}),
    ];
    let calls = calls.map(|call| call.to_string()).join("\n");
    let yard = Yard::of("agents-failing", &format!("tool_calls={calls}"), &["Read", "Echo"], FS);
    let mut answers = yard.answer().as_array().unwrap().clone();
    answers.sort_by_key(|answer| answer["tool_call_id"].as_str().unwrap().to_owned());
    let errors: Vec<_> = answers.iter().map(|answer| &answer["error"]).collect();
    assert_eq!(errors, [&json!("tool_failed"), &json!("invalid_args"), &Value::Null, &json!("invalid_args")]);
    let mut audit: Vec<_> =
        yard.audit().iter().map(|line| format!("{} {}", line["tool_call_id"], line["event"])).collect();
    audit.sort();
    let (started, denied) = ("\"tool.call.dispatched\"", "\"tool.call.denied\"");
    let expect = [("1", started), ("2", denied), ("3", started), ("4", denied)];
    assert_eq!(audit, expect.map(|(id, event)| format!("\"{id}\" {event}")));
}

/// AG-7, PO-7: secrets are in no audit, and tools do not write it.
#[test]
fn the_audit_has_no_secrets_and_is_not_written_by_agents() {
    if is_missing() {
        return;
    }
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let yard = Yard::of("agents-secret", &call("Echo", &json!({"text": secret})), &["Echo"], "");
    // The agent has it; the report of its result does not.
    let answer = yard.answer();
    assert!(answer["ok"] == true && !answer.to_string().contains(secret), "{answer}");
    assert!(!fs::read_to_string(yard.dir.join("audit.jsonl")).unwrap().contains(secret));
    let args = json!({"path": "audit.jsonl", "content": ""});
    for file in ["audit.jsonl", "agents.toml", "events.jsonl"] {
        let args = json!({"path": file, "content": args["content"]});
        let yard = Yard::of("agents-guarded", &call("Write", &args), &["Write"], "fs = [\"rw:.\"]");
        assert_eq!(refused(&yard.answer()), "permission_denied", "{file}");
    }
}

/// AG-5, AG-6: hosts are granted as paths are; what this program's own `/proc` says is nobody's.
#[test]
fn hosts_and_secrets_of_the_supervisor_are_not_granted_with_paths() {
    if is_missing() {
        return;
    }
    let fetch = |net: &str| {
        let more = format!(
            "{net}\n[program.fetch]\ndescription = \"Fetches\"\ncommand = [\"/bin/echo\", \"done\"]\nside_effects = \"read\"\n\
             hosts = [\"site\"]\ninput_schema = {{ type = \"object\", properties = {{ site = {{ type = \"string\" }} }} }}\n"
        );
        Yard::of("agents-hosts", &call("fetch", &json!({"site": "a.example"})), &["fetch"], &more).answer()
    };
    assert_eq!(refused(&fetch("")), "permission_denied");
    assert_eq!(fetch("net = [\"a.example\"]")["ok"], true);
    let yard = Yard::of(
        "agents-proc",
        &call("Read", &json!({"path": "/proc/self/environ"})),
        &["Read"],
        "fs = [\"r:/\"]",
    );
    assert_eq!(refused(&yard.answer()), "fs_denied");
}

/// AG-2, AG-4: by a socket on descriptor 3 an agent asks as well, and what it prints is logged.
#[test]
fn an_agent_may_ask_by_descriptor_3() {
    if is_missing() {
        return;
    }
    let yard = Yard::of("agents-fd3", "echo", &["Echo"], "channel = \"fd3\"");
    let text = fs::read_to_string(yard.dir.join("agent.sh")).unwrap();
    fs::write(
        yard.dir.join("agent.sh"),
        format!("echo \"printed by $TOOLYARD_CHANNEL\"\nexec >&3 <&3\n{text}"),
    )
    .unwrap();
    let done = yard.run();
    assert_eq!(done.json()["agents"][0]["result"]["result"], json!({"text": "hello"}), "{done:?}");
    assert!(done.stderr.contains("line=\"printed by fd3\""), "{done:?}");
}

/// AG-1: an id may be used again when its call has been answered, and not before.
#[test]
fn an_id_is_used_again_when_it_was_answered() {
    if is_missing() {
        return;
    }
    let script = r#"
        call() { say "{\"op\":\"tool_call\",\"tool_call_id\":\"same\",\"tool\":\"Echo\",\"args\":{\"text\":\"$1\"}$2}"; }
        call one; hear; first=$heard
        call two; hear; second=$heard
        say '{"op":"turn_end"}'
        printf '%s\n%s\n' "$(call three)" "$(call four)"
        hear; third=$heard; hear
        say "{\"op\":\"bye\",\"result\":[$first,$second,$third,$heard]}"
    "#;
    let all = Yard::scripted("agents-ids", script, &["Echo"], "").answer();
    let all = all.as_array().unwrap();
    let text = |answer: &Value| answer["result"]["text"].as_str().map(str::to_owned);
    assert_eq!([text(&all[0]), text(&all[1])], [Some("one".to_owned()), Some("two".to_owned())]);
    // The third one may have been answered before the fourth was read.
    let last = &all[2..];
    assert!(last.iter().any(|answer| text(answer).as_deref() == Some("three")), "{all:?}");
    let other = last.iter().find(|answer| text(answer).as_deref() != Some("three")).unwrap();
    assert!(other["op"] == "error" || text(other).as_deref() == Some("four"), "{all:?}");
}
