//! Tools that are programs.

use super::*;
use std::fs;
use toolyard::{Form, FsMode, OutputKind, Program, ProgramIo};

/// A configuration in a directory of its own, which has the file `count`.
fn placed(text: &str) -> (tempfile::TempDir, Result<Config, ConfigErrors>) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("count"), "#!/bin/sh\n").unwrap();
    fs::write(dir.path().join("count.json"), r#"{"type": "object"}"#).unwrap();
    let config = Config::read(&dir.path().join("toolyard.toml"), text);
    (dir, config)
}

#[track_caller]
fn wrong(text: &str, line: usize, starts: &str) {
    let (_dir, config) = placed(text);
    let errors = config.unwrap_err().errors;
    assert!(errors.len() == 1 && errors[0].line == Some(line), "{text}: {errors:?}");
    assert!(errors[0].what.starts_with(starts), "{text}: {}", errors[0].what);
}

/// SB-1: a program is a tool, whose paths are relative to the file that names them.
#[test]
fn a_program_is_a_tool() {
    let (dir, config) = placed(
        r#"
        [program.word_count]
        description = "Counts the words of a text"
        input_schema = { type = "object", required = ["text"], properties = { text = { type = "string" }, most = { maximum = 1.5 } } }
        side_effects = "none"
        command = ["./count", "--json", "./count.json", "count.json"]
        output = "json"
        output_bytes = "2KiB"
        cwd = "sub"
        env = { LANG = "C" }
        [tools.word_count]
        timeout = "5s"
        [policy.rules]
        word_count = { sandbox = "host" }
        "#,
    );
    let config = config.unwrap();
    let tool = &config.programs[0];
    assert_eq!((&*tool.spec.name, tool.spec.side_effects), ("word_count", SideEffects::None));
    assert_eq!(tool.spec.input_schema.as_ref().unwrap()["properties"]["most"]["maximum"], 1.5);
    assert_eq!(tool.program.form(), Form::Command);
    let Program::Command(command) = &tool.program else { panic!("{:?}", tool.program) };
    let at = |name: &str| dir.path().join(name);
    assert_eq!(command.program, at("count"));
    assert_eq!(command.arguments, ["--json".into(), at("count.json").into_os_string(), "count.json".into()]);
    assert_eq!(command.io, ProgramIo::Contract(OutputKind::Json));
    assert_eq!((command.output_bytes, command.directory.to_str()), (2048, Some("sub")));
    assert_eq!((&*command.variables[0].name, command.variables[0].value.to_str()), ("LANG", Some("C")));
    assert_eq!(tool.files, [at("count"), at("count.json")]);
    assert_eq!(config.tools["word_count"].settings.timeout, Some(Duration::from_secs(5)));
}

/// SB-1: until its author says more, a program may do anything; it says which of its arguments are paths and hosts.
#[test]
fn what_is_not_said_is_the_worst() {
    let (dir, config) = placed(
        r#"
        [program.count]
        description = "Counts"
        input_schema = "count.json"
        command = ["./count"]
        paths = { from = "r", to = "w" }
        hosts = ["site"]
        "#,
    );
    let config = config.unwrap();
    let spec = &config.programs[0].spec;
    assert_eq!(spec.side_effects, SideEffects::Execute);
    assert_eq!(spec.input_schema.as_ref().unwrap()["type"], "object");
    let mut paths: Vec<_> = spec.requires_fs.iter().map(|path| (&*path.argument, path.mode)).collect();
    paths.sort_unstable_by_key(|(argument, _)| *argument);
    assert_eq!(paths, [("from", FsMode::Read), ("to", FsMode::Write)]);
    assert_eq!(spec.requires_net, ["site"]);
    assert_eq!(config.programs[0].governing().collect::<Vec<_>>(), [dir.path().join("count")]);
}

/// A program that is searched for is found once, at the start.
#[cfg(unix)]
#[test]
fn a_program_without_a_place_is_searched() {
    let (_dir, config) = placed("[program.a]\ndescription = \"a\"\ncommand = [\"sh\", \"-c\", \"true\"]");
    let config = config.unwrap();
    let Program::Command(command) = &config.programs[0].program else { panic!("no command") };
    assert!(command.program.is_absolute() && command.program.ends_with("sh"), "{:?}", command.program);
    assert_eq!(config.programs[0].files, Vec::<PathBuf>::new());
}

/// Each mistake is named with what to do.
#[test]
fn mistakes_are_named() {
    let with = |more: &str| format!("[program.a]\ndescription = \"a\"\n{more}");
    wrong(&with(""), 1, "[program.\"a\"] needs a command, such as");
    wrong(&with("command = []"), 1, "[program.\"a\"] command must name a program");
    wrong(&with("command = [\"./none\"]"), 3, "[program.\"a\"] command: there is no file '");
    wrong(
        &with("command = [\"no-such-program\"]"),
        3,
        "[program.\"a\"] command: no program called 'no-such-program' is in PATH",
    );
    wrong(
        &with("comand = [\"./count\"]"),
        3,
        "unknown key 'comand' in [program.\"a\"]; did you mean 'command'?",
    );
    wrong("[program.a]\ncommand = [\"./count\"]", 1, "[program.\"a\"] needs a description");
    wrong(
        "[program.a]\ndescription = \" \"\ncommand = [\"./count\"]",
        2,
        "[program.\"a\"] needs a description",
    );
    let with = |more: &str| with(&format!("command = [\"./count\"]\n{more}"));
    wrong(&with("output = \"yaml\""), 4, "[program.\"a\"] output must be one of 'text', 'json', not 'yaml'");
    wrong(&with("output_bytes = \"2GiB\""), 4, "[program.\"a\"] output_bytes must be from 1KiB to 1MiB");
    wrong(&with("paths = { file = \"read\" }"), 4, "[program.\"a\"] paths file must be how the path is used");
    wrong(
        &with("env = { A = \"$NO_SUCH_VARIABLE\" }"),
        4,
        "[program.\"a\"] env A: the environment variable NO_SUCH",
    );
    wrong(&with("input_schema = \"none.json\""), 4, "[program.\"a\"] input_schema: '");
    wrong(&with("input_schema = \"count\""), 4, "[program.\"a\"] input_schema: '");
    wrong(&with("input_schema = 1"), 4, "[program.\"a\"] input_schema: must be a table with a JSON Schema");
    wrong(&with("input_schema = { a = 1979-05-27 }"), 4, "[program.\"a\"] input_schema: a date has no JSON");
    let named = |name: &str| format!("[program.{name}]\ndescription = \"a\"\ncommand = [\"./count\"]");
    wrong(&named("\"a b\""), 1, "'a b' is not a name for a tool");
    wrong(&named("echo"), 1, "a built-in tool is called 'echo': choose another name");
}

/// SB-1: a module is a tool where the program can run modules, and a mistake that says so where it cannot.
#[test]
fn a_module_is_a_tool() {
    let text = "[program.a]\ndescription = \"a\"\nwasm = \"count\"\nargs = [\"--json\"]\nenv = { A = \"1\" }";
    if cfg!(feature = "wasm") {
        let (dir, config) = placed(text);
        let tool = &config.unwrap().programs[0];
        let Program::Wasm(module) = &tool.program else { panic!("{:?}", tool.program) };
        assert_eq!(
            (&module.file, &module.arguments[..]),
            (&dir.path().join("count"), &["--json".to_owned()][..])
        );
        assert_eq!((&*module.variables[0].name, &tool.files), ("A", &vec![dir.path().join("count")]));
        wrong(&text.replace("count", "none"), 3, "[program.\"a\"] wasm: there is no file '");
    } else {
        let what = "[program.\"a\"] wasm: this toolyard cannot run modules: build it with the feature 'wasm'";
        wrong(text, 3, what);
    }
    let both = "[program.a]\ndescription = \"a\"\nwasm = \"count\"\nurl = \"http://a\"";
    wrong(both, 3, "[program.\"a\"] is a url or a wasm module, not both");
}
