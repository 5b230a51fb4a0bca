use super::*;
use std::time::Duration;
use toolyard::{ConfirmationMode, LimitScope, SideEffects, ToolSettings};
#[cfg(unix)]
use toolyard::{Rule, Sandbox};

mod mcp;
mod mock;
mod permission;
mod program;
mod resilience;
mod server;

fn read(text: &str) -> Result<Config, ConfigErrors> {
    Config::read(Path::new("conf/toolyard.toml"), text)
}

/// The lines and texts of all errors.
fn errors(text: &str) -> Vec<(usize, String)> {
    let errors = read(text).unwrap_err().errors.into_iter();
    errors.map(|error| (error.line.unwrap(), error.what)).collect()
}

/// Checks that this is the only error.
#[track_caller]
fn refused(text: &str, line: usize, what: &str) {
    assert_eq!(errors(text), [(line, what.to_owned())], "{text}");
}

/// One reading finds everything that is wrong, and reports nothing that only follows from something else.
#[test]
fn all_errors_of_a_file_are_found_at_once() {
    let text = r#"
[poool]
read = 3
[pools]
read = 0
raed = 4
[builtin]
enable = ["ecko", "read_fil"]
[tools.echo]
timeout = "3"
side_effects = "wirte"
class = "serial"
[tools.rm]
idempotent = "yes"
[mcp.x]
comand = "server"
trust = 1
[mcp.y]
ulr = "http://h"
token_env = "NOWHERE"
[tools.x__a]
max_concurrency = 1.5
[breaker]
ratio = 7
jitter = 9
[retry]
bse = "1s"
factor = 0.5
[confirmation]
per_tool = { x__a = "always", y__b = "auto", z = "auto" }
[policy]
default = "alow"
rules = { "a*b" = "deny" }
[redaction]
secrets = ["secret-1", "env:NO_SUCH_VARIABLE"]
"#;
    let found = errors(text);
    let starts = [
        (2, "unknown key 'poool'; did you mean 'pools'?"),
        (5, "[pools] read must be a whole number from 1, not 0"),
        (6, "unknown key 'raed' in [pools]; did you mean 'read'?"),
        (8, "no built-in tool is called 'ecko'; did you mean 'echo'?"),
        (8, "no built-in tool is called 'read_fil'; did you mean 'read_file'?"),
        (10, "[tools.\"echo\"] timeout: '3' is not a duration"),
        (11, "[tools.\"echo\"] side_effects must be one of"),
        (13, "no tool is called 'rm'"),
        (14, "[tools.\"rm\"] idempotent must be true or false, not a string"),
        (16, "unknown key 'comand' in [mcp.\"x\"]; did you mean 'command'?"),
        (17, "[mcp.\"x\"] trust must be true or false, not a number"),
        (19, "unknown key 'ulr' in [mcp.\"y\"]; did you mean 'url'?"),
        (22, "[tools.\"x__a\"] max_concurrency must be a whole number from 1, not 1.5"),
        (24, "[breaker] ratio"),
        (25, "[breaker] jitter"),
        (27, "unknown key 'bse' in [retry]; did you mean 'base'?"),
        (28, "[retry] factor"),
        (30, "[confirmation] per_tool 'x__a' must be one of"),
        (30, "no tool is called 'z'"),
        (32, "[policy] default must be"),
        (33, "'a*b': a star must be at the end of a name"),
        (35, "[redaction] secrets: do not write a secret here"),
        (35, "[redaction] secrets: the variable 'NO_SUCH_VARIABLE' cannot be read"),
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for ((line, what), (at, start)) in found.iter().zip(starts) {
        assert!(*line == at && what.starts_with(start), "line {line}: {what}\nexpected line {at}: {start}");
    }
}

/// However much is wrong, a person reads some of it.
#[test]
fn at_most_fifty_errors_are_printed() {
    let text: String = (0..60).map(|number| format!("key_{number} = 1\n")).collect();
    let errors = read(&text).unwrap_err();
    assert_eq!(errors.errors.len(), 60);
    let lines: Vec<String> = errors.lines().collect();
    assert_eq!(lines.len(), 51);
    assert!(lines[0].starts_with("conf/toolyard.toml line 1: unknown key 'key_0'; "), "{}", lines[0]);
    assert_eq!(lines[50], "conf/toolyard.toml: … and 10 more errors");
}

/// TOML has two kinds of number; a person who writes `1e3` means the same as with 1000.
#[test]
fn a_whole_number_may_have_an_exponent() {
    let config = read("[pools]\nread = 1e2\n[budget]\nturn = 1e3\nsession = { cost = 2.0 }").unwrap();
    assert_eq!((config.pools.read, config.budget.turn.calls), (100, Some(1000)));
    assert_eq!(config.budget.session.cost, Some(2));
    refused("[pools]\nread = 1.5", 2, "[pools] read must be a whole number from 1, not 1.5");
}

#[test]
fn every_key_is_read() {
    let config = read(
        r#"
        [workspace]
        root = "data"
        [pools]
        read = 4
        concurrent = 2
        [session]
        max_in_flight = 8
        tree_max_in_flight = 12
        priority = "high"
        queue_timeout = "20s"
        call_deadline = "5m"
        on_serial_failure = "skip_rest"
        on_interrupted = "continue"
        [builtin]
        enable = ["read_file", "write_file", "patch_file"]
        [tools."write_file"]
        class = "concurrent"
        max_concurrency = 3
        limit_scope = "tree"
        idempotent = false
        timeout = "5s"
        side_effects = "execute"
        [tools.patch_file]
        serial_scope = "db"
        [confirmation]
        default = { write = "deny", execute = "auto" }
        per_tool = { write_file = "prompt" }
        timeout = "1m"
        "#,
    )
    .unwrap();
    assert_eq!(config.root, Some("conf/data".into()));
    assert_eq!((config.pools.read, config.pools.concurrent), (4, 2));
    assert_eq!(config.max_in_flight, NonZeroUsize::new(8));
    assert_eq!(config.tree_max_in_flight, NonZeroUsize::new(12));
    assert_eq!(config.priority, Priority::High);
    assert_eq!(config.queue_timeout, Some(Duration::from_secs(20)));
    assert_eq!(config.call_deadline, Some(Duration::from_secs(300)));
    assert_eq!(config.on_serial_failure, OnSerialFailure::SkipRest);
    assert_eq!(config.on_interrupted, toolyard::OnInterrupted::Continue);
    assert_eq!(config.enabled, ["patch_file", "read_file", "write_file"]);
    let expect = ToolSettings {
        concurrent: Some(true),
        max_concurrency: NonZeroUsize::new(3),
        limit_scope: Some(LimitScope::Tree),
        idempotent: Some(false),
        timeout: Some(Duration::from_secs(5)),
        ..ToolSettings::default()
    };
    let expect = ToolConfig { side_effects: Some(SideEffects::Execute), settings: expect };
    assert_eq!(config.tools["write_file"], expect);
    let expect = ToolSettings { serial_scope: Some("db".into()), ..ToolSettings::default() };
    assert_eq!(config.tools["patch_file"], expect.into());
    let mode = |tool, effects| config.confirmations.mode(tool, effects);
    assert_eq!(mode("x", SideEffects::Write), ConfirmationMode::Deny);
    assert_eq!(mode("x", SideEffects::Execute), ConfirmationMode::Auto);
    assert_eq!(mode("write_file", SideEffects::Execute), ConfirmationMode::Prompt);
    assert_eq!(config.confirmations.answer_within(), Duration::from_secs(60));
}

#[test]
fn the_sample_configuration_is_valid_and_says_the_defaults() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/toolyard.toml");
    let (sample, defaults) = (Config::load(Some(&file)).unwrap(), Config::default());
    assert_eq!(sample.pools, defaults.pools);
    assert_eq!(sample.priority, defaults.priority);
    assert_eq!(sample.on_serial_failure, defaults.on_serial_failure);
    assert_eq!((sample.retry, sample.breaker), (defaults.retry, defaults.breaker));
    assert_eq!(sample.budget, defaults.budget);
    assert_eq!(sample.limits, defaults.limits);
    assert_eq!(format!("{:?}", sample.server.bounds), format!("{:?}", defaults.server.bounds));
    assert_eq!(sample.enabled.len(), defaults.enabled.len());
    let shell = |config: &Config| config.authored("shell");
    assert_eq!(
        shell(&sample).map(|spec| spec.attempt_timeout()),
        shell(&defaults).map(|spec| spec.attempt_timeout())
    );
    assert_eq!(sample.confirmations.answer_within(), defaults.confirmations.answer_within());
    for name in BUILTIN {
        let effects = sample.spec(name).unwrap().side_effects;
        assert_eq!(sample.confirmations.mode(name, effects), defaults.confirmations.mode(name, effects));
    }
}

#[test]
fn an_unknown_key_names_the_nearest_one_and_its_line() {
    refused("[pools]\nraed = 3", 2, "unknown key 'raed' in [pools]; did you mean 'read'?");
    refused("[pool]\nread = 3", 1, "unknown key 'pool'; did you mean 'pools'?");
    refused(
        "[tools.echo]\ntime_out = \"3s\"",
        2,
        "unknown key 'time_out' in [tools.\"echo\"]; did you mean 'timeout'?",
    );
    refused(
        "[confirmation]\ndefault = { wirte = \"auto\" }",
        2,
        "unknown key 'wirte' in [confirmation] default; did you mean 'write'?",
    );
}

#[cfg(unix)]
#[test]
fn the_shell_is_there_when_it_is_enabled() {
    let text = "[builtin]\nenable = [\"shell\"]\n[tools.shell]\nmax_concurrency = 1\n\
                [shell]\nenv = [\"PATH\", \"CI\"]\ntimeout = \"5m\"\noutput_bytes = 2048";
    let config = read(text).unwrap();
    assert_eq!(config.enabled, ["shell"]);
    let settings = ShellSettings {
        environment: Some(vec!["PATH".to_owned(), "CI".to_owned()]),
        timeout: Some(Duration::from_secs(300)),
        output_bytes: Some(2048),
        sandbox: Sandbox::Host,
    };
    assert_eq!(config.shell, settings);
    let spec = config.spec("shell").unwrap();
    assert_eq!((spec.attempt_timeout(), spec.side_effects), (Duration::from_secs(300), SideEffects::Execute));
    assert!(!Config::default().enabled.contains(&"shell"));
    let missing = "the tool 'shell' is not enabled: add it to [builtin] enable";
    refused("[tools.shell]", 1, missing);
}

/// SB-3: where commands run is said by the shell's section, unless a rule says it.
#[cfg(unix)]
#[test]
fn a_rule_says_more_than_the_shells_section() {
    let sandbox = |more: &str| {
        let text = format!("[builtin]\nenable = [\"shell\"]\n[shell]\nsandbox = \"micro_vm\"\n{more}");
        match read(&text).unwrap().policy.rules.rule("shell", SideEffects::Execute) {
            Rule::Allow(grant) => Some((grant.sandbox, grant.limits.wall_time)),
            Rule::Deny => None,
        }
    };
    assert_eq!(sandbox(""), Some((Some(Sandbox::MicroVm), None)));
    let limited = Some((Some(Sandbox::MicroVm), Some(Duration::from_secs(1))));
    assert_eq!(sandbox("[policy.side_effects]\nexecute = { wall_time = \"1s\" }"), limited);
    assert_eq!(sandbox("[policy.rules]\nshell = { sandbox = \"host\" }"), Some((Some(Sandbox::Host), None)));
    assert_eq!(sandbox("[policy.rules]\nshell = \"deny\""), None);
}

#[test]
fn nonsense_for_the_shell_is_refused() {
    let refused_name = |name: &str| {
        let what = format!("[shell] env: '{name}' cannot be the name of a variable, such as \"PATH\"");
        refused(&format!("[shell]\nenv = [\"PATH\", \"{name}\"]"), 2, &what);
    };
    ["", "A=b", "A B"].into_iter().for_each(refused_name);
    refused("[shell]\nenv = \"PATH\"", 2, "[shell] env must be a list of strings");
    refused("[shell]\ntimeout = \"0s\"", 2, "[shell] timeout: '0s' must be longer than zero");
    refused(
        "[shell]\noutput_bytes = 0",
        2,
        "[shell] output_bytes must be a whole number from 1024 to 1048576, not 0",
    );
    refused("[shell]\noutput = 5", 2, "unknown key 'output' in [shell]; did you mean 'output_bytes'?");
}

#[test]
fn an_unknown_tool_names_the_nearest_one() {
    refused(
        "[tools.raed_file]\ntimeout = \"3s\"",
        1,
        "no tool is called 'raed_file'; did you mean 'read_file'?",
    );
    refused("[builtin]\nenable = [\"ecko\"]", 2, "no built-in tool is called 'ecko'; did you mean 'echo'?");
    refused(
        "[builtin]\nenable = []\n[tools.echo]",
        3,
        "the tool 'echo' is not enabled: add it to [builtin] enable",
    );
    refused(
        "[confirmation.per_tool]\nwrite_fil = \"auto\"",
        2,
        "no tool is called 'write_fil'; did you mean 'write_file'?",
    );
}

#[test]
fn zero_and_wrong_kinds_are_refused() {
    refused("[pools]\nread = 0", 2, "[pools] read must be a whole number from 1, not 0");
    refused("[pools]\nread = -1", 2, "[pools] read must be a whole number from 1, not -1");
    refused("[pools]\nread = \"3\"", 2, "[pools] read must be a whole number from 1, not a string");
    refused("[tools.echo]\ntimeout = \"0s\"", 2, "[tools.\"echo\"] timeout: '0s' must be longer than zero");
    refused("[session]\nqueue_timeout = \"0s\"", 2, "[session] queue_timeout: '0s' must be longer than zero");
    refused("pools = 3", 1, "[pools] must be a table, not a number");
    refused(
        "[session]\npriority = \"low\"",
        2,
        "[session] priority must be one of 'normal', 'high', 'urgent', not 'low'",
    );
    refused(
        "[session]\ntree_max_in_flight = 0",
        2,
        "[session] tree_max_in_flight must be a whole number from 1, not 0",
    );
    refused(
        "[session]\non_serial_failure = \"stop\"",
        2,
        "[session] on_serial_failure must be one of 'continue', 'skip_rest', not 'stop'",
    );
}

#[test]
fn a_class_that_does_not_go_with_the_side_effects_is_refused() {
    refused(
        "[tools.read_file]\nclass = \"serial\"",
        2,
        "class = \"serial\" does not fit side effects read: set side_effects to \"write\", \"execute\" or \
         \"network\" if the tool has them",
    );
    refused(
        "[tools.write_file]\nclass = \"serial\"\nconcurrency = \"on\"",
        3,
        "concurrency contradicts class = \"serial\": set only one of them",
    );
    assert!(read("[tools.read_file]\nclass = \"serial\"\nside_effects = \"write\"").is_ok());
}

#[test]
fn a_scope_of_nothing_is_refused() {
    refused(
        "[tools.echo]\nlimit_scope = \"tree\"",
        2,
        "limit_scope has no effect without max_concurrency: set that too",
    );
    refused(
        "[tools.echo]\nmax_concurrency = 1\nlimit_scope = \"session\"",
        3,
        "[tools.\"echo\"] limit_scope must be one of 'agent', 'tree', 'engine', not 'session'",
    );
    refused(
        "[tools.read_file]\nserial_scope = \"db\"",
        2,
        "serial_scope is for serial calls, and this tool's calls are read: remove it",
    );
    refused(
        "[tools.write_file]\nserial_scope = \"db\"\nconcurrency = \"on\"",
        2,
        "serial_scope is for serial calls, and this tool's calls are concurrent: remove it",
    );
    refused(
        "[tools.write_file]\nserial_scope = \" \"",
        2,
        "serial_scope must not be empty: name what the calls change, such as \"db\"",
    );
    refused(
        "[tools.write_file]\nserial_scop = \"db\"",
        2,
        "unknown key 'serial_scop' in [tools.\"write_file\"]; did you mean 'serial_scope'?",
    );
}

#[test]
fn broken_toml_is_one_line_for_each_place() {
    let errors = errors("[pools]\nread = = 3\nconcurrent = 2\nx = \"a\ny = 1\nraed = 1");
    assert_eq!(errors.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4], "{errors:?}");
    for (_, what) in errors {
        assert!(what.starts_with("not TOML: ") && !what.contains('\n'), "{what}");
    }
}
