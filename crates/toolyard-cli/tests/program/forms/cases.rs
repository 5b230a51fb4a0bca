//! The cases of the contract.

#[cfg(feature = "wasm")]
use super::modules;
use super::{
    form::Form,
    seen::Seen,
    service::Answer::{self, Breaks, Cannot, Floods, Gives, GivesBack, Tells, Waits},
};
use serde_json::json;
use std::collections::BTreeMap;
#[cfg(feature = "wasm")]
use toolyard_test_modules::{ECHO, ENVIRONMENT, print};

/// What a program does, in each form, and what follows.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// As a command.
    pub(super) script: &'static str,
    /// As a module, its text.
    #[cfg(feature = "wasm")]
    pub(super) module: fn() -> String,
    /// As a service.
    pub(super) answer: Answer,
    /// More keys of the tool.
    pub(super) keys: &'static str,
    /// How long it may take.
    pub(super) wall: &'static str,
    pub(super) expect: fn(&Seen),
}

const READS: &str = "side_effects = \"read\"";
const READS_TO_JSON: &str = "side_effects = \"read\"\noutput = \"json\"";
const WRITES: &str = "side_effects = \"write\"";
const KEEPS_LITTLE: &str = "side_effects = \"read\"\noutput_bytes = \"1KiB\"";
const KEEPS_LITTLE_JSON: &str = "side_effects = \"read\"\noutput = \"json\"\noutput_bytes = \"1KiB\"";

/// More than any machine takes.
const LONG: &str = "2m";

const BUSY: &str = r#"{"error":{"message":"busy"}}"#;
const ONE_OUTPUT: &str = "a service has one output";

/// Prints more than is kept.
const FLOODS: &str = "cat >/dev/null; echo start; yes 0123456789abcde | head -n 6000; echo end";

pub(super) const CASES: [Case; 16] = [
    Case {
        name: "gives back its arguments",
        script: "cat",
        #[cfg(feature = "wasm")]
        module: || ECHO.to_owned(),
        answer: GivesBack,
        keys: READS,
        wall: LONG,
        expect: |seen| assert_eq!(seen.text(), r#"{"b":1,"a":"x"}"#),
    },
    Case {
        name: "gives a document",
        script: "cat >/dev/null; echo '{\"words\": 3}'",
        #[cfg(feature = "wasm")]
        module: || print(1, "{\"words\": 3}\n", 0),
        answer: Gives("200 OK", "", "{\"words\": 3}"),
        keys: READS_TO_JSON,
        wall: LONG,
        expect: |seen| assert_eq!(seen.result["structured"], json!({"words": 3}), "{}", seen.result),
    },
    Case {
        name: "gives no document where one is due",
        script: "cat >/dev/null; echo 3 words",
        #[cfg(feature = "wasm")]
        module: || print(1, "3 words\n", 0),
        answer: Gives("200 OK", "", "3 words"),
        keys: READS_TO_JSON,
        wall: LONG,
        expect: |seen| seen.fails("output_invalid"),
    },
    Case {
        name: "reads no input",
        script: "echo done",
        #[cfg(feature = "wasm")]
        module: || print(1, "done\n", 0),
        answer: Gives("200 OK", "connection: close\r\n", "done\n"),
        keys: READS,
        wall: LONG,
        expect: |seen| assert_eq!(seen.text(), "done\n"),
    },
    Case {
        name: "prints more than is kept",
        script: FLOODS,
        #[cfg(feature = "wasm")]
        module: modules::floods,
        answer: Floods,
        keys: KEEPS_LITTLE,
        wall: LONG,
        expect: |seen| {
            let text = seen.text();
            assert!(text.starts_with("start\n0123456789abcde\n") && text.len() < 2048, "{text}");
            // Nothing is waited for that a service would not be believed anyway.
            assert!(seen.form == Form::Remote || text.ends_with("0123456789abcde\nend\n"), "{text}");
        },
    },
    Case {
        name: "prints a document that is longer than what is kept",
        script: FLOODS,
        #[cfg(feature = "wasm")]
        module: modules::floods,
        answer: Floods,
        keys: KEEPS_LITTLE_JSON,
        wall: LONG,
        expect: |seen| seen.fails("output_too_large"),
    },
    Case {
        name: "says what it does on standard error",
        script: "cat >/dev/null; echo looking >&2; echo looking on >&2; echo found",
        #[cfg(feature = "wasm")]
        module: || modules::prints_both("looking\nlooking on\n", "found\n", 0),
        answer: Cannot(ONE_OUTPUT),
        keys: READS,
        wall: LONG,
        expect: |seen| {
            assert_eq!((seen.text(), &*seen.streamed()), ("found\n", "looking\nlooking on\n"));
        },
    },
    Case {
        name: "asks what it was told",
        script: "cat >/dev/null; exec env",
        #[cfg(feature = "wasm")]
        module: || ENVIRONMENT.to_owned(),
        answer: Tells,
        keys: READS,
        wall: LONG,
        expect: is_told_of_its_call_alone,
    },
    Case {
        name: "fails",
        script: "cat >/dev/null; echo no such text; exit 3",
        #[cfg(feature = "wasm")]
        module: || print(1, "no such text\n", 3),
        answer: Gives("404 Not Found", "", "no such text"),
        keys: WRITES,
        wall: LONG,
        expect: |seen| {
            seen.fails("execution_error");
            seen.has_outcome("failed");
            seen.says("no such text");
        },
    },
    Case {
        name: "fails and says why on standard error",
        script: "cat >/dev/null; echo looking >&2; echo found; exit 3",
        #[cfg(feature = "wasm")]
        module: || modules::prints_both("looking\n", "found\n", 3),
        answer: Cannot(ONE_OUTPUT),
        keys: READS,
        wall: LONG,
        expect: |seen| {
            seen.fails("execution_error");
            assert_eq!(seen.text(), "exit code 3\nfound\n[standard error]\nlooking\n");
        },
    },
    Case {
        name: "reads and is busy",
        script: "cat >/dev/null; echo '{\"error\":{\"message\":\"busy\"}}'; exit 75",
        #[cfg(feature = "wasm")]
        module: || print(1, BUSY, 75),
        answer: Gives("503 Service Unavailable", "retry-after: 0\r\n", BUSY),
        keys: READS,
        wall: LONG,
        expect: |seen| {
            seen.fails("transient");
            seen.says("busy");
            assert_eq!(seen.attempts(), 2);
        },
    },
    Case {
        name: "is busy, and may have written",
        script: "cat >/dev/null; echo '{\"error\":{\"message\":\"busy\",\"retry_after_ms\":2000}}'; exit 75",
        #[cfg(feature = "wasm")]
        module: || print(1, r#"{"error":{"message":"busy","retry_after_ms":2000}}"#, 75),
        answer: Gives("503 Service Unavailable", "retry-after: 2\r\n", BUSY),
        keys: WRITES,
        wall: LONG,
        expect: |seen| {
            seen.fails("transient");
            assert_eq!(seen.result["error"]["retry_after_ms"], 2000, "{}", seen.result);
            assert_eq!(seen.attempts(), 1);
        },
    },
    Case {
        name: "is busy, and has written nothing",
        script: "cat >/dev/null; echo '{\"error\":{\"message\":\"busy\",\"no_side_effect\":true}}'; exit 75",
        #[cfg(feature = "wasm")]
        module: || print(1, r#"{"error":{"message":"busy","no_side_effect":true}}"#, 75),
        answer: Cannot("no status says that nothing was changed"),
        keys: WRITES,
        wall: LONG,
        expect: |seen| {
            seen.fails("transient");
            assert_eq!(seen.attempts(), 2);
        },
    },
    Case {
        name: "writes and is ended by something else",
        script: "cat >/dev/null; echo so far; kill -9 $$",
        #[cfg(feature = "wasm")]
        module: modules::traps,
        answer: Breaks,
        keys: WRITES,
        wall: LONG,
        expect: |seen| {
            ends_from_outside(seen);
            seen.has_outcome("unknown");
            assert_eq!(seen.attempts(), 1);
        },
    },
    Case {
        name: "reads and is ended by something else",
        script: "cat >/dev/null; echo so far; kill -9 $$",
        #[cfg(feature = "wasm")]
        module: modules::traps,
        answer: Breaks,
        keys: READS,
        wall: LONG,
        expect: |seen| {
            ends_from_outside(seen);
            seen.has_outcome("failed");
        },
    },
    Case {
        name: "does not end",
        script: "echo so far; exec sleep 600",
        #[cfg(feature = "wasm")]
        module: modules::goes_on,
        answer: Waits,
        keys: READS,
        // A machine on a busy host takes seconds to come to the first line.
        wall: "10s",
        expect: |seen| {
            seen.fails("timeout");
            // What a service has not answered is not known.
            if seen.form != Form::Remote {
                seen.says("so far");
            }
        },
    },
];

/// A signal, a trap, or a connection that broke.
fn ends_from_outside(seen: &Seen) {
    if seen.form == Form::Remote {
        return seen.fails("transient");
    }
    seen.fails("execution_error");
    seen.says("so far");
}

/// What shells set by themselves, the home and the temporary directory that a sandbox gives, and the headers that every
/// request has.
const USUAL: [&str; 13] = [
    "PATH",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "HOME",
    "TMPDIR",
    "host",
    "content-type",
    "content-length",
    "accept",
    "connection",
    "user-agent",
];

fn is_told_of_its_call_alone(seen: &Seen) {
    let lines = seen.text().split_terminator(['\n', '\0']);
    let mut told: BTreeMap<&str, &str> = lines.map(|line| line.split_once('=').unwrap()).collect();
    for (name, value) in [
        ("TOOLYARD_CALL_ID", "a"),
        ("TOOLYARD_TOOL", "t"),
        ("TOOLYARD_ATTEMPT", "1"),
        ("TOOLYARD_IDEMPOTENCY_KEY", "k-1"),
        ("OWN", "said"),
    ] {
        assert_eq!(told.remove(name), Some(value), "{name}: {}", seen.text());
    }
    let left: u64 = told.remove("TOOLYARD_DEADLINE_MS").unwrap().parse().unwrap();
    assert!((1..=120_000).contains(&left), "{left}");
    assert_ne!(told.get("PATH"), std::env::var("PATH").ok().as_deref().as_ref(), "it is inherited");
    told.retain(|name, _| !USUAL.contains(name));
    assert!(told.is_empty(), "{told:?}");
}
