//! The program over recorded data: every response that a provider sent is answered, and a plan finds exactly
//! the calls that do not fit their schemas.
//!
//! `TOOLYARD_DATA` names the directory of the recordings. Where it is absent the tests are skipped, except
//! under `CI=true`, where they fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod shared;

use serde_json::Value;
use shared::child::toolyard;
use std::{collections::BTreeMap, env, fs, path::PathBuf};

/// The path of a file of recordings; `None` if there are none.
fn file(name: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let dir = env::var_os("TOOLYARD_DATA").map_or_else(|| default.into(), PathBuf::from);
    let file = dir.join(name);
    if file.exists() {
        return Some(file);
    }
    let absent = format!("no recordings at {}: set TOOLYARD_DATA to their directory", file.display());
    assert!(env::var("CI").as_deref() != Ok("true"), "{absent}");
    println!("skipped: {absent}");
    None
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

#[test]
fn a_plan_finds_exactly_the_calls_that_do_not_fit() {
    let (mut batches, mut calls, mut invalid) = (0, 0, 0);
    for name in ["bfcl/parallel.jsonl", "bfcl/parallel_multiple.jsonl"] {
        let Some(file) = file(name) else { return };
        let done = toolyard(&["plan", "--json", file.to_str().unwrap()], "");
        assert_eq!(done.stderr, "");
        let planned = done.lines();
        let recorded: Vec<Value> = lines(&fs::read_to_string(&file).unwrap()).collect();
        assert_eq!(planned.len(), recorded.len());
        for (plan, line) in planned.iter().zip(&recorded) {
            assert_eq!((&plan["id"], &plan["turn"]), (&line["id"], &0.into()));
            assert_eq!(plan["invalid_calls"], line["expected"]["invalid_calls"], "{}", line["id"]);
            let refused = plan["calls"].as_array().unwrap().iter().filter(|call| !call["error"].is_null());
            assert_eq!(refused.count(), plan["invalid_calls"].as_array().unwrap().len(), "{}", line["id"]);
            assert_eq!(plan["calls"].as_array().unwrap().len(), line["turns"][0].as_array().unwrap().len());
            batches += 1;
            calls += plan["calls"].as_array().unwrap().len();
            invalid += plan["invalid_calls"].as_array().unwrap().len();
        }
    }
    println!("planned {batches} batches with {calls} calls: {invalid} invalid");
    assert_eq!((batches, calls, invalid), (400, 1147, 2));
}

/// The results of a response, in any format.
fn results(value: &Value) -> &[Value] {
    let list = ["content", "parts"].iter().find_map(|key| value.get(*key));
    list.unwrap_or(value).as_array().unwrap()
}

/// The call id of a result, in any format.
fn id_of(result: &Value) -> &Value {
    let keys = ["tool_call_id", "call_id", "tool_use_id"];
    let id = keys.iter().find_map(|key| result.get(*key));
    id.unwrap_or(&result["functionResponse"]["id"])
}

#[test]
fn every_recorded_response_is_answered() {
    let Some(file) = file("provider-responses/recorded.jsonl") else { return };
    let (mut answered, mut responses) = (0, BTreeMap::<String, usize>::new());
    for line in lines(&fs::read_to_string(file).unwrap()) {
        let id = &line["id"];
        let done =
            toolyard(&["run", "--workspace", "examples/workspace"], line["response"].as_str().unwrap());
        // None of these tools is registered here: each call has its error result.
        assert_eq!(done.code, Some(1), "{id}: {}", done.stderr);
        let value = done.json();
        let ids: Vec<&Value> = results(&value).iter().map(id_of).collect();
        let expect: Vec<&Value> =
            line["expected"]["calls"].as_array().unwrap().iter().map(|call| &call["call_id"]).collect();
        assert_eq!(ids, expect, "{id}");
        assert!(done.stderr.starts_with("run  call"), "{id}: {}", done.stderr);
        answered += ids.len();
        *responses.entry(line["provider"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    println!("answered {answered} calls of {} responses: {responses:?}", responses.values().sum::<usize>());
    assert_eq!(responses.values().sum::<usize>(), 107);
}
