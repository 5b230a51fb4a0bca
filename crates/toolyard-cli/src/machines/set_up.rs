//! `toolyard sandbox setup micro-vm`: makes snapshots of machines before a call needs them, and tries one.

use super::{Found, Machines};
use crate::{
    cli::SandboxSetupArgs,
    config::Config,
    error::Error,
    exit::Exit,
    run::{interrupt::Interrupts, results},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{IsTerminal, stderr},
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::Instant;

/// What was made for one size of memory.
struct Made {
    memory: NonZeroU32,
    snapshot: PathBuf,
    bytes: u64,
    took: Duration,
}

/// Makes everything ready that calls in virtual machines need.
///
/// # Errors
/// What is missing, with how to get it, or what failed.
pub(crate) async fn set_up(args: SandboxSetupArgs) -> Result<Exit, Error> {
    let config = Config::load(args.setup.config.as_deref())?;
    let root = args.setup.workspace.or(config.root).unwrap_or_else(|| PathBuf::from("."));
    let Machines(found) = Machines::found(&config.machine, &root);
    let found = found.map_err(|missing| Error::SetUp(missing.join("; ")))?;
    let mut interrupts = Interrupts::listen();
    let (made, probe) = tokio::select! {
        ready = ready(&found) => ready.map_err(Error::SetUp)?,
        _ = interrupts.next() => return Ok(Exit::Interrupted),
    };
    let text = if args.json { as_json(&found, &made, probe) } else { in_words(&found, &made, probe) };
    results::print_text(&text)?;
    Ok(Exit::Ok)
}

/// Makes the snapshots, and runs a program that does nothing; returns how long that took.
async fn ready(found: &Found) -> Result<(Vec<Made>, Duration), String> {
    let mut made = Vec::new();
    for memory in &found.memory {
        if stderr().is_terminal() {
            anstream::eprintln!(
                "toolyard: a machine with {memory} MiB: booting it if there is no snapshot yet"
            );
        }
        let begun = Instant::now();
        let ready = found.machines.ready(memory.get()).await.map_err(|error| error.to_string())?;
        let bytes = fs::metadata(&ready.snapshot).map_err(|error| error.to_string())?.len();
        made.push(Made { memory: *memory, snapshot: ready.snapshot, bytes, took: begun.elapsed() });
    }
    let begun = Instant::now();
    found.sandbox.probe().await?;
    Ok((made, begun.elapsed()))
}

fn parts(found: &Found) -> [(&'static str, &Path); 5] {
    let parts = &found.parts;
    [
        ("qemu", &parts.qemu),
        ("kernel", &parts.kernel),
        ("modules", &parts.modules),
        ("agent", &parts.agent),
        ("busybox", &parts.busybox),
    ]
}

fn in_words(found: &Found, made: &[Made], probe: Duration) -> String {
    let mut text = "micro_vm is ready\n".to_owned();
    for (name, path) in parts(found) {
        text += &format!("  {name:<9} {}\n", path.display());
    }
    text += &format!("  {:<9} {}\n", "accel", found.parts.accel.as_str());
    for Made { memory, snapshot, bytes, took } in made {
        let (mebibytes, seconds) = (bytes >> 20, took.as_secs_f64());
        text += &format!(
            "  {:<9} {memory} MiB of memory, {mebibytes} MiB on disk, ready after {seconds:.1} s: {}\n",
            "snapshot",
            snapshot.display()
        );
    }
    text + &format!("  {:<9} a program that does nothing took {:.2} s\n", "probe", probe.as_secs_f64())
}

fn as_json(found: &Found, made: &[Made], probe: Duration) -> String {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let snapshots: Vec<Value> = made
        .iter()
        .map(|Made { memory, snapshot, bytes, took }| {
            let file = snapshot.display().to_string();
            json!({"memory_mib": memory, "file": file, "bytes": bytes, "ready_ms": millis(*took)})
        })
        .collect();
    let mut document = json!({
        "accel": found.parts.accel.as_str(),
        "snapshots": snapshots,
        "probe_ms": millis(probe),
    });
    for (name, path) in parts(found) {
        document[name] = path.display().to_string().into();
    }
    format!("{document}\n")
}
