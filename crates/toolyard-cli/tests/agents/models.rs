//! Models that agents reach without holding a key (AG-12).

use crate::{
    child::fed,
    yard::{Yard, is_missing},
};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

const KEY: &str = "sk-test-0123456789abcdef";

/// AG-12: requests go to exactly that origin, with the secret that the agent does not see, and are counted.
#[test]
fn a_model_is_reached_without_its_key() {
    if is_missing() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let model = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        // A model that gives its key away is heard without it.
        let body = format!("you sent {KEY}");
        let length = body.len();
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .unwrap();
        head
    });
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
