//! What the report says of many calls agrees with the events.
#![cfg(unix)]

use crate::{
    child::toolyard,
    episodes_yard::{EpisodesYard, read},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Twelve episodes of three turns: programs, which take some time, reads, which take little, and failures of two kinds.
fn episodes() -> String {
    let call = |at: usize, name: &str, arguments: Value| json!({"call_id": format!("c{at}"), "name": name, "arguments": arguments});
    let turn = json!([
        call(0, "t", json!({"does": "x"})),
        call(1, "t", json!({"does": "y"})),
        call(2, "echo", json!({"text": "z"})),
        call(3, "echo", json!({"txt": 1})),
        call(4, "nope", json!({})),
    ]);
    (0..12).map(|n| format!("{}\n", json!({"id": format!("e{n}"), "turns": [turn, turn, turn]}))).collect()
}

fn report(args: &[&str], input: &str) -> Value {
    let done = toolyard(&[args, &["--report", "json"]].concat(), input);
    serde_json::from_str(&done.stderr).unwrap_or_else(|error| panic!("{error}: {}", done.stderr))
}

/// The time, in whole milliseconds, that this many percent of the times do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100) - 1]
}

/// KT-11: percentiles, counts and failures by code are those of the raw events.
#[test]
fn percentiles_are_those_of_the_events() {
    let yard = EpisodesYard::new("tables-events");
    let log = yard.beside("log.jsonl");
    let report = report(&yard.args("-", &["--jobs", "3", "--events", &log]), &episodes());
    let mut times = BTreeMap::<(String, &str), Vec<u64>>::new();
    let mut counts = BTreeMap::<(String, String), u64>::new();
    let (text, mut called) = (read(&log), std::collections::BTreeSet::new());
    for event in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let call = format!("{} {} {}", event["session"], event["turn"], event["index"]);
        let tool = event["tool_name"].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str().unwrap() {
            "tool.called" => drop(called.insert(call)),
            "tool.completed" | "tool.failed" | "tool.input_invalid" | "tool.call.denied" => {
                let code = event["code"].as_str().unwrap_or("ok").to_owned();
                // An unknown tool has no name of its own in events (OB-4).
                let tool = if code == "not_found" { "nope".to_owned() } else { tool };
                *counts.entry((tool.clone(), code)).or_default() += 1;
                if called.contains(&call) {
                    for key in ["duration_ms", "queue_ms"] {
                        times.entry((tool.clone(), key)).or_default().push(event[key].as_u64().unwrap());
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(counts.values().sum::<u64>(), 180);
    for ((tool, code), calls) in &counts {
        let of_tool = &report["tools"][tool];
        match code.as_str() {
            "ok" => {
                assert_eq!(of_tool["calls"].as_u64().unwrap() - of_tool["failed"].as_u64().unwrap(), *calls)
            }
            code => assert_eq!(of_tool["failures"][code], json!(calls), "{of_tool}"),
        }
    }
    assert_eq!(times.len(), 4, "{:?}", times.keys());
    for ((tool, key), times) in &mut times {
        times.sort_unstable();
        let of_tool =
            &report["tools"][tool.as_str()][if *key == "queue_ms" { "queued_ms" } else { "ran_ms" }];
        for percent in [50, 95, 99] {
            // Events have whole milliseconds, and a percentile may be a thousandth above.
            let exact = percentile(times, percent) as f64;
            let found = of_tool[format!("p{percent}")].as_f64().unwrap();
            assert!(
                exact <= found && found < (exact + 1.0) * 1.001,
                "{tool} {key} p{percent}: {found} for {exact}"
            );
        }
    }
    let nope = &report["tools"]["nope"];
    assert_eq!((&nope["ran_ms"], &nope["calls"]), (&Value::Null, &json!(36)));
    let slowest = report["slowest"].as_array().unwrap();
    let most = *times[&("t".to_owned(), "duration_ms")].last().unwrap();
    assert_eq!((slowest.len(), slowest[0]["ran_ms"].as_f64().unwrap() as u64), (10, most), "{slowest:?}");
    assert!(
        slowest.iter().all(|call| call["id"].is_string() && call["turn"].is_u64() && call["name"] == "t")
    );
}

/// KT-11: what is said of throughput, episodes and failures adds up.
#[test]
fn totals_add_up() {
    let yard = EpisodesYard::new("tables-totals");
    let report = report(&yard.args("-", &["--jobs", "3"]), &episodes());
    let number = |value: &Value| value.as_f64().unwrap();
    let near = |one: f64, other: f64| (one - other).abs() <= other * 0.001;
    let seconds = number(&report["wall_ms"]) / 1e3;
    assert!(near(number(&report["calls_per_s"]), 180.0 / seconds), "{report}");
    assert!(near(number(&report["episodes_per_s"]), 12.0 / seconds), "{report}");
    assert!(near(number(&report["tools"]["t"]["calls_per_s"]), 72.0 / seconds), "{report}");
    assert_eq!(
        (&report["calls"], &report["failed"], &report["turns"]),
        (&json!(180), &json!(72), &json!(36))
    );
    let episodes = report["episodes"].as_array().unwrap();
    let ids: Vec<&str> = episodes.iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, (0..12).map(|n| format!("e{n}")).collect::<Vec<_>>());
    let of =
        |one: &Value| [&one["turns"], &one["calls"], &one["failed"]].map(|value| value.as_u64().unwrap());
    assert!(episodes.iter().all(|one| of(one) == [3, 15, 6]), "{episodes:?}");
    let errors = report["notes"]["errors"].as_array().unwrap();
    let group = |one: &Value| format!("{} {} {}", one["name"], one["code"], one["calls"]);
    let mut groups: Vec<String> = errors.iter().map(group).collect();
    groups.sort_unstable();
    assert_eq!(groups, [r#""echo" "invalid_input" 36"#, r#""nope" "not_found" 36"#]);
    assert!(errors.iter().all(|one| one["first"].as_str().unwrap().contains(" turn ")), "{errors:?}");
}

/// KT-11: how long calls take one by one is measured, or said to be an estimate.
#[test]
fn one_by_one_is_measured_or_estimated() {
    let yard = EpisodesYard::new("tables-one-by-one");
    let sequential = report(&yard.args("-", &["--sequential"]), &episodes());
    assert_eq!(sequential["one_by_one"], json!({"measured_ms": sequential["wall_ms"]}));
    assert_eq!(sequential["at_once"]["most"], 1);
    let together = report(&yard.args("-", &["--jobs", "4"]), &episodes());
    let (sum, wall) = (&together["sum_of_run_times_ms"], &together["wall_ms"]);
    match sum.as_f64() > wall.as_f64() {
        true => assert_eq!(together["one_by_one"], json!({"estimated_at_most_ms": sum})),
        false => assert_eq!(together["one_by_one"], Value::Null),
    }
    let text = toolyard(&yard.args("-", &["--sequential"]), &episodes()).stderr;
    assert!(text.contains(", one by one (measured)\n"), "{text}");
    let text = toolyard(&yard.args("-", &["--jobs", "2"]), &episodes()).stderr;
    assert!(text.contains("\nnope  36 ") && text.contains("36 not_found\n"), "{text}");
    assert!(text.contains(" calls/s, ") && text.contains(" episodes/s; at once: "), "{text}");
}

/// KT-11: a model that invents names does not make the report grow.
#[test]
fn invented_tools_are_counted_together() {
    let call = |at: usize| json!({"call_id": at, "name": format!("invented_{at}"), "arguments": {}});
    let batch = json!({"calls": (0..300).map(call).collect::<Vec<_>>()}).to_string();
    let report = report(&["run"], &batch);
    let tools = report["tools"].as_object().unwrap();
    assert_eq!((tools.len(), &tools["(other tools)"]["calls"]), (101, &json!(200)));
    let notes = &report["notes"];
    let groups = notes["errors"].as_array().unwrap().len();
    assert_eq!((groups, &notes["calls_with_other_errors"]), (100, &json!(200)));
}
