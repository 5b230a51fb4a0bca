//! KT-14: `toolyard init` writes a configuration and a first tool, and overwrites nothing.

#[cfg(unix)]
use crate::shared::missing::skip;
use crate::{
    child::{Done, fed, program, root, toolyard},
    place::dir,
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn init(dir: &Path, more: &[&str]) -> Done {
    toolyard(&[&["init", dir.to_str().unwrap()], more].concat(), "")
}

/// Runs the program in a directory, as a newcomer types it.
fn there(dir: &Path, args: &[&str]) -> Done {
    let mut program = program(args);
    program.current_dir(dir);
    fed(program, "")
}

/// Every file below a directory, with what it holds.
fn files(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.clone(), fs::read_to_string(&path).unwrap())),
        }
    }
    found
}

#[cfg(unix)]
fn has_python() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|done| done.status.success())
}

/// KT-14: what is written for Python passes `check`, and its batch runs.
#[cfg(unix)]
#[test]
fn a_tool_in_python_runs_as_it_is_written() {
    if !has_python() {
        return skip("no python3");
    }
    let place = dir("init-python").join("my agent");
    let done = init(&place, &["--lang", "python"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    for line in ["toolyard.toml", "tools/count_words.py", "/my agent'\n", "toolyard run batch.json"] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    let checked = there(&place, &["check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!checked.stdout.contains("warning:") && checked.stdout.contains("count_words"), "{checked:?}");
    let ran = there(&place, &["run", "batch.json", "--report", "none"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let results = ran.json();
    let counted = &results["results"][2]["structured"];
    assert_eq!(counted["lines"], 3, "{results}");
    // Its failures are worded for the model, and the path of another directory never reaches it.
    let calls = r#"{"calls": [{"call_id": "a", "name": "count_words", "arguments": {"path": "none.md"}},
                              {"call_id": "b", "name": "count_words", "arguments": {"path": "../batch.json"}}]}"#;
    fs::write(place.join("wrong.json"), calls).unwrap();
    let ran = there(&place, &["run", "wrong.json", "--report", "none"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let failed = ran.json();
    assert!(failed["results"][0].to_string().contains("cannot read none.md: FileNotFoundError"), "{failed}");
    assert_eq!(failed["results"][1]["error"]["code"], "permission_denied", "{failed}");
}

/// KT-14: every setting that is written as a comment is one that can be turned on; the server of the example alone is left
/// out, because it would be downloaded.
#[cfg(unix)]
#[test]
fn settings_in_comments_are_settings() {
    if !has_python() {
        return skip("no python3");
    }
    let place = dir("init-comments");
    assert_eq!(init(&place, &[]).code, Some(0));
    let file = place.join("toolyard.toml");
    let text = fs::read_to_string(&file).unwrap();
    let (mut turned_on, mut of_server) = (String::new(), false);
    for line in text.lines() {
        let setting = line.strip_prefix("# ").filter(|rest| {
            let name = rest.split(" = ").next().unwrap_or_default();
            rest.starts_with('[') || (name.len() < rest.len() && !name.contains(' '))
        });
        of_server = setting.is_some_and(|setting| setting.starts_with("[mcp.") || of_server);
        let shown = setting.filter(|_| !of_server).unwrap_or(line);
        turned_on.push_str(&format!("{shown}\n"));
    }
    fs::write(&file, &turned_on).unwrap();
    let mut checked = program(&["check", "--json"]);
    checked.current_dir(&place).env("API_KEY", "a key of my own");
    let checked = fed(checked, "");
    assert_eq!(checked.code, Some(0), "{checked:?}\n{turned_on}");
    let found = checked.json();
    assert_eq!(found["settings"]["queue_timeout"], "30s", "{found}");
    assert!(found["tools"].as_array().unwrap().iter().any(|tool| tool["tool"] == "search"), "{found}");
}

/// KT-14: the configuration beside a Rust package passes `check`, and its batch runs; the package has the name of its
/// directory, or the one that is given.
#[test]
fn a_package_in_rust_has_a_configuration_and_a_name() {
    let place = dir("init-rust").join("My Agent");
    let done = init(&place, &["--lang", "rust"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
    assert!(done.stdout.contains("cargo run") && done.stdout.contains("cargo test"), "{}", done.stdout);
    let checked = there(&place, &["check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(!checked.stdout.contains("warning:"), "{checked:?}");
    let ran = there(&place, &["run", "batch.json", "--report", "none"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let package = fs::read_to_string(place.join("Cargo.toml")).unwrap();
    assert!(package.contains("name = \"my-agent\"") && !package.contains("version}"), "{package}");
    let named = dir("init-rust-named");
    assert_eq!(init(&named, &["--lang", "rust", "--name", "notes"]).code, Some(0));
    let package = fs::read_to_string(named.join("Cargo.toml")).unwrap();
    assert!(package.contains("name = \"notes\""), "{package}");
}

/// KT-14: what is written in Rust is what the workspace compiles and tests, with the versions and features that the
/// written package asks for.
#[test]
fn the_package_is_what_the_workspace_compiles() {
    let place = dir("init-rust-compiled");
    assert_eq!(init(&place, &["--lang", "rust", "--name", "notes"]).code, Some(0));
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    let source = "crates/toolyard-cli/templates/rust/src/main.rs";
    assert_eq!(read(place.join("src/main.rs")), read(root().join(source)));
    let examples: toml::Table = read(root().join("examples/Cargo.toml")).parse().unwrap();
    let compiled = examples["example"].as_array().unwrap();
    assert!(compiled.iter().any(|one| one["path"].as_str() == Some(&format!("../{source}"))), "{compiled:?}");
    let package: toml::Table = read(place.join("Cargo.toml")).parse().unwrap();
    let workspace: toml::Table = read(root().join("Cargo.toml")).parse().unwrap();
    let of_workspace = &workspace["workspace"]["dependencies"];
    for section in ["dependencies", "dev-dependencies"] {
        for (name, asked) in package[section].as_table().unwrap() {
            let version = |value: &toml::Value| {
                let version = value.get("version").unwrap_or(value);
                version.as_str().unwrap().to_owned()
            };
            let (asked, ours) = (version(asked), version(&of_workspace[name]));
            assert!(ours == asked || ours.starts_with(&format!("{asked}.")), "{name}: {asked}, here {ours}");
        }
    }
}

/// KT-14: the package builds and passes its own tests, with the crates of this checkout in place of released ones. It
/// takes a build of its own, so `.ci/more` runs it.
#[test]
#[ignore = "compiles the engine again"]
fn the_package_builds_and_passes_its_tests() {
    let place = dir("init-rust-built");
    assert_eq!(init(&place, &["--lang", "rust", "--name", "notes"]).code, Some(0));
    let file = place.join("Cargo.toml");
    let crates = root().canonicalize().unwrap().join("crates");
    let patch = format!(
        "\n[patch.crates-io]\ntoolyard = {{ path = {:?} }}\ntoolyard-wire = {{ path = {:?} }}\n",
        crates.join("toolyard"),
        crates.join("toolyard-wire")
    );
    fs::write(&file, fs::read_to_string(&file).unwrap() + &patch).unwrap();
    fs::copy(root().join("Cargo.lock"), place.join("Cargo.lock")).unwrap();
    for command in ["run", "test"] {
        let done =
            Command::new(env!("CARGO")).args([command, "--quiet"]).current_dir(&place).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

/// KT-14: if a file exists, all that exist are named, and nothing is written or changed.
#[test]
fn nothing_is_overwritten() {
    for lang in ["python", "rust"] {
        let place = dir(&format!("init-refused-{lang}"));
        fs::create_dir(place.join("workspace")).unwrap();
        for file in ["toolyard.toml", "workspace/welcome.md", "other.txt"] {
            fs::write(place.join(file), format!("mine: {file}")).unwrap();
        }
        let before = files(&place);
        let done = init(&place, &["--lang", lang]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
        let expect = "toolyard: toolyard.toml, workspace/welcome.md exist in ";
        assert!(
            done.stderr.starts_with(expect) && done.stderr.contains("nothing is written"),
            "{}",
            done.stderr
        );
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        assert_eq!(files(&place), before);
        assert!(!place.join("tools").exists() && !place.join("src").exists());
    }
    // A second time is no different.
    let place = dir("init-twice");
    assert_eq!(init(&place, &["--lang", "rust"]).code, Some(0));
    let before = files(&place);
    assert_eq!(init(&place, &["--lang", "rust"]).code, Some(2));
    assert_eq!(files(&place), before);
}

/// KT-14: what cannot be made is refused in one line, and nothing is written.
#[test]
fn a_wrong_name_or_place_is_refused() {
    let place = dir("init-wrong");
    let file = place.join("file");
    fs::write(&file, "mine").unwrap();
    for (dir, more, expect) in [
        (&place, &["--lang", "rust", "--name", "my agent"][..], "cannot be a package's name"),
        (&place, &["--lang", "rust", "--name", "tokio"], "choose another one"),
        (&place, &["--name", "agent"], "add --lang rust"),
        (&place, &["--lang", "pyhton"], "'python'"),
        (&file, &[], "cannot write "),
    ] {
        let done = init(dir, more);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
        assert!(done.stderr.contains(expect) && done.stderr.lines().count() == 1, "{}", done.stderr);
        assert_eq!(files(&place).len(), 1);
    }
}

/// KT-14: without a directory, the files are written here, and no directory is named to go to.
#[test]
fn the_directory_is_this_one_unless_one_is_named() {
    let place = dir("init-here");
    let done = there(&place, &["init"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(place.join("toolyard.toml").exists() && !done.stdout.contains("  cd "), "{}", done.stdout);
}
