//! What it costs to start a program, as a multiple of the least that it could: a plain child of this process. All ways are
//! measured in turns, and the fastest half of the rounds of each counts.
//!
//! `cargo bench -p toolyard-process`

use std::{process::Stdio, time::Duration};
use tokio::{process::Command, runtime::Builder, time::Instant};
use toolyard_process::{Containment, Program, Report};

/// How often each is started. As a test it is only shown to work.
const ROUNDS: usize = if cfg!(debug_assertions) { 2 } else { 60 };

/// The programs, and how many times a plain child the confined one may take: one that does nothing, and the least of an
/// interpreter. What is added is the same for all of them, so that there is no goal for the first.
const PROGRAMS: [(&[&str], Option<f64>); 2] =
    [(&["/bin/true"], None), (&["/usr/bin/python3", "-c", "pass"], Some(2.5))];

/// A way to start a program.
#[derive(Clone, Copy)]
enum Way {
    Plain,
    Group,
    Helper,
    Confined,
}

const WAYS: [(Way, &str); 4] = [
    (Way::Plain, "a plain child"),
    (Way::Group, "a process group"),
    (Way::Helper, "under a helper"),
    (Way::Confined, "confined"),
];

type Failed = Box<dyn std::error::Error>;

#[cfg(target_os = "linux")]
fn helped() -> Result<Containment, Failed> {
    Ok(Containment::Helper(toolyard_process::Helper::this_program()?))
}

#[cfg(not(target_os = "linux"))]
fn helped() -> Result<Containment, Failed> {
    Err("there are helpers on Linux alone".into())
}

#[cfg(target_os = "linux")]
fn confined(program: Program) -> Program {
    program.confined(toolyard_process::Confinement::new()).directory("/")
}

#[cfg(not(target_os = "linux"))]
fn confined(program: Program) -> Program {
    program
}

/// Starts a program and waits for its end.
async fn run(way: Way, words: &[&str]) -> Result<(), Failed> {
    let program = Program::new(words[0]).args(&words[1..]);
    let (program, containment) = match way {
        Way::Plain => {
            let mut plain = Command::new(words[0]);
            plain.args(&words[1..]).env_clear().stdin(Stdio::null()).stdout(Stdio::piped());
            return plain.output().await?.status.success().then_some(()).ok_or_else(|| "it failed".into());
        }
        Way::Group => (program, Containment::Group),
        Way::Helper => (program, helped()?),
        Way::Confined => (confined(program), helped()?),
    };
    let mut started = program.start(&containment)?;
    match started.processes.ended().await {
        Report::Ran(_) => Ok(()),
        Report::NotStarted(why) => Err(why.into()),
    }
}

/// The mean of the faster half of some times, in milliseconds.
fn typical(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.truncate(times.len().div_ceil(2));
    times.iter().map(Duration::as_secs_f64).sum::<f64>() / times.len() as f64 * 1e3
}

/// Whether a goal was met, if there is one.
fn judged(ratio: f64, goal: Option<f64>) -> String {
    let is_met = |goal| if ratio <= goal { "met" } else { "missed" };
    goal.map_or_else(String::new, |goal| format!(" (goal {goal}: {})", is_met(goal)))
}

async fn measure(words: &[&str], goal: Option<f64>) {
    let mut times = WAYS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((way, name), times) in WAYS.iter().zip(&mut times) {
            let began = Instant::now();
            if let Err(why) = run(*way, words).await {
                println!("process, {}: {name}: not measured: {why}", words.join(" "));
                continue;
            }
            times.push(began.elapsed());
        }
    }
    let mut plain = None;
    for ((way, name), times) in WAYS.iter().zip(times).filter(|(_, times)| !times.is_empty()) {
        let time = typical(times);
        let ratio = time / *plain.get_or_insert(time);
        let judged = judged(ratio, goal.filter(|_| matches!(way, Way::Confined)));
        println!(
            "process, {}: {name}: {time:.2} ms, {ratio:.2} times a plain child{judged}",
            words.join(" ")
        );
    }
}

fn main() -> Result<(), Failed> {
    #[cfg(target_os = "linux")]
    toolyard_process::help_if_asked();
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        for (words, goal) in PROGRAMS {
            measure(words, goal).await;
        }
    });
    Ok(())
}
