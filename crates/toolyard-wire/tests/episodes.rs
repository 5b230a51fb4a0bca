//! Episodes of a public leaderboard parse to the turns and calls that they declare.

#![expect(clippy::unwrap_used, reason = "a recording that is not as it was is a failed test")]

mod data;

use serde_json::Value;
use toolyard_wire::{Episode, NameMap, NameRule};

/// Reads a file of episodes and returns how many turns and calls it has.
fn check(file: &str) -> Option<(usize, usize)> {
    let (mut turns, mut calls) = (0, 0);
    for line in data::lines(&format!("bfcl/{file}"))? {
        let episode = Episode::parse_line(&line.to_string()).unwrap();
        assert_eq!(episode.id, line["id"]);
        assert_eq!(episode.tools.is_some(), line.get("tools").is_some());
        for (turn, written) in episode.turns.iter().zip(line["turns"].as_array().unwrap()) {
            check_turn(turn, written);
            calls += turn.len();
        }
        turns += episode.turns.len();
        let names: Vec<String> = episode.tools.into_iter().flatten().map(|tool| tool.name).collect();
        check_names(&names);
    }
    println!("{file}: {calls} calls in {turns} turns");
    Some((turns, calls))
}

fn check_turn(turn: &[toolyard_core::Call], written: &Value) {
    for (call, written) in turn.iter().zip(written.as_array().unwrap()) {
        assert_eq!(call.id.as_str(), written["call_id"]);
        assert_eq!(call.name.as_ref(), written["name"]);
        assert_eq!(call.arguments.to_value(), written["arguments"]);
    }
}

/// Every name maps to an allowed one and back. Many have dots, which some providers refuse.
fn check_names(names: &[String]) {
    let map = NameMap::new(NameRule::Plain, names.iter().map(String::as_str));
    for name in names {
        assert!(NameRule::Plain.allows(map.wire(name)));
        assert_eq!(map.original(map.wire(name)), Some(name.as_str()));
    }
}

#[test]
fn every_episode_reads_with_all_its_turns_and_calls() {
    for (file, expect) in [
        ("parallel.jsonl", (200, 540)),
        ("parallel_multiple.jsonl", (200, 607)),
        ("multi_turn.jsonl", (330, 635)),
    ] {
        if let Some(found) = check(file) {
            assert_eq!(found, expect, "{file}");
        }
    }
}
