//! What was installed: its program, and the versions of all packages.

use super::wanted::Source;
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The program, relative to the directory, and versions by package.
pub(super) type Installed = (PathBuf, BTreeMap<String, String>);

/// Looks at what was installed into a directory.
///
/// # Errors
/// Why it has not the program that was asked for.
pub(super) fn look(source: &Source, directory: &Path) -> Result<Installed, String> {
    let (program, versions) = match source {
        Source::Npm { program, .. } => {
            let name = match program {
                Some(program) => program.clone(),
                None => only_program(directory)?,
            };
            (Path::new("node_modules").join(".bin").join(name), of_npm(directory)?)
        }
        Source::Python { program, .. } => (Path::new("venv").join("bin").join(program), of_python(directory)),
    };
    if directory.join(&program).is_file() {
        return Ok((program, versions));
    }
    let name = program.file_name().unwrap_or_default().display().to_string();
    let have = listed(&directory.join(program.parent().unwrap_or(Path::new(""))));
    Err(format!("the packages have no program '{name}'; they have {}", have.join(", ")))
}

/// What npm writes about the directory that it installs into.
#[derive(Debug, Deserialize)]
struct Root {
    #[serde(default)]
    dependencies: BTreeMap<String, String>,
}

/// What a package says of itself.
#[derive(Debug, Deserialize)]
struct Package {
    /// A program of the package's own name, or several by name.
    #[serde(default)]
    bin: Value,
}

/// What npm writes about all packages, by their place.
#[derive(Debug, Deserialize)]
struct Lock {
    packages: BTreeMap<String, Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    version: Option<String>,
}

fn read<T: for<'a> Deserialize<'a>>(file: &Path) -> Result<T, String> {
    let wrong = |error: &dyn std::error::Error| format!("'{}': {error}", file.display());
    let text = fs::read(file).map_err(|error| wrong(&error))?;
    serde_json::from_slice(&text).map_err(|error| wrong(&error))
}

/// The program that npx would run: the only one, or the one of the package's name.
fn only_program(directory: &Path) -> Result<String, String> {
    let Root { dependencies } = read(&directory.join("package.json"))?;
    let name = dependencies.into_keys().next().ok_or("npm installed no package")?;
    let plain = name.rsplit('/').next().unwrap_or(&name).to_owned();
    let package: Package = read(&directory.join("node_modules").join(&name).join("package.json"))?;
    let is_name = |name: &String| !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
    let programs: Vec<String> = match package.bin {
        Value::String(_) => vec![plain.clone()],
        Value::Object(programs) => programs.into_iter().map(|(name, _)| name).filter(is_name).collect(),
        _ => Vec::new(),
    };
    match programs.as_slice() {
        [] => Err(format!("'{name}' has no program")),
        [only] => Ok(only.clone()),
        several if several.contains(&plain) => Ok(plain),
        several => {
            let names = several.join(" | ");
            Err(format!("'{name}' has several programs: say which, as npx --package {name} {names}"))
        }
    }
}

fn of_npm(directory: &Path) -> Result<BTreeMap<String, String>, String> {
    let Lock { packages } = read(&directory.join("package-lock.json"))?;
    let version = |(place, locked): (String, Locked)| {
        let name = place.strip_prefix("node_modules/")?.to_owned();
        Some((name, locked.version?))
    };
    Ok(packages.into_iter().filter_map(version).collect())
}

/// As the directories say that installers of Python keep of each package.
fn of_python(directory: &Path) -> BTreeMap<String, String> {
    let lib = directory.join("venv").join("lib");
    let site = |python: String| listed(&lib.join(python).join("site-packages"));
    let names = listed(&lib).into_iter().flat_map(site);
    let version = |name: String| {
        let (name, version) = name.strip_suffix(".dist-info")?.rsplit_once('-')?;
        Some((name.to_owned(), version.to_owned()))
    };
    names.filter_map(version).collect()
}

/// The names in a directory, in order; none if it cannot be read.
fn listed(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory as npm leaves it, with a package that declares these programs.
    fn with_programs(bin: &str) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let (package, bins) =
            (place.path().join("node_modules/@s/a"), place.path().join("node_modules/.bin"));
        fs::create_dir_all(&package).unwrap();
        fs::create_dir_all(&bins).unwrap();
        fs::write(place.path().join("package.json"), r#"{"dependencies": {"@s/a": "1.2.3"}}"#).unwrap();
        let lock = r#"{"packages": {"": {}, "node_modules/@s/a": {"version": "1.2.3"}}}"#;
        fs::write(place.path().join("package-lock.json"), lock).unwrap();
        fs::write(package.join("package.json"), format!(r#"{{"name": "@s/a"{bin}}}"#)).unwrap();
        for program in ["a", "b"] {
            fs::write(bins.join(program), "").unwrap();
        }
        place
    }

    fn looked(bin: &str, program: Option<&str>) -> Result<String, String> {
        let place = with_programs(bin);
        let source = Source::Npm { packages: vec!["@s/a".into()], program: program.map(str::to_owned) };
        let (program, versions) = look(&source, place.path())?;
        assert_eq!(versions, BTreeMap::from([("@s/a".to_owned(), "1.2.3".to_owned())]));
        Ok(program.display().to_string())
    }

    /// SB-5: the program is the one that npx would run: the only one, the one of the package's name, the one named.
    #[test]
    fn the_program_of_a_package_is_the_one_that_npx_runs() {
        for (bin, program, expect) in [
            (r#", "bin": "x.js""#, None, "a"),
            (r#", "bin": {"b": "x.js"}"#, None, "b"),
            (r#", "bin": {"a": "x.js", "b": "y.js"}"#, None, "a"),
            (r#", "bin": {"a": "x.js", "b": "y.js"}"#, Some("b"), "b"),
        ] {
            assert_eq!(looked(bin, program), Ok(format!("node_modules/.bin/{expect}")), "{bin}");
        }
        for (bin, program, expect) in [
            ("", None, "'@s/a' has no program"),
            (
                r#", "bin": {"b": "x.js", "c": "y.js"}"#,
                None,
                "'@s/a' has several programs: say which, as npx --package @s/a b | c",
            ),
            (r#", "bin": {"../../x": "x.js"}"#, None, "'@s/a' has no program"),
            ("", Some("d"), "the packages have no program 'd'; they have a, b"),
        ] {
            let why = looked(bin, program).unwrap_err();
            assert!(why.starts_with(expect), "{bin}: {why}");
        }
    }
}
