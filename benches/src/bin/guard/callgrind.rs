//! Instruction counts, by callgrind.

use std::process::{Command, Stdio};
use toolyard_bench::count::Run;

/// Returns the number of instructions that one call costs.
pub(crate) fn per_call(run: Run<'_>) -> Result<u64, String> {
    let (short, long) = (instructions(run, "short")?, instructions(run, "long")?);
    let more = u64::try_from(run.calls * run.more).map_err(|error| error.to_string())?;
    let difference = long.checked_sub(short);
    let difference =
        difference.ok_or_else(|| format!("'{}': more batches took fewer instructions", run.contender))?;
    Ok((difference + more / 2) / more)
}

/// Runs this program again under callgrind and returns its instruction count.
fn instructions(run: Run<'_>, length: &str) -> Result<u64, String> {
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(me);
    valgrind.args(["count", run.axis, run.contender, &run.calls.to_string(), length]);
    let done = valgrind.stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("cannot run valgrind: {error}"))?;
    let stderr = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        return Err(format!("'{}' {length} failed: {stderr}", run.contender));
    }
    collected(&stderr).ok_or_else(|| format!("callgrind reported no instruction count: {stderr}"))
}

/// Parses the number out of `==123== Collected : 456`.
fn collected(stderr: &str) -> Option<u64> {
    stderr.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::collected;

    #[test]
    fn the_count_is_parsed_from_the_output_of_callgrind() {
        let stderr = "==7== Callgrind, a call-graph\n==7== \n==7== Events    : Ir\n==7== Collected : 27362\n";
        assert_eq!(collected(stderr), Some(27362));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }
}
