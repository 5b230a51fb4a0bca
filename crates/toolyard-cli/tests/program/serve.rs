//! `toolyard serve` and `toolyard token new`, as a script uses them.
#![cfg(unix)]

mod ends;
mod reload;
mod stdio;
mod warns;

use crate::{
    child::{fed, program, root, toolyard},
    place::dir,
    shared::served::{Served, Two, event},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::Command,
};

const READ: &str = r#"{"calls":[{"call_id":"1","name":"read_file","arguments":{"path":"notes.md"}}]}"#;

/// HT-6: without a configuration there is a link and a token, by which calls run; an interrupt ends it.
#[test]
fn a_server_prints_its_token_and_runs_calls() {
    let place = dir("serve");
    fs::write(place.join("notes.md"), "milk").unwrap();
    let events = place.join("log.jsonl");
    let served = Served::start(&place, &["--events", events.to_str().unwrap()]);
    assert!(served.told["link"].as_str().unwrap().contains("/#code="));
    let token = served.told["token"].as_str().unwrap().to_owned();
    assert_eq!(served.post("/sessions", None, &json!({})).0, 401);
    assert_eq!(served.post("/sessions", Some(&token), &json!({"id": "a"})).0, 201);
    let batch: Value = serde_json::from_str(READ).unwrap();
    let (status, turn) = served.post("/sessions/a/turns?wait=60", Some(&token), &batch);
    assert_eq!(
        (status, &turn["results"]["results"][0]["content"][0]["text"]),
        (200, &json!("milk")),
        "{turn}"
    );
    assert_eq!(served.end(), Some(130));
    let audit = toolyard(&["audit", events.to_str().unwrap()], "");
    assert_eq!(audit.code, Some(0), "{}", audit.stdout);
}

/// HT-6, HT-7: a configured token is admitted, within its bounds; then there is no page.
#[test]
fn a_configured_token_is_admitted() {
    let place = dir("serve-configured");
    let made = toolyard(&["token", "new", "ci", "--scope", "call", "--json"], "").json();
    let token = format!(
        "[server.tokens.ci]\nsha256 = \"{}\"\nscopes = [\"call\"]\nroles = [\"builder\"]\n",
        made["sha256"].as_str().unwrap()
    );
    fs::write(place.join("toolyard.toml"), token).unwrap();
    let served = Served::start(&place, &[]);
    assert_eq!((&served.told["link"], &served.told["token"]), (&Value::Null, &Value::Null));
    let token = made["token"].as_str().unwrap();
    assert_eq!(served.post("/sessions", Some(token), &json!({"role": "builder"})).0, 201);
    assert_eq!(served.post("/sessions", Some(token), &json!({"role": "admin"})).0, 422);
    assert_eq!(served.end(), Some(130));
}

/// HT-6: a configured token that would approve its own calls, and one without a hash, are errors with their lines.
#[test]
fn a_bad_token_is_an_error() {
    let place = dir("serve-bad");
    let file = place.join("toolyard.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        let done = toolyard(&["check", "--config", file.to_str().unwrap()], "");
        assert_eq!(done.code, Some(2), "{text}");
        done.stderr
    };
    let both =
        format!("[server.tokens.a]\nsha256 = \"{}\"\nscopes = [\"call\", \"approve\"]\n", "0".repeat(64));
    assert!(check(&both).contains("self_approve"), "{both}");
    assert!(check("[server.tokens.a]\nscopes = [\"call\"]\n").contains("toolyard token new a"));
    assert!(check("[server.tokens.a]\nsha256 = \"x\"\nscopes = [\"all\"]\n").contains("'all' is no scope"));
}

/// PO-3, PO-4: a write is asked about over the stream, and denied over HTTP; the model reads why, and nothing is written.
#[test]
fn a_write_is_denied_over_http() {
    let (place, two) = (dir("serve-denied"), Two::new());
    let served = two.serve(&place, "");
    let turn = two.turn(&served, "write_file", &json!({"path": "new.md", "content": "x"}));
    let no = json!({"decision": "deny", "reason": "not on a Friday"});
    let (status, taken) = two.answer(&served, no.clone());
    assert_eq!((status, &taken["who"]), (200, &json!("ada")), "{taken}");
    let late = two.answer(&served, no);
    assert_eq!((late.0, &late.1["code"]), (409, &json!("already_resolved")));
    let outcome = two.outcome(&served, turn);
    assert_eq!(outcome["error"]["code"], "user_denied", "{outcome}");
    assert!(outcome.to_string().contains("not on a Friday"), "{outcome}");
    assert!(!place.join("new.md").exists());
    assert_eq!(served.end(), Some(130));
}

/// PO-3: where nobody answers within the time for it, the call is refused for that.
#[test]
fn a_question_that_nobody_answers_runs_out() {
    let (place, two) = (dir("serve-silent"), Two::new());
    let served = two.serve(&place, "[confirmation]\ntimeout = \"50ms\"");
    let turn = two.turn(&served, "write_file", &json!({"path": "new.md", "content": "x"}));
    let outcome = two.outcome(&served, turn);
    assert_eq!(outcome["error"]["code"], "confirmation_timeout", "{outcome}");
    let late = two.answer(&served, json!({"decision": "allow"}));
    assert_eq!((late.0, &late.1["code"]), (410, &json!("expired")), "{late:?}");
    assert!(!place.join("new.md").exists());
    assert_eq!(served.end(), Some(130));
}

/// SC-4, SC-5: a command that is cancelled is asked to end, and killed if it does not; what it had printed is in its
/// result and in the event of its end.
#[test]
fn a_command_is_cancelled_over_http() {
    let (place, two) = (dir("serve-cancelled"), Two::new());
    let pipe = place.join("up");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let served = two.serve(&place, "[builtin]\nenable = [\"shell\"]");
    // The loop is not ended by the signal, so that only the second one ends it.
    let command = "trap 'echo asked to end' TERM; echo begun; echo up > up; while :; do sleep 0.1; done";
    let turn = two.turn(&served, "shell", &json!({ "command": command }));
    assert_eq!(two.answer(&served, json!({"decision": "allow"})).0, 200);
    assert_eq!(fs::read_to_string(&pipe).unwrap(), "up\n");
    let cancel = format!("/sessions/a/turns/{turn}/cancel");
    assert_eq!(served.post(&cancel, Some(&two.agent), &Value::Null).0, 202);
    let outcome = two.outcome(&served, turn);
    assert_eq!(outcome["error"]["code"], "cancelled", "{outcome}");
    let told = event(&served, &two.ada, "tool.failed");
    for text in [outcome.to_string(), told.to_string()] {
        assert!(text.contains("begun") && text.contains("asked to end"), "{text}");
    }
    assert_eq!(served.end(), Some(130));
}

/// HT-5: whoever is configured is told of a question by a signed POST; neither the address nor the secret is printed.
#[test]
fn a_question_is_told_of_elsewhere() {
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let place = dir("serve-notify");
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a-secret-path", receiver.local_addr().unwrap());
    let made =
        toolyard(&["token", "new", "ci", "--scope", "call", "--scope", "approve", "--json"], "").json();
    let settings = format!(
        "[server.tokens.ci]\nsha256 = {}\nscopes = [\"call\", \"approve\"]\nself_approve = true\n\
         [server.notify]\nurl = \"$HOOK\"\nsecret = \"$HOOK_SECRET\"\nallow_private = true\n\
         link = \"https://ui.example/{{request_id}}\"\n",
        made["sha256"]
    );
    fs::write(place.join("toolyard.toml"), settings).unwrap();
    let variables = [("HOOK", url.as_str()), ("HOOK_SECRET", SECRET)];
    let file = place.join("toolyard.toml");
    let mut check = program(&["check", "--config", file.to_str().unwrap()]);
    check.envs(variables);
    let checked = fed(check, "");
    let said = checked.stdout + &checked.stderr;
    assert_eq!(checked.code, Some(0), "{said}");
    assert!(!said.contains("a-secret-path") && !said.contains("MfKQ9r8GKYq"), "{said}");
    let served = Served::with(&place, &[], &variables);
    let token = made["token"].as_str();
    assert_eq!(served.post("/sessions", token, &json!({"id": "a"})).0, 201);
    let write = json!({"name": "write_file", "arguments": {"path": "notes.md", "content": "milk"}});
    assert_eq!(served.post("/sessions/a/turns", token, &json!({"calls": [write]})).0, 202);

    let (stream, _) = receiver.accept().unwrap();
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "POST /a-secret-path HTTP/1.1");
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert!(head.iter().any(|line| line.starts_with("webhook-signature: v1,")), "{head:?}");
    (&stream).write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    assert_eq!(served.end(), Some(130));
}

/// The certificate and the key that tests of HTTPS have.
fn tls_file(name: &str) -> String {
    let file = root().join("crates/toolyard-egress/tests/egress").join(name);
    file.to_str().unwrap().to_owned()
}

/// HT-10: with a certificate and its key the address and the link are encrypted ones, and plain HTTP is not answered.
#[cfg(feature = "https")]
#[test]
fn it_serves_over_tls() {
    let place = dir("serve-tls");
    let (certificate, key) = (tls_file("localhost.pem"), tls_file("localhost.key"));
    let served = Served::start(&place, &["--tls-cert", &certificate, "--tls-key", &key]);
    let address = served.told["address"].as_str().unwrap().strip_prefix("https://").unwrap();
    assert!(served.told["link"].as_str().unwrap().starts_with(&format!("https://{address}/#code=")));
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer); // it may be reset as well
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    assert_eq!(served.end(), Some(130));
}

/// HT-10: a certificate without its key, and files that are none, are errors that say which.
#[test]
fn a_bad_certificate_is_an_error() {
    let refused = |options: &[&str]| {
        let done = toolyard(&[&["serve", "--http", "127.0.0.1:0"], options].concat(), "");
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        done.stderr
    };
    let (certificate, key) = (tls_file("localhost.pem"), tls_file("localhost.key"));
    assert!(refused(&["--tls-cert", &certificate]).contains("--tls-key <FILE>"));
    assert!(refused(&["--tls-key", &key]).contains("--tls-cert <FILE>"));
    let missing = refused(&["--tls-cert", "no.pem", "--tls-key", &key]);
    let swapped = refused(&["--tls-cert", &certificate, "--tls-key", &certificate]);
    if cfg!(feature = "https") {
        assert!(missing.contains("--tls-cert: 'no.pem' cannot be read"), "{missing}");
        assert!(swapped.contains("--tls-key: ") && swapped.contains("has no private key"), "{swapped}");
    } else {
        assert!(
            missing.contains("without the feature https") && swapped.contains("without the feature https")
        );
    }
}

/// HT-6: with `--open-call` this machine makes calls without a token; then nobody can be asked.
#[test]
fn anybody_here_may_call_where_that_is_said() {
    let place = dir("serve-open");
    fs::write(place.join("notes.md"), "milk").unwrap();
    let served = Served::start(&place, &["--open-call"]);
    assert_eq!((&served.told["link"], &served.told["token"]), (&Value::Null, &Value::Null));
    assert_eq!(served.post("/sessions", None, &json!({"id": "a"})).0, 201);
    let code = |name: &str, arguments: Value| {
        let call = json!({"name": name, "arguments": arguments});
        served.post("/sessions/a/calls", None, &call).1["error"]["code"].take()
    };
    assert_eq!(code("read_file", json!({"path": "notes.md"})), Value::Null);
    assert_eq!(code("write_file", json!({"path": "new.md", "content": "x"})), "user_denied");
    assert_eq!(served.post("/breakers/read_file/open", None, &Value::Null).0, 403);
    assert_eq!(served.end(), Some(130));
}
