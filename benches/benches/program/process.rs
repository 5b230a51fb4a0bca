//! The program as a process: how long it takes with nothing to do and with the README's example, how much memory that
//! needs, and how large the binary is.

use crate::median;
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tokio::time::Instant;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the program built with the same profile as this bench.
pub(crate) fn program() -> Option<PathBuf> {
    let me = env::current_exe().ok()?;
    let beside = me.parent()?.parent()?.join("toolyard").with_extension(env::consts::EXE_EXTENSION);
    beside.exists().then_some(beside)
}

pub(crate) fn measure(program: &Path, rounds: usize) -> Result<(), String> {
    measured(program, rounds).map_err(|error| format!("{}: {error}", program.display()))
}

fn measured(program: &Path, rounds: usize) -> io::Result<()> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program");
    fs::create_dir_all(&place)?;
    let nothing = place.join("nothing.json");
    fs::write(&nothing, r#"{"calls": []}"#)?;
    println!("\nthe program, {} bytes", fs::metadata(program)?.len());
    one("--version", rounds, || Ok(run(program, &["--version"])))?;
    one("run, no call", rounds, || Ok(run(program, &["run", "--report", "none", text(&nothing)?])))?;
    let (example, workspace) =
        (format!("{REPOSITORY}/examples/responses/openai-chat.json"), place.join("workspace"));
    one("run, the example", rounds, || {
        // The run changes files, so each one needs a fresh copy.
        copied(Path::new(&format!("{REPOSITORY}/examples/workspace")), &workspace)?;
        let workspace = text(&workspace)?;
        Ok(run(
            program,
            &["run", "--report", "none", "--approve", "auto", "--workspace", workspace, &example],
        ))
    })
}

/// Times a command, and prints the peak memory of all children so far: measure the small ones first.
fn one(what: &str, rounds: usize, mut prepare: impl FnMut() -> io::Result<Command>) -> io::Result<()> {
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let mut command = prepare()?;
        let started_at = Instant::now();
        let status = command.status()?;
        samples.push(started_at.elapsed().as_secs_f64() * 1e3);
        if !status.success() {
            return Err(io::Error::other(format!("'{what}' ended with {status}")));
        }
    }
    println!("  {what:<18} {:>8.1} ms {:>8} KiB at most", median(samples), peak());
    Ok(())
}

fn run(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns the peak memory of the largest child so far, in KiB.
#[cfg(target_os = "linux")]
fn peak() -> String {
    use nix::sys::resource::{UsageWho, getrusage};
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or_else(|error| error.to_string(), |usage| usage.max_rss().to_string())
}

#[cfg(not(target_os = "linux"))]
fn peak() -> String {
    "?".to_owned()
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::other("the target directory is not UTF-8"))
}

/// Replaces `to` with a fresh copy of the directory `from`.
fn copied(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copied(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
