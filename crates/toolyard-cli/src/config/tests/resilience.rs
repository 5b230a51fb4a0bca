use super::{read, refused};
use crate::config::BudgetSettings;
use std::time::Duration;
use toolyard::{BreakerPolicy, Budget, Jitter, KeyConflict, Limits, RetryPolicy, ToolSettings};

const SECOND: Duration = Duration::from_secs(1);

/// Checks the error for a setting on the second line.
fn refused_setting(section: &str, setting: &str, what: &str) {
    refused(&format!("[{section}]\n{setting}"), 2, &format!("[{section}] {what}"));
}

/// RT-1, RT-2, CB-2, CB-4, RT-11
#[test]
fn the_policies_of_all_tools_are_read() {
    let config = read(
        r#"
        [retry]
        max_attempts = 5
        base = "1s"
        factor = 1.5
        cap = "4s"
        jitter = "full"
        bucket = 500
        [breaker]
        enabled = true
        window = "10s"
        failures_min = 3
        ratio = 1
        consecutive = 7
        open_for = "2s"
        open_max = "20s"
        jitter = 0.0
        [budget]
        turn = 20
        session = { calls = 30, cost = 1000 }
        tree.cost = 0
        "#,
    )
    .unwrap();
    let retry = RetryPolicy::default().with_max_attempts(5).with_jitter(Jitter::Full).with_bucket(500);
    assert_eq!(config.retry, retry.with_delays(SECOND, 1.5, 4 * SECOND));
    let breaker = BreakerPolicy::default().with_failures_min(3).with_consecutive(Some(7));
    let breaker = breaker.with_window(10 * SECOND).with_ratio(1.0);
    let breaker = breaker.with_open(2 * SECOND, 20 * SECOND).with_jitter(0.0);
    assert_eq!(config.breaker, breaker);
    let session = Budget::calls(30).with_cost(1000);
    assert_eq!(config.budget, BudgetSettings { turn: Budget::calls(20), session, tree: Budget::cost(0) });
    assert!(!read("[breaker]\nenabled = false").unwrap().breaker.is_enabled());
}

/// RT-10, RT-11, CB-9, ID-3, SC-5
#[test]
fn the_settings_of_one_tool_are_read() {
    let config = read(
        r#"
        [tools.echo]
        backend = "api.example.com"
        rate = "5/s burst 10"
        cost = 3
        budget = 40
        timeout_grace = "2s"
        key_conflict = "fail"
        [tools.list_dir]
        budget = { calls = 4, cost = 5 }
        key_conflict = "join"
        "#,
    )
    .unwrap();
    let expect = ToolSettings {
        backend: Some("api.example.com".into()),
        rate: Some("5/s burst 10".parse().unwrap()),
        cost: Some(3),
        budget: Some(Budget::calls(40)),
        timeout_grace: Some(2 * SECOND),
        key_conflict: Some(KeyConflict::Fail),
        ..ToolSettings::default()
    };
    assert_eq!(config.tools["echo"], expect.into());
    let expect = ToolSettings {
        budget: Some(Budget::calls(4).with_cost(5)),
        key_conflict: Some(KeyConflict::Join),
        ..ToolSettings::default()
    };
    assert_eq!(config.tools["list_dir"], expect.into());
}

/// RT-1, CB-2: a tool's policy changes only the keys it sets.
#[test]
fn a_tools_policies_lie_over_those_of_all() {
    let config = read(
        r#"
        [tools.echo]
        retry = { max_attempts = 2 }
        breaker.failures_min = 9
        [tools.list_dir]
        retry = false
        breaker = false
        [retry]
        base = "2s"
        [breaker]
        ratio = 0.25
        "#,
    )
    .unwrap();
    let expect = ToolSettings {
        retry: Some(config.retry.with_max_attempts(2)),
        breaker: Some(config.breaker.with_failures_min(9)),
        ..ToolSettings::default()
    };
    assert_eq!((config.retry.base(), config.breaker.ratio()), (2 * SECOND, 0.25));
    assert_eq!(config.tools["echo"], expect.into());
    let off = ToolSettings {
        retry: Some(RetryPolicy::NONE),
        breaker: Some(BreakerPolicy::DISABLED),
        ..ToolSettings::default()
    };
    assert_eq!(config.tools["list_dir"], off.into());
}

/// RT-1, RT-2
#[test]
fn retries_that_make_no_sense_are_refused() {
    let check = |setting: &str, what: &str| refused_setting("retry", setting, what);
    check("max_attempts = 0", "max_attempts must be a whole number from 1 to 4294967295, not 0");
    check("max_attempts = -1", "max_attempts must be a whole number from 1 to 4294967295, not -1");
    check(
        "max_attempts = 4294967296",
        "max_attempts must be a whole number from 1 to 4294967295, not 4294967296",
    );
    check("bucket = 19", "bucket must be a whole number from 20 to 4294967295, not 19");
    check("max_attempts = 2.5", "max_attempts must be a whole number from 1 to 4294967295, not 2.5");
    check("base = \"0s\"", "base: '0s' must be longer than zero");
    check("cap = \"0ms\"", "cap: '0ms' must be longer than zero");
    let form = "is not a duration: write a number and a unit, such as \"250ms\", \"30s\", \"5m\" or \"1h\"";
    check("base = \"-1s\"", &format!("base: '-1s' {form}"));
    check("cap = \"NaNs\"", &format!("cap: 'NaNs' {form}"));
    check("base = 1", "base must be a string, not a number");
    check("factor = 0.99", "factor must be a number from 1, not 0.99");
    check("factor = 0", "factor must be a number from 1, not 0");
    check("factor = -4", "factor must be a number from 1, not -4");
    check("factor = nan", "factor must be a number from 1, not NaN");
    check("factor = +inf", "factor must be a number from 1, not inf");
    check("factor = \"4\"", "factor must be a number, not a string");
    check("jitter = \"none\"", "jitter must be one of 'half', 'full', not 'none'");
    check("cap = \"50ms\"", "cap must be at least 100ms, not 50ms");
    check("base = \"20s\"", "cap must be at least 20s, not 10s: set it too");
}

/// CB-2, CB-4
#[test]
fn breakers_that_make_no_sense_are_refused() {
    let check = |setting: &str, what: &str| refused_setting("breaker", setting, what);
    check("window = \"0s\"", "window: '0s' must be longer than zero");
    check("window = \"500ms\"", "window must be at least 1s, not 500ms");
    check("failures_min = 0", "failures_min must be a whole number from 1 to 4294967295, not 0");
    check("consecutive = 0", "consecutive must be a whole number from 1 to 4294967295, not 0");
    for (number, shown) in [("0", "0"), ("-0.5", "-0.5"), ("1.5", "1.5"), ("nan", "NaN"), ("inf", "inf")] {
        check(&format!("ratio = {number}"), &format!("ratio must be above 0 and at most 1, not {shown}"));
    }
    for (number, shown) in [("1", "1"), ("-0.1", "-0.1"), ("nan", "NaN"), ("-inf", "-inf")] {
        check(&format!("jitter = {number}"), &format!("jitter must be from 0 to below 1, not {shown}"));
    }
    check("open_for = \"0s\"", "open_for: '0s' must be longer than zero");
    check("open_max = \"10s\"", "open_max must be at least 30s, not 10s");
    check("open_for = \"10m\"", "open_max must be at least 600s, not 300s: set it too");
    check("enabled = \"no\"", "enabled must be true or false, not a string");
}

/// RT-10, RT-11, CB-9, ID-3, SC-5
#[test]
fn settings_of_a_tool_that_make_no_sense_are_refused() {
    let check = |setting: &str, what: &str| refused_setting("tools.\"echo\"", setting, what);
    let zero = "rate: a rate needs at least one attempt, a period above zero and a burst of at least one";
    check("rate = \"0/s\"", zero);
    check("rate = \"5/0s\"", zero);
    check("rate = \"5/s burst 0\"", zero);
    for text in ["-1/s", "NaN/s", "5", "5/s burst", "5 a second", ""] {
        let form =
            "write a whole number and a time, such as \"5/s\", \"100/min\", \"1/10s\" or \"10/s burst 20\"";
        check(&format!("rate = \"{text}\""), &format!("rate: '{text}' is not a rate: {form}"));
    }
    check("rate = 5", "rate must be a string, not a number");
    check("cost = -1", "cost must be a whole number from 0, not -1");
    check("cost = 1.5", "cost must be a whole number from 0, not 1.5");
    check("budget = -1", "budget must be a whole number from 0, not -1");
    check("budget = \"5\"", "budget must be a table, or a whole number from 0, not a string");
    check("budget = { calls = -5 }", "budget calls must be a whole number from 0, not -5");
    check("timeout_grace = \"0s\"", "timeout_grace: '0s' must be longer than zero");
    check("key_conflict = \"wait\"", "key_conflict must be one of 'join', 'fail', not 'wait'");
    check("retry = true", "retry must be a table, or false, not true");
    check("retry = 3", "retry must be a table, or false, not a number");
    check(
        "retry = { max_attempts = 0 }",
        "retry max_attempts must be a whole number from 1 to 4294967295, not 0",
    );
    check("retry = { factor = 0.5 }", "retry factor must be a number from 1, not 0.5");
    check("breaker = { ratio = 2 }", "breaker ratio must be above 0 and at most 1, not 2");
    refused(
        "[tools.echo]\nbackend = \" \"",
        2,
        "backend must not be empty: name what the tool uses, such as \"api.example.com\"",
    );
}

/// RT-11
#[test]
fn budgets_that_make_no_sense_are_refused() {
    let check = |setting: &str, what: &str| refused_setting("budget", setting, what);
    check("turn = -1", "turn must be a whole number from 0, not -1");
    check("session = 1.5", "session must be a whole number from 0, not 1.5");
    check("tree = { cost = nan }", "tree cost must be a whole number from 0, not nan");
}

#[test]
fn unknown_keys_of_a_policy_name_the_nearest() {
    let check = |text: &str, place: &str, key: &str, nearest: &str| {
        refused(text, 2, &format!("unknown key '{key}' in {place}; did you mean '{nearest}'?"));
    };
    check("[retry]\nmax_atempts = 3", "[retry]", "max_atempts", "max_attempts");
    check("[breaker]\nopen_four = 3", "[breaker]", "open_four", "open_for");
    check("[budget]\ntree = { cals = 3 }", "[budget] tree", "cals", "calls");
    check("[tools.echo]\nretry = { bas = 3 }", "[tools.\"echo\"] retry", "bas", "base");
    check("[tools.echo]\nbuget = 3", "[tools.\"echo\"]", "buget", "budget");
}

/// CC-4
#[test]
fn the_bounds_of_results_and_validations_are_read() {
    let text = "[limits]\nresults_batch = \"1MiB\"\nresults_session = \"2MiB\"\nresults_engine = \"1GiB\"\nvalidation_timeout = \"7s\"";
    let mut limits = Limits::default();
    assert_eq!(read("").unwrap().limits, limits);
    limits.results_batch_bytes_max = 1 << 20;
    limits.results_session_bytes_max = 2 << 20;
    limits.results_engine_bytes_max = 1 << 30;
    limits.validation_timeout = 7 * SECOND;
    assert_eq!(read(text).unwrap().limits, limits);
    refused_setting("limits", "results_batch = \"0MiB\"", "results_batch: '0MiB' must be more than zero");
}

/// CC-1, CC-4, CL-7
#[test]
fn the_bounds_of_handlers_are_read() {
    let text = "[limits]\nnested_depth = 3\nparked = 8\nblocking_threads = 4\nparked_blocking = 2";
    let mut limits = Limits::default();
    (limits.nested_depth_max, limits.parked_max) = (3, 8);
    (limits.blocking_threads_max, limits.parked_blocking_max) = (4, 2);
    assert_eq!(read(text).unwrap().limits, limits);
    limits = Limits::default();
    limits.nested_depth_max = 0;
    assert_eq!(read("[limits]\nnested_depth = 0").unwrap().limits, limits);
    for key in ["parked", "blocking_threads", "parked_blocking"] {
        let why = format!("{key} must be a whole number from 1, not 0");
        refused_setting("limits", &format!("{key} = 0"), &why);
    }
    refused_setting(
        "limits",
        "nested_depth = -1",
        "nested_depth must be a whole number from 0 to 4294967295, not -1",
    );
}
