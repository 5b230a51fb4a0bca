//! The guard: counts the instructions of a call and compares them with figures in the repository.
//!
//! ```text
//!   guard [--update] --compiler TEXT FIGURES         counts every case, and compares it or writes it down
//!   guard axis AXIS CALLS                            counts every contender of an axis, such as `stages`
//!   guard count AXIS CONTENDER CALLS short|long      runs one contender, as callgrind needs it
//! ```
//!
//! A case is run twice under callgrind, once with few batches and once with many; both runs prepare all inputs. The
//! difference, divided by the number of additional calls, is the cost of one call. Start-up and one-time costs cancel
//! out. Instruction counts are stable where seconds are not: the same binary gives the same figures within a few in a
//! thousand, whatever else the machine does. They say nothing about waiting, caches or contention between cores:
//! `toolyard bench` does.

mod callgrind;
mod case;
mod figures;
mod verdict;

use case::Case;
use figures::{Counts, Figures};
use std::{path::Path, process::ExitCode};
use toolyard_bench::count;

const USAGE: &str = "\
usage: guard [--update] --compiler TEXT FIGURES | guard axis AXIS CALLS | guard count AXIS CONTENDER CALLS short|long";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["count", axis, contender, calls, "short"] => count(axis, contender, calls, false),
        ["count", axis, contender, calls, "long"] => count(axis, contender, calls, true),
        ["axis", axis, calls] => print_axis(axis, calls),
        ["--update", "--compiler", compiler, file] => update(compiler, Path::new(file)),
        ["--compiler", compiler, file] => check(compiler, Path::new(file)),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(holds) if holds => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("guard: {error}");
            ExitCode::from(2)
        }
    }
}

fn count(axis: &str, contender: &str, calls: &str, long: bool) -> Result<bool, String> {
    let calls = calls.parse().map_err(|_| USAGE.to_owned())?;
    count::run(case::batches(axis, contender, calls), long).map(|()| true)
}

/// Counts every contender of an axis.
fn print_axis(axis: &str, calls: &str) -> Result<bool, String> {
    let calls = calls.parse().map_err(|_| USAGE.to_owned())?;
    println!("instructions per call, {axis}, batches of {calls}");
    for contender in count::contenders(axis)? {
        println!("{contender:<24} {:>8}", callgrind::per_call(case::batches(axis, &contender, calls))?);
    }
    Ok(true)
}

/// Counts and compares; returns whether nothing has become more expensive.
fn check(compiler: &str, file: &Path) -> Result<bool, String> {
    let kept = Figures::read(file)?;
    let key = figures::key(compiler);
    let Some(kept) = kept.of(&key) else {
        print!("{}", verdict::unknown(&key, &counted()?));
        // A guard that compares nothing guards nothing, so a new compiler must come with its figures.
        return Ok(std::env::var("CI").as_deref() != Ok("true"));
    };
    let verdict = verdict::compare(kept, &counted()?);
    print!("{verdict}");
    Ok(verdict.holds())
}

/// Counts, and writes the figures down.
fn update(compiler: &str, file: &Path) -> Result<bool, String> {
    let mut kept = Figures::read(file)?;
    let counts = counted()?;
    let key = figures::key(compiler);
    if let Some(before) = kept.of(&key) {
        print!("{}", verdict::compare(before, &counts));
    }
    kept.set(key, counts);
    kept.write(file)?;
    println!("written to {}", file.display());
    Ok(true)
}

fn counted() -> Result<Counts, String> {
    let one = |case: &Case| callgrind::per_call(case.run).map(|count| (case.name.to_owned(), count));
    case::CASES.iter().map(one).collect()
}
