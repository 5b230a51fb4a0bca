//! Starts lives of one child after another, ends all but the last one, and has what they have done checked.

use crate::{checking::check, child::Order, helping, point::Point, random::Random, tally::Tally};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Kill,
    Drain,
}

impl End {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Drain => "SIGTERM",
        }
    }

    fn signal(self) -> Signal {
        match self {
            Self::Kill => Signal::KILL,
            Self::Drain => Signal::TERM,
        }
    }
}

/// What is known of a life: what it has said, and how it has ended.
pub(crate) struct Life {
    pub(crate) order: Order,
    pub(crate) lines: Vec<String>,
    pub(crate) status: ExitStatus,
}

impl Life {
    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal().is_some()
    }
}

/// After how many lines, and how long after that, a life is ended.
struct Moment {
    lines: usize,
    after: Duration,
}

impl Moment {
    fn random(random: &mut Random, life: usize) -> Self {
        // About as many as such a life has.
        let lines = if life == 0 { 180 } else { 80 };
        Self { lines: random.below(lines) as usize, after: Duration::from_micros(random.below(400)) }
    }
}

fn start(order: &Order) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"])
        .envs(order.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Lets the child go on for a while: what it does then is not known, and need not be.
#[expect(
    clippy::disallowed_methods,
    reason = "no task runs on this thread, and nothing is expected of the time"
)]
fn let_go_on(time: Duration) {
    std::thread::sleep(time);
}

/// Lives a life, and ends it at this moment, if it lasts so long.
fn live(order: Order, end: Option<(End, Moment)>) -> Life {
    let mut child = start(&order);
    let mut end = end;
    let mut lines: Vec<String> = Vec::new();
    // A program that it is to start must be there.
    let mut is_ready = order.life > 0 || !order.plan().has_helper;
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        if let Some((with, moment)) = end.take_if(|(_, moment)| is_ready && lines.len() >= moment.lines) {
            let_go_on(moment.after);
            // What the pipe still has is read. The child is not waited for yet, so the number is its own.
            let _ = kill_process(Pid::from_child(&child), with.signal());
        }
        is_ready |= line == "helped";
        lines.push(line);
    }
    let status = child.wait().unwrap();
    Life { order, lines, status }
}

/// Ends the lives of this seed's plan at random moments.
pub(crate) fn at_random(end: End, seed: u64) -> Tally {
    let mut random = Random::new(!seed);
    let ends = 1 + random.below(3) as usize;
    let moments = (0..ends).map(|life| Some((end, Moment::random(&mut random, life)))).collect();
    scene(Some(seed), moments, None).0
}

/// Ends the life of the small plan at this point, and lets the next one end by itself.
pub(crate) fn at_point(point: Point) -> (Tally, bool) {
    scene(None, vec![None], Some(point))
}

/// Returns what was found, and whether the first life was ended.
fn scene(seed: Option<u64>, ends: Vec<Option<(End, Moment)>>, point: Option<Point>) -> (Tally, bool) {
    let directory = tempfile::tempdir().unwrap();
    let order = Order { directory: directory.path().to_owned(), seed, life: 0, point };
    let mut lives: Vec<Life> = Vec::new();
    let mut tally = Tally::new("");
    for (life, end) in ends.into_iter().chain([None]).enumerate() {
        let point = order.point.filter(|_| life == 0);
        let life = live(Order { life, point, ..order.clone() }, end);
        if life.lines.iter().any(|line| line == "helped") {
            tally.counts.helped += 1;
            tally.faults.extend(helping::let_go_on(&life.order).err());
        }
        lives.push(life);
    }
    check(&lives, &mut tally);
    let what = match (seed, point) {
        (Some(seed), _) => format!("seed {seed}"),
        (None, point) => format!("{point:?}"),
    };
    tally.faults.iter_mut().for_each(|fault| fault.insert_str(0, &format!("{what}: ")));
    if !tally.faults.is_empty() && std::env::var_os("TOOLYARD_KILLS_SHOW").is_some() {
        for life in &lives {
            println!("-- life {}: {}", life.order.life, life.status);
            life.lines.iter().for_each(|line| println!("{line}"));
        }
        println!("kept: {}", directory.keep().display());
    }
    (tally, lives[0].was_killed())
}
