//! Tools that are services: called over HTTP, at their own origin alone.

use crate::{
    child::{Done, toolyard},
    place::dir,
    service::{answer, service},
};
use serde_json::json;
use std::fs;

/// Runs one call of the service at this address.
fn run(name: &str, url: &str, more: &str) -> Done {
    let file = dir(name).join("toolyard.toml");
    let config = format!(
        "[retry]\nbase = \"1ms\"\ncap = \"2ms\"\n[tools.t]\nidempotent = true\n[program.t]\ndescription = \"A service\"\n\
         url = \"{url}\"\n{more}\n"
    );
    fs::write(&file, config).unwrap();
    let calls = json!({"calls": [{"call_id": "a", "name": "t", "arguments": {"text": "x"}}]}).to_string();
    let args = ["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()];
    toolyard(&args, &calls)
}

/// SB-2: a service gets one document and answers with the result; what may pass is tried again, with its own number.
#[test]
fn a_service_is_called_by_the_contract() {
    let answers = vec![
        answer("503 Service Unavailable", "retry-after: 0\r\n", "busy"),
        answer("200 OK", "", "{\"words\": 1}"),
    ];
    let (url, served) = service(answers);
    let more = "allow_private = true\noutput = \"json\"\nheaders = { X-Team = \"tools\" }";
    let done = run("remote-contract", &url, more);
    let json = done.json();
    assert_eq!(json["results"][0]["structured"], json!({"words": 1}), "{done:?}");
    let requests = served.join().unwrap();
    for (attempt, (head, body)) in (1..).zip(&requests) {
        assert!(head.starts_with("post /count?by=word http/1.1\r\n"), "{head}");
        assert!(head.contains("x-team: tools\r\n") && !head.contains("accept-encoding"), "{head}");
        assert!(!head.contains("traceparent"), "there is no trace: {head}");
        assert_eq!(
            (&body["tool"], &body["call_id"], &body["attempt"]),
            (&json!("t"), &json!("a"), &json!(attempt))
        );
        assert_eq!(body["arguments"], json!({"text": "x"}));
        assert!(body["deadline_ms"].as_u64().unwrap() > 1000, "{body}");
    }
}

/// SB-2: a redirect is not followed, and what a service says of a failure is read by the model.
#[test]
fn a_failure_is_the_services_own() {
    for (status, more, starts) in [
        ("404 Not Found", "", "HTTP 404: no such text"),
        (
            "302 Found",
            "location: http://127.0.0.1:1/\r\n",
            "HTTP 302: no such text: a redirect, which is not followed",
        ),
    ] {
        let (url, served) = service(vec![answer(status, more, "no such text")]);
        let done = run("remote-fails", &url, "allow_private = true");
        let error = done.json()["results"][0]["error"].take();
        assert_eq!(error["code"], "execution_error", "{done:?}");
        assert!(error["message"].as_str().unwrap().starts_with(starts), "{error}");
        served.join().unwrap();
    }
}

/// SB-10: an address that is not public is refused when the configuration is read, in every spelling, unless it is allowed.
#[test]
fn a_private_address_must_be_allowed() {
    for url in
        ["http://127.0.0.1:1/", "http://2130706433:1/", "http://0x7f.1:1/", "http://[::ffff:127.0.0.1]:1/"]
    {
        let done = run("remote-private", url, "");
        assert_eq!(done.code, Some(2), "{url}: {done:?}");
        let expect = "an address of this machine, which may not be used: set allow_private = true";
        assert!(
            done.stderr.contains(expect) && done.stderr.trim().lines().count() == 1,
            "{url}: {}",
            done.stderr
        );
    }
    // The name is looked up when it is called.
    let done = run("remote-name", "http://localhost:1/", "");
    assert_eq!(done.json()["results"][0]["error"]["code"], "permission_denied", "{done:?}");
}

/// SB-4: a limit that only a sandbox here could keep is refused.
#[test]
fn limits_of_another_machine_are_refused() {
    let done = run("remote-limits", "http://tools.example/", "[policy.rules]\nt = { memory = \"1MiB\" }");
    let error = done.json()["results"][0]["error"].take();
    assert_eq!(error["code"], "sandbox_error", "{done:?}");
    assert!(
        error["message"].as_str().unwrap().starts_with("sandbox 'remote' cannot limit memory"),
        "{error}"
    );
}
