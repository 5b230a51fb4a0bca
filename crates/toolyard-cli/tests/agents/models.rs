//! Models that agents reach without holding a key (AG-12).

use crate::{
    child::fed,
    yard::{Yard, is_missing},
};
use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

const KEY: &str = "sk-test-0123456789abcdef";

/// Answers one request, whose head it returns. A model that gives its key away is heard without it.
fn answer(mut stream: TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let body = format!("you sent {KEY}");
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").unwrap();
    String::from_utf8(head).unwrap()
}

/// AG-12: requests go to exactly that origin, with the secret that the agent does not see, and are counted.
#[test]
fn a_model_is_reached_without_its_key() {
    if is_missing() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let model = thread::spawn(move || answer(listener.accept().unwrap().0));
    let yard = Yard::of(
        "agents-model",
        "model",
        &[],
        &format!(
            "[agents.a.http.llm]\norigin = \"http://127.0.0.1:{port}\"\npath = \"/v1\"\nsecret = \"$TEST_MODEL_KEY\"\n\
             header = \"Authorization: Bearer {{secret}}\"\nenv = \"MODEL_URL\"\nallow_private = true\n"
        ),
    );
    let mut command = yard.command();
    command.env("TEST_MODEL_KEY", KEY);
    let done = fed(command, "");
    let agent = &done.json()["agents"][0];
    let said = agent["result"].as_str().unwrap_or_else(|| panic!("{done:?}"));
    assert!(said.contains("200 OK") && said.contains("you sent *") && !said.contains(KEY), "{said}");
    assert_eq!(agent["model_requests"], 1);
    let head = model.join().unwrap();
    assert!(head.starts_with("GET /v1/chat HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains(&format!("authorization: bearer {KEY}")), "{head}");
}

/// AG-12: requests are bounded, those of a sub-agent by its parent's bound too, and those beyond are told so and not counted.
#[test]
fn requests_to_a_model_are_bounded() {
    if is_missing() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = thread::spawn(move || {
        for _ in 0..5 {
            answer(listener.accept().unwrap().0);
        }
    });
    let model = |most: u32| {
        format!(
            "origin = \"http://127.0.0.1:{port}\"\nrequests_max = {most}\nenv = \"MODEL_URL\"\nallow_private = true\n"
        )
    };
    let yard = Yard::new(
        "agents-models-bounded",
        &format!(
            "[agents.boss]\ncommand = AGENT\ntools = [\"Agent\"]\nmay_spawn = [\"child\"]\n\
             env = {{ CC_RUNNER_BEHAVIOR = \"models=1\", CHILD = \"child\" }}\n[agents.boss.http.llm]\n{}\
             [agents.child]\ncommand = AGENT\ninstances = 0\nenv = {{ CC_RUNNER_BEHAVIOR = \"models=3\" }}\n\
             [agents.child.http.llm]\n{}\
             [agents.alone]\ncommand = AGENT\nenv = {{ CC_RUNNER_BEHAVIOR = \"models=3\" }}\n[agents.alone.http.llm]\n{}",
            model(3),
            model(10),
            model(2)
        ),
    );
    let reports = yard.reports();
    let of = |name: &str| reports.iter().find(|report| report["agent"] == name).unwrap();
    let statuses = |said: &serde_json::Value| -> Vec<bool> {
        let said = said.as_array().unwrap_or_else(|| panic!("{reports:?}"));
        said.iter().map(|said| said.as_str().unwrap().starts_with("HTTP/1.1 200 OK")).collect()
    };
    let (boss, alone) = (of("root/boss"), of("root/alone"));
    assert_eq!(statuses(&alone["result"]["said"]), [true, true, false]);
    let refused = alone["result"]["said"][2].as_str().unwrap();
    assert!(refused.starts_with("HTTP/1.1 429 Too Many Requests"), "{refused}");
    assert!(refused.ends_with("'llm': 2 of 2 requests are used: ask it no more"), "{refused}");
    assert_eq!(alone["models"]["llm"]["requests_max"], 2);
    assert_eq!((&alone["model_requests"], &alone["models"]["llm"]["requests"]), (&2.into(), &2.into()));
    assert_eq!(statuses(&boss["result"]["said"]), [true]);
    assert_eq!(statuses(&boss["result"]["child"]["result"]["said"]), [true, true, false], "three in all");
    let child = reports.iter().find(|report| report["profile"] == "child").unwrap();
    assert_eq!((&boss["model_requests"], &child["model_requests"]), (&1.into(), &2.into()));
    served.join().unwrap();
}

/// AG-12: a configuration without its secret is refused, by name.
#[test]
fn a_model_needs_its_secret() {
    let yard = Yard::of(
        "agents-no-key",
        "model",
        &[],
        "[agents.a.http.llm]\norigin = \"http://127.0.0.1:1\"\nsecret = \"$NO_SUCH_KEY\"\nenv = \"MODEL_URL\"\n",
    );
    let done = yard.run();
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("secret: the environment variable NO_SUCH_KEY is not set"), "{done:?}");
}
