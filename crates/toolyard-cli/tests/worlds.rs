//! The program in front of a third-party server: stateful back-ends of a public benchmark, whose results and states
//! were recorded by running the calls one by one. The server sleeps a random time before each call, so that calls which
//! overlap against the rules end in another state.
//!
//! `TOOLYARD_DATA` names the recordings, `TOOLYARD_BACKENDS` the server (beside them unless it is set) and
//! `TOOLYARD_MCP_SERVERS` the place where `.ci/mcp-servers` has installed what it needs. If any of them is absent, the
//! tests are skipped, except under `CI=true`, where they fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod shared;

use serde_json::Value;
use shared::child::{root, toolyard};
use std::{
    collections::{HashMap, HashSet},
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// The longest sleep of a call. Of two calls sent together, the second arrives while the first still sleeps, even if
/// that one sleeps for a hundredth of this time on a busy machine.
const JITTER_MS: u32 = 50;

/// The minimum share, in percent, of scenarios with neighbouring reads in which reads overlap.
const OVERLAPPING_MIN: usize = 95;

/// A path in the directory that the environment names, or in `default`; `None` if it does not exist.
fn place(variable: &str, default: PathBuf, file: &str) -> Option<PathBuf> {
    let path = env::var_os(variable).map_or(default, PathBuf::from).join(file);
    if path.exists() {
        return Some(path);
    }
    let absent = format!("nothing at {}: set {variable} to its directory", path.display());
    assert!(env::var("CI").as_deref() != Ok("true"), "{absent}");
    println!("skipped: {absent}");
    None
}

/// Everything that the scenarios need.
struct Worlds {
    python: PathBuf,
    server: PathBuf,
    scenarios: Vec<Value>,
    /// The names of the read-only tools, by toolset.
    reads: HashMap<String, HashSet<String>>,
}

impl Worlds {
    fn find() -> Option<Self> {
        let shared = root().join("../shared");
        let data = shared.join("data");
        let recorded = place("TOOLYARD_DATA", data.clone(), "bfcl/multi_turn.jsonl")?;
        let beside = env::var_os("TOOLYARD_DATA").map_or(data, PathBuf::from).join("../real-backends");
        let server = place("TOOLYARD_BACKENDS", beside, "server.py")?;
        let installed = root().join("target/mcp-servers");
        let python = place("TOOLYARD_MCP_SERVERS", installed, "bfcl/venv/bin/python")?;
        let tools = lines(&recorded.with_extension("tools.jsonl"));
        Some(Self { python, server, scenarios: lines(&recorded), reads: tools.iter().map(reads).collect() })
    }

    /// Whether a turn has two neighbouring reads.
    fn has_neighbouring_reads(&self, scenario: &Value) -> bool {
        let reads = &self.reads[scenario["toolset"].as_str().unwrap()];
        let is_read = |call: &Value| reads.contains(call["name"].as_str().unwrap());
        let turns = scenario["turns"].as_array().unwrap();
        turns.iter().any(|turn| turn.as_array().unwrap().windows(2).any(|two| two.iter().all(is_read)))
    }
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn reads(toolset: &Value) -> (String, HashSet<String>) {
    let tools = toolset["tools"].as_array().unwrap().iter();
    let reads = tools.filter(|tool| tool["class_hint"] == "read_only");
    let names = reads.map(|tool| tool["name"].as_str().unwrap().to_owned());
    (toolset["toolset"].as_str().unwrap().to_owned(), names.collect())
}

/// Runs a scenario and compares everything with the recording. Returns the maximum number of calls in flight, and the
/// time that the calls took, without the start of the server.
fn play(worlds: &Worlds, scenario: &Value, seed: u32, more: &[&str]) -> (u64, Duration) {
    let id = scenario["id"].as_str().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (config, report) = (dir.path().join("toolyard.toml"), dir.path().join("report.json"));
    let [python, server, said] = [&worlds.python, &worlds.server, &report].map(|path| format!("{path:?}"));
    let args = format!(
        "{server}, {id:?}, \"--jitter-ms\", \"{JITTER_MS}\", \"--seed\", \"{seed}\", \"--report\", {said}"
    );
    let text = format!(
        "[builtin]\nenable = []\n[mcp.world]\ncommand = {python}\nargs = [{args}]\ntrust = true\nprefix = \"\"\n"
    );
    fs::write(&config, text).unwrap();
    let mut options = vec!["run", "--report", "json", "--approve", "auto", "--from", "episodes", "--config"];
    options.push(config.to_str().unwrap());
    options.extend(more);
    let done = toolyard(&options, &format!("{scenario}\n"));
    assert!(matches!(done.code, Some(0 | 1)), "{id}: {done:?}");
    same_results(id, &done.lines(), &scenario["expected"]["results"]);
    let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    let state = scenario["expected"]["state_sha256"].as_array().unwrap().last().unwrap();
    assert_eq!(&report["state_sha256"], state, "{id} seed {seed}: another state, run as {}", report["order"]);
    let told: Value = serde_json::from_str(&done.stderr).unwrap();
    let wall = Duration::from_secs_f64(told["wall_ms"].as_f64().unwrap() / 1000.0);
    (report["max_in_flight"].as_u64().unwrap(), wall)
}

fn same_results(id: &str, turns: &[Value], expected: &Value) {
    let expected = expected.as_array().unwrap();
    assert_eq!(turns.len(), expected.len(), "{id}");
    for (turn, wanted) in turns.iter().zip(expected) {
        let results = turn["results"].as_array().unwrap();
        assert_eq!(results.len(), wanted.as_array().unwrap().len(), "{id}");
        for (result, wanted) in results.iter().zip(wanted.as_array().unwrap()) {
            assert_eq!(result["call_id"], wanted["call_id"], "{id}");
            assert_eq!(result["ok"], !wanted["is_error"].as_bool().unwrap(), "{id}: {result}");
            let said =
                if result["ok"] == true { &result["output"] } else { &result["error"]["content"][0]["text"] };
            assert_eq!(said, &wanted["content"], "{id}: {result}");
        }
    }
}

/// The number of scenarios with neighbouring reads, and those in which no reads overlapped.
#[derive(Default)]
struct Overlaps {
    reading: usize,
    missed: Vec<String>,
}

impl Overlaps {
    fn note(&mut self, worlds: &Worlds, scenario: &Value, most: u64) {
        if worlds.has_neighbouring_reads(scenario) {
            self.reading += 1;
            if most <= 1 {
                self.missed.push(scenario["id"].to_string());
            }
        }
    }

    fn are_enough(&self) {
        let Self { reading, missed } = self;
        let overlapped = reading - missed.len();
        assert!(*reading > 0 && overlapped * 100 >= reading * OVERLAPPING_MIN, "of {reading} not {missed:?}");
    }
}

/// CL-3, CL-4: results and states equal those of calls made one by one, and yet neighbouring reads overlap.
#[test]
fn twenty_worlds_end_as_they_were_recorded() {
    let Some(worlds) = Worlds::find() else { return };
    let mut overlaps = Overlaps::default();
    for scenario in &worlds.scenarios[..20] {
        let (most, _) = play(&worlds, scenario, 1, &[]);
        overlaps.note(&worlds, scenario, most);
    }
    overlaps.are_enough();
}

/// The same for all scenarios and three seeds, with the cost of running the calls one by one.
#[test]
#[ignore = "takes minutes; run by hand with --nocapture"]
fn every_world_ends_as_it_was_recorded() {
    let Some(worlds) = Worlds::find() else { return };
    for seed in 1..=3 {
        let mut overlaps = Overlaps::default();
        let (mut together, mut one_by_one) = (Duration::ZERO, Duration::ZERO);
        // In turns, so that other load on the machine slows both.
        for scenario in &worlds.scenarios {
            let (most, wall) = play(&worlds, scenario, seed, &[]);
            together += wall;
            let (alone, wall) = play(&worlds, scenario, seed, &["--sequential"]);
            assert!(alone <= 1);
            one_by_one += wall;
            overlaps.note(&worlds, scenario, most);
        }
        let Overlaps { reading, missed } = &overlaps;
        println!("seed {seed}: of {reading} not {missed:?}; {together:.1?}, one by one {one_by_one:.1?}");
        overlaps.are_enough();
    }
}
