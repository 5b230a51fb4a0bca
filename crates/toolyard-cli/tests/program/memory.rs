//! How much of the machine's memory the program takes at most.

use crate::{child::program, place::dir};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    process::{Child, ChildStdout},
    thread,
};

/// The most memory that a process has had so far, in KiB; `None` if it is over.
fn peak_of(process: u32) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse().ok()
}

/// Reads all that a child writes, and its peak while it still had something to write.
fn written(child: &Child, mut stdout: ChildStdout) -> (Vec<u8>, usize) {
    let (mut all, mut peak, mut chunk) = (Vec::new(), 0, vec![0; 1 << 16]);
    loop {
        let length = stdout.read(&mut chunk).unwrap();
        peak = peak.max(peak_of(child.id()).unwrap_or_default());
        if length == 0 {
            return (all, peak);
        }
        all.extend_from_slice(&chunk[..length]);
    }
}

/// CC-4: a model that reads one large file 10 000 times, which needs no approval, gets as many results as there is
/// room for, and an error for each of the others. Beside the 64 MiB of results, which are written one by one, the program
/// takes no more than three times as much.
#[test]
fn many_large_reads_take_bounded_memory() {
    let workspace = dir("large-reads");
    fs::write(workspace.join("large.txt"), format!("{}\n", "x".repeat(99)).repeat(2_000)).unwrap();
    let config = workspace.join("toolyard.toml");
    fs::write(&config, "[workspace]\nroot = \".\"\n").unwrap();
    let read =
        |n: usize| json!({"call_id": n.to_string(), "name": "read_file", "arguments": {"path": "large.txt"}});
    let input = json!({"calls": (0..10_000).map(read).collect::<Vec<_>>()}).to_string();

    let mut child =
        program(&["run", "--report", "none", "--config", config.to_str().unwrap()]).spawn().unwrap();
    let (mut stdin, mut stderr) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    let stdout = child.stdout.take().unwrap();
    let (output, peak) = thread::scope(|scope| {
        scope.spawn(move || drop(stdin.write_all(input.as_bytes())));
        scope.spawn(move || stderr.read_to_end(&mut Vec::new()));
        written(&child, stdout)
    });
    assert_eq!(child.wait().unwrap().code(), Some(1));

    let output: Value = serde_json::from_slice(&output).unwrap();
    let results = output["results"].as_array().unwrap();
    let count = |what: &str| {
        let is = |result: &&Value| result["status"] == what || result["error"]["code"] == what;
        results.iter().filter(is).count()
    };
    let (ok, refused) = (count("ok"), count("overloaded") + count("output_too_large"));
    assert_eq!((results.len(), ok + refused), (10_000, 10_000));
    println!("{ok} results, {peak} KiB");
    assert!((300..400).contains(&ok), "{ok} of 200 KB in 64 MiB");
    assert!((1..256 << 10).contains(&peak), "{peak} KiB");
}
