//! What may run, what it may touch, what needs approval, and who sees a tool.

use super::*;
use toolyard::{FsMode, Grant, HiddenFrom, Host, Rule, Sandbox, ToolSettings};

fn rule_of(config: &Config, tool: &str) -> Rule {
    config.policy.rules.rule(tool, config.spec(tool).unwrap().side_effects)
}

/// PO-1: rules by name, by the prefix of a name, by side effects, and for the rest.
#[test]
fn rules_are_read() {
    let config = read(
        r#"
        [policy]
        default = "deny"
        side_effects = { none = "allow", read = { wall_time = "5s" } }
        [policy.rules]
        "patch_*" = "allow"
        list_dir = "deny"
        write_file = { sandbox = "process", wall_time = "30s", memory = "512MiB", processes = 16, open_files = 256, output = "1MiB" }
        "#,
    )
    .unwrap();
    let mut quick = Grant::own_form();
    quick.limits.wall_time = Some(Duration::from_secs(5));
    let mut bounded = Grant::within(Sandbox::Process);
    bounded.limits.wall_time = Some(Duration::from_secs(30));
    bounded.limits.memory = Some(512 << 20);
    bounded.limits.processes = Some(16);
    bounded.limits.open_files = Some(256);
    bounded.limits.output_bytes = Some(1 << 20);
    let rules =
        ["echo", "read_file", "list_dir", "patch_file", "write_file"].map(|tool| rule_of(&config, tool));
    assert_eq!(rules, [Rule::allow(), Rule::Allow(quick), Rule::Deny, Rule::allow(), Rule::Allow(bounded)]);
    assert_eq!(config.policy.patterns, ["patch_*"]);
    let nothing_said = read("").unwrap();
    assert_eq!(rule_of(&nothing_said, "write_file"), Rule::allow());
}

/// PO-1
#[test]
fn rules_that_make_no_sense_are_refused() {
    refused(
        "[policy.rules]\nraed_file = \"deny\"",
        2,
        "no tool is called 'raed_file'; did you mean 'read_file'?",
    );
    refused(
        "[policy.rules]\n\"git*push\" = \"deny\"",
        2,
        "'git*push': a star must be at the end of a name, as in 'git__*'",
    );
    let wanted = "must be \"allow\", \"deny\", or a table of limits such as { sandbox = \"host\", wall_time = \"30s\" }";
    refused("[policy]\ndefault = \"no\"", 2, &format!("[policy] default {wanted}, not 'no'"));
    refused(
        "[policy.side_effects]\nwrite = true",
        2,
        &format!("[policy] side_effects write {wanted}, not true"),
    );
    refused(
        "[policy.side_effects]\nwrites = \"deny\"",
        2,
        "unknown key 'writes' in [policy] side_effects; did you mean 'write'?",
    );
    refused(
        "[policy.rules]\necho = { wal_time = \"3s\" }",
        2,
        "unknown key 'wal_time' in [policy] rules 'echo'; did you mean 'wall_time'?",
    );
    refused(
        "[policy.rules]\necho = { sandbox = \"docker\" }",
        2,
        "[policy] rules 'echo' sandbox must be one of 'host', 'process', 'landlock', 'wasm', 'micro_vm', 'remote', not 'docker'",
    );
    refused(
        "[policy]\ndefault = { memory = \"512MB\" }",
        2,
        "[policy] default memory: '512MB' is not a size: write a whole number and a unit, such as \"512KiB\", \"64MiB\" \
         or \"1GiB\"",
    );
}

/// PO-1b: tools, paths and hosts; the path modes `r` and `w` have two spellings.
#[test]
fn capabilities_are_read() {
    let config = read(
        r#"
        [policy.capabilities]
        tools = ["read_file", "write_file"]
        fs = ["r:docs", "write:./out", "rw:tmp"]
        net = ["*.example.com", "api.example.org:443"]
        "#,
    )
    .unwrap();
    let may = &config.policy.capabilities;
    assert!(may.tool("read_file") && !may.tool("echo"));
    let path = |mode, path: &str| may.path(mode, Path::new(path));
    assert!(path(FsMode::Read, "docs/a") && !path(FsMode::Write, "docs/a"));
    assert!(path(FsMode::Write, "out/a") && !path(FsMode::Read, "out/a") && path(FsMode::ReadWrite, "tmp/a"));
    let host = |text: &str| may.host(&Host::parse(text).unwrap());
    assert!(host("a.example.com") && host("https://api.example.org/") && !host("example.com"));
    let all = read("").unwrap().policy.capabilities;
    assert!(all.tool("echo") && !all.bounds_fs() && !all.bounds_net());
}

/// PO-1b: a grant with `..`, and texts that are not a grant, a host or a tool.
#[test]
fn capabilities_that_make_no_sense_are_refused() {
    let fs = |grant: &str, what: &str| {
        refused(
            &format!("[policy.capabilities]\nfs = [\"{grant}\"]"),
            2,
            &format!("[policy] capabilities fs: {what}"),
        );
    };
    fs("r:../x", "a granted path must not contain '..': '../x'");
    fs("rw:/etc", "a granted path must be relative to the workspace's root: '/etc'");
    fs("docs", "'docs' is not a grant: write a mode and a path, such as \"r:docs\" or \"rw:out\"");
    fs(
        "x:docs",
        "'x:docs' is not a grant: write a mode and a path, such as \"r:docs\" or \"rw:out\"; the modes are r, w and rw",
    );
    refused(
        "[policy.capabilities]\nnet = [\"a.example\",\n\"a.*.com\"]",
        3,
        "[policy] capabilities net: 'a.*.com': a star must be alone or replace the first labels \
         of a name, as in '*.example.com'",
    );
    refused("[policy.capabilities]\ntools = [\"ehco\"]", 2, "no tool is called 'ehco'; did you mean 'echo'?");
}

/// PO-3: an "always" may leave chosen arguments of a tool open, whoever offers it.
#[test]
fn an_always_may_leave_arguments_open() {
    let config = read("[tools.patch_file]\napproval_ignores = [\"new\"]").unwrap();
    let expect = ToolSettings { approval_ignores: Some(vec!["new".to_owned()]), ..ToolSettings::default() };
    assert_eq!(config.tools["patch_file"], expect.into());
    refused(
        "[tools.patch_file]\napproval_ignores = [\"newer\"]",
        2,
        "[tools.\"patch_file\"] approval_ignores: the tool has no argument 'newer'; did you mean 'new'?",
    );
}

/// PO-3: trusted workspaces may have modes of their own.
#[test]
fn trusted_workspaces_may_have_their_own_modes() {
    let (here, once) = (Path::new("src").canonicalize().unwrap(), ConfirmationMode::PromptOnce);
    let text = "[confirmation]\ntrusted_workspaces = [\"SRC\"]\n\
                trusted_workspace_overrides = { execute = \"prompt_once\", read = \"prompt\" }";
    let text = text.replace("SRC", here.to_str().unwrap());
    let confirm = read(&text).unwrap().confirmations;
    let at = |root: &Path| confirm.clone().in_workspace(Some(root));
    let modes = |confirm: toolyard::Confirmations| SideEffects::ALL.map(|effects| confirm.mode("t", effects));
    use ConfirmationMode::{Auto, Prompt};
    assert_eq!(modes(at(&here)), [Auto, Prompt, Auto, once, Prompt]);
    assert_eq!(modes(at(Path::new("/etc"))), [Auto, Auto, Prompt, Prompt, Prompt]);
    refused(
        "[confirmation]\ntrusted_workspace_overrides = { execute = \"auto\" }",
        2,
        "[confirmation] trusted_workspace_overrides has no effect without trusted_workspaces",
    );
}

/// PO-3: existing directories are trusted under their canonical names; others are remembered as missing.
#[test]
fn trusted_workspaces_are_canonical() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = here.join("toolyard.toml");
    let text = "[confirmation]\ntrusted_workspaces = [\"src/../tests\", \"missing\", \"Cargo.toml\"]";
    let config = Config::read(&file, text).unwrap();
    assert_eq!(config.trusted.roots, [here.join("tests").canonicalize().unwrap()]);
    assert_eq!(config.trusted.missing, ["missing", "Cargo.toml"]);
    let write = |root: &Path| {
        let confirmations = config.confirmations.clone().in_workspace(Some(root));
        confirmations.mode("write_file", SideEffects::Write)
    };
    assert_eq!(write(&here.join("tests").canonicalize().unwrap()), ConfirmationMode::Auto);
    assert_eq!(write(here), ConfirmationMode::Prompt);
    let text = "[confirmation]\ntrusted_workspaces = [\"~\"]";
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    assert_eq!(read(text).unwrap().trusted.roots, home.into_iter().collect::<Vec<_>>());
    refused(
        "[confirmation]\ntrusted_workspaces = [\"\"]",
        2,
        "[confirmation] trusted_workspaces: name a directory; '.' is the directory of this file",
    );
}

/// PO-3
#[test]
fn prompt_once_is_a_mode() {
    let config = read("[confirmation]\ndefault = { write = \"prompt_once\" }").unwrap();
    assert_eq!(config.confirmations.mode("write_file", SideEffects::Write), ConfirmationMode::PromptOnce);
}

/// PO-1b: tools are hidden from roles and from sub-agents.
#[test]
fn tools_are_hidden() {
    let text = "[tools.echo]\nhidden_from = [\"sub-agents\", \"reviewer\"]\nrequires_capability = false";
    let hidden = HiddenFrom { sub_agents: true, roles: ["reviewer".into()].into() };
    let expect = ToolSettings {
        hidden_from: Some(hidden),
        requires_capability: Some(false),
        ..ToolSettings::default()
    };
    assert_eq!(read(text).unwrap().tools["echo"], expect.into());
    refused(
        "[tools.echo]\nhidden_from = [\"sub_agents\"]",
        2,
        "[tools.\"echo\"] hidden_from: write 'sub-agents'",
    );
    refused(
        "[tools.echo]\nhidden_from = [\" \"]",
        2,
        "[tools.\"echo\"] hidden_from must name roles, or 'sub-agents'",
    );
}
