//! KT-15: the schemas say what the program reads and writes.

use crate::{
    child::{root, toolyard},
    place::dir,
    workspace::workspace,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

fn schema(name: &str) -> Value {
    let done = toolyard(&["schema", name], "");
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    let schema = done.json();
    assert!(jsonschema::meta::is_valid(&schema), "{name}");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    schema
}

fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn check(schema: &Value, value: &Value) {
    assert_eq!(errors(schema, value), Vec::<String>::new(), "{value:#}");
}

/// The schema with every object that lists its fields closed to others.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") {
                fields.entry("additionalProperties").or_insert(false.into());
            }
            for value in fields.values_mut() {
                *value = closed(value.take());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = closed(item.take())),
        _ => {}
    }
    schema
}

fn example(name: &str) -> String {
    fs::read_to_string(root().join("examples").join(name)).unwrap()
}

/// The example of a configuration as data; with `all`, its settings that are commented out are set too.
fn configuration(all: bool) -> Value {
    let is_setting = |line: &str| {
        (line.starts_with('[') && line.ends_with(']'))
            || line.split_once(" = ").is_some_and(|(key, _)| is_key(key))
    };
    let uncommented = |line: &str| match line.strip_prefix("# ").filter(|_| all) {
        Some(setting) if is_setting(setting) => format!("{setting}\n"),
        _ => format!("{line}\n"),
    };
    let text: String = example("toolyard.toml").lines().map(uncommented).collect();
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

fn is_key(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// KT-15: what the example says, also in its comments, is valid; a key or a word that the reader refuses is not.
#[test]
fn the_schema_of_the_configuration_takes_the_example_and_no_unknown_key() {
    let schema = schema("config");
    check(&schema, &configuration(false));
    let all = configuration(true);
    assert!(all["mcp"]["git"]["startup_timeout"].is_string() && all["session"]["call_deadline"].is_string());
    check(&schema, &all);
    for (unknown, at) in [
        (json!({"pool": {}}), ""),
        (json!({"pools": {"reed": 1}}), "/pools"),
        (json!({"pools": {"read": 0}}), "/pools/read"),
        (json!({"tools": {"echo": {"retry": {"most": 1}}}}), "/tools/echo/retry"),
        (json!({"tools": {"echo": {"timeout": "1 day"}}}), "/tools/echo/timeout"),
        (json!({"limits": {"results_batch": 5}}), "/limits/results_batch"),
        (json!({"confirmation": {"default": {"write": "ask"}}}), "/confirmation/default/write"),
        (json!({"policy": {"default": {"wall": "1s"}}}), "/policy/default"),
        (json!({"mcp": {"git": {"comand": "git"}}}), "/mcp/git"),
    ] {
        let found = errors(&schema, &unknown);
        assert!(found.iter().any(|error| error.starts_with(&format!("{at}: "))), "{unknown}: {found:?}");
    }
}

/// The keys that the reader knows where an unknown one stands.
fn keys_of_reader(name: &str, text: &str) -> BTreeSet<String> {
    // No key is like it, so that all are listed.
    let file = dir("schema-keys").join(format!("{name}.toml"));
    fs::write(&file, text.replace('@', "000000 = 1")).unwrap();
    let done = toolyard(&["check", "--config", file.to_str().unwrap()], "");
    let line = done.stderr.lines().find_map(|line| line.split_once("unknown key '000000'"));
    let (_, keys) = line
        .and_then(|(_, rest)| rest.split_once("available: "))
        .unwrap_or_else(|| panic!("{text}: {done:?}"));
    keys.split(", ").map(str::to_owned).collect()
}

/// Where the schema lists fields.
fn places_of(schema: &Value, at: &str, places: &mut BTreeSet<String>) {
    let parts: Vec<(String, &Value)> = match schema {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => return,
    };
    if schema.get("properties").is_some_and(|fields| fields.is_object()) && schema.get("type").is_some() {
        places.insert(at.to_owned());
    }
    for (key, value) in parts {
        places_of(value, &format!("{at}/{key}"), places);
    }
}

/// Each table of a configuration: where the schema has it, and a text for each form that it takes, with an `@` in it.
const TABLES: &[(&str, &[&str])] = &[
    ("", &["@"]),
    ("/properties/workspace", &["[workspace]\n@"]),
    ("/properties/pools", &["[pools]\n@"]),
    ("/properties/session", &["[session]\n@"]),
    ("/properties/limits", &["[limits]\n@"]),
    ("/properties/shell", &["[shell]\n@"]),
    ("/properties/sandbox", &["[sandbox]\n@"]),
    ("/properties/sandbox/properties/process", &["[sandbox.process]\n@"]),
    ("/properties/sandbox/properties/micro_vm", &["[sandbox.micro_vm]\n@"]),
    ("/properties/gateway", &["[gateway]\n@"]),
    ("/properties/builtin", &["[builtin]\n@"]),
    ("/properties/confirmation", &["[confirmation]\n@"]),
    ("/properties/confirmation/properties/default", &["[confirmation.default]\n@"]),
    (
        "/properties/confirmation/properties/trusted_workspace_overrides",
        &["[confirmation.trusted_workspace_overrides]\n@"],
    ),
    ("/properties/policy", &["[policy]\n@"]),
    ("/properties/policy/properties/side_effects", &["[policy.side_effects]\n@"]),
    ("/properties/server", &["[server]\n@"]),
    ("/properties/server/properties/notify", &["[server.notify]\n@"]),
    ("/properties/server/properties/tokens/additionalProperties", &["[server.tokens.ci]\n@"]),
    ("/properties/redaction", &["[redaction]\n@"]),
    ("/$defs/rule/oneOf/1", &["[policy.default]\n@"]),
    ("/$defs/tool/properties/reconcile", &["[tools.echo.reconcile]\n@"]),
    ("/$defs/retry", &["[retry]\n@", "[tools.echo.retry]\n@"]),
    ("/$defs/breaker", &["[breaker]\n@", "[tools.echo.breaker]\n@"]),
    ("/$defs/budget/oneOf/1", &["[budget.turn]\n@", "[tools.echo.budget]\n@"]),
    ("/$defs/budgets", &["[budget]\n@", "[server.tokens.ci.budget]\n@"]),
    ("/$defs/capabilities", &["[policy.capabilities]\n@", "[server.tokens.ci.capabilities]\n@"]),
    ("/$defs/tool", &["[tools.echo]\n@"]),
    ("/$defs/mcp_server", &["[mcp.git]\ncommand = \"git\"\n@", "[mcp.git]\nurl = \"http://[::1]/\"\n@"]),
    (
        "/$defs/program",
        &[
            "[program.x]\ncommand = [\"git\"]\n@",
            "[program.x]\nurl = \"http://127.0.0.1/\"\n@",
            "[program.x]\nwasm = \"x.wasm\"\n@",
        ],
    ),
    ("/$defs/mock", &["[mock.x]\n@"]),
    ("/$defs/mock_latency", &["[mock.x.latency]\n@"]),
    ("/$defs/mock_lognormal", &["[mock.x.latency.lognormal]\n@"]),
    ("/$defs/agent", &["[agents.a]\n@"]),
    ("/$defs/agent/properties/limits", &["[agents.a.limits]\n@"]),
    ("/$defs/agent/properties/http/additionalProperties", &["[agents.a.http.m]\n@"]),
];

/// KT-15: in every table, the schema has the keys that the reader of the configuration knows.
#[test]
fn the_schema_of_the_configuration_has_the_keys_of_its_reader() {
    let schema = schema("config");
    let mut places = BTreeSet::new();
    places_of(&schema, "", &mut places);
    let known: BTreeSet<String> = TABLES.iter().map(|(place, _)| (*place).to_owned()).collect();
    assert_eq!(places, known);
    for (place, texts) in TABLES {
        let table = schema.pointer(place).unwrap();
        let of_schema: BTreeSet<String> = table["properties"].as_object().unwrap().keys().cloned().collect();
        let read = |(index, text): (usize, &&str)| keys_of_reader(&index.to_string(), text);
        let of_reader: BTreeSet<String> = texts.iter().enumerate().flat_map(read).collect();
        assert_eq!(of_schema, of_reader, "{place}");
        assert_eq!(table["additionalProperties"], false, "{place}");
    }
}

/// KT-15: batches and episodes, in each form that is read; fields that the readers pass on are no errors.
#[test]
fn the_schemas_of_batches_and_episodes_take_what_is_read() {
    let neutral = schema("neutral");
    let batch: Value = serde_json::from_str(&example("batch.json")).unwrap();
    check(&neutral, &batch);
    check(&neutral, &batch["calls"]);
    check(&neutral, &batch["calls"][0]);
    let full = json!({"calls": [{"call_id": 7, "name": "echo", "arguments": "{\"text\":\"x\"}", "idempotency_key": "k",
        "timeout_ms": 500, "more": 1}], "text": "Let me see."});
    check(&neutral, &full);
    assert_eq!(toolyard(&["run", "-q", "--from", "neutral"], &full.to_string()).code, Some(0));
    for wrong in [
        json!({"calls": {}}),
        json!({"calls": [{"name": "echo", "timeout_ms": "soon"}]}),
        json!({"calls": [{"name": "echo", "idempotency_key": 7}]}),
        json!(7),
    ] {
        assert_ne!(errors(&neutral, &wrong), Vec::<String>::new(), "{wrong}");
        assert_eq!(
            toolyard(&["run", "-q", "--from", "neutral"], &wrong.to_string()).code,
            Some(3),
            "{wrong}"
        );
    }
    let episodes = schema("episodes");
    for line in example("episodes.jsonl").lines() {
        check(&episodes, &serde_json::from_str(line).unwrap());
    }
    for wrong in [
        json!({"id": "e"}),
        json!({"turns": []}),
        json!({"id": "e", "turns": [{}]}),
        json!({"id": "e", "turns": [], "tools": [{"name": "x", "class_hint": "fast"}]}),
    ] {
        assert_ne!(errors(&episodes, &wrong), Vec::<String>::new(), "{wrong}");
        assert_eq!(
            toolyard(&["run", "-q", "--from", "episodes"], &wrong.to_string()).code,
            Some(3),
            "{wrong}"
        );
    }
}

/// KT-15: the schema of the report has every field of real reports.
#[test]
fn the_schema_of_the_report_has_every_field_of_reports() {
    let schema = closed(schema("report"));
    let place = workspace("schema-report");
    let place = place.to_str().unwrap();
    for more in
        [&["examples/batch.json"][..], &["examples/batch.json", "--sequential"], &["examples/episodes.jsonl"]]
    {
        let args = [&["run", "--report", "json", "--workspace", place], more].concat();
        let report: Value = serde_json::from_str(&toolyard(&args, "").stderr).unwrap();
        check(&schema, &report);
        let mut more = report.clone();
        more["another"] = 1.into();
        assert_ne!(errors(&schema, &more), Vec::<String>::new());
    }
}
