//! Downloads packages into a directory, without a sandbox and without running anything of them.

use super::wanted::Source;
use crate::containment;
use std::{
    env,
    path::{Path, PathBuf},
};
use tokio::io::AsyncReadExt;
use toolyard_process::{End, HeadTail, Program, Ran, Report};

/// How much is kept of what an installer prints, in bytes.
const PRINTED_MAX: usize = 4 << 10;

/// The name of the helper of an installer in process lists.
const HELPER_NAME: &str = "toolyard-fetch";

/// Installs into a directory.
///
/// # Errors
/// Which command failed, and what it printed.
///
/// # Cancel safety
/// Dropping the future ends the installer.
pub(super) async fn install(source: &Source, directory: &Path, tell: impl Fn(&str)) -> Result<(), String> {
    match source {
        Source::Npm { packages, .. } => {
            let into = directory.display().to_string();
            let mut words = vec!["install", "--ignore-scripts", "--no-audit", "--no-fund", "--install-links"];
            words.extend(["--prefix", &into, "--"]);
            words.extend(packages.iter().map(String::as_str));
            run("npm", &words, &tell).await
        }
        Source::Python { packages, python, .. } => {
            let into = directory.join("venv").display().to_string();
            match found("uv") {
                Some(_) => with_uv(packages, python.as_deref(), &into, &tell).await,
                None => with_pip(packages, python.as_deref(), &into, &tell).await,
            }
        }
    }
}

/// Nothing is built, because that would run what was downloaded; and nothing compiled, because that starts an
/// interpreter in an environment that holds it.
async fn with_uv(
    packages: &[String],
    python: Option<&str>,
    into: &str,
    tell: impl Fn(&str),
) -> Result<(), String> {
    let mut words = vec!["venv", "--quiet"];
    words.extend(python.iter().flat_map(|python| ["--python", python]));
    words.push(into);
    run("uv", &words, &tell).await?;
    // Copied, because uv would share the files with its own cache, and whoever writes there would change them here.
    let mut words = vec!["pip", "install", "--quiet", "--link-mode", "copy", "--only-binary", ":all:"];
    words.extend(["--python", into, "--"]);
    words.extend(packages.iter().map(String::as_str));
    run("uv", &words, &tell).await
}

/// The same without uv.
async fn with_pip(
    packages: &[String],
    python: Option<&str>,
    into: &str,
    tell: impl Fn(&str),
) -> Result<(), String> {
    let interpreter = match python {
        None => "python3".to_owned(),
        Some(path) if Path::new(path).is_absolute() => path.to_owned(),
        Some(version) => format!("python{version}"),
    };
    run(&interpreter, &["-m", "venv", into], &tell).await?;
    let inside = Path::new(into).join("bin").join("python").display().to_string();
    let mut words = vec!["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
    words.extend(["--only-binary=:all:", "--"]);
    words.extend(packages.iter().map(String::as_str));
    run(&inside, &words, &tell).await
}

/// Runs a command to its end, with the environment of this process.
async fn run(command: &str, words: &[&str], tell: impl Fn(&str)) -> Result<(), String> {
    tell(&format!("{command} {}", words.join(" ")));
    let program = Program::new(command).args(words.iter().copied()).envs(env::vars_os());
    let started = program.helper_name(HELPER_NAME).start(&containment::of_this_program());
    let mut started = started.map_err(|error| format!("'{command}' cannot be started: {error}"))?;
    let (mut piece, mut printed) = (vec![0; PRINTED_MAX], HeadTail::new(PRINTED_MAX));
    while let Ok(bytes @ 1..) = started.stdout.read(&mut piece).await {
        printed.push(&piece[..bytes]);
    }
    match started.processes.ended().await {
        Report::Ran(Ran { end: Some(End::Exited(0)), .. }) => Ok(()),
        Report::NotStarted(why) => Err(format!("'{command}' cannot be started: {why}")),
        Report::Ran(Ran { end, .. }) => {
            let end = end.map_or_else(|| "it was ended".to_owned(), |end| end.to_string());
            let printed = printed.into_text();
            let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            Err(format!("'{command} {}' failed ({end}): {}", words[0], lines.join("; ")))
        }
    }
}

/// Where a program lies, as it is searched for in `PATH`.
pub(super) fn found(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}
