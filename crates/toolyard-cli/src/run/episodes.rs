//! Episodes: one session each, with its turns in order and one output line per turn; several at a time with `--jobs`.
//!
//! ```text
//!   lines ─► episodes ─► a task each: turn by turn ─► Order ─► results, in the order of the input
//!            (at most --jobs)            ▲              │
//!                                        └── Room ──────┘      held results are bounded
//! ```

use super::{
    count,
    kept::{Kept, Left, LinesLeft, Unreadable, parse},
    order::{End, Order, Place, Room},
    results::Results,
    runner::{BatchResult, Runner},
};
use crate::{
    error::Error,
    exit::Exit,
    input::{Line, Origin},
    report::Turn,
    stand_ins::{EpisodeKey, Ordinals},
};
use std::{num::NonZeroUsize, panic, path::PathBuf, sync::Arc};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use toolyard::{Outcome, Session};
use toolyard_wire::{DecodeError, Episode};

/// What to run, how, and where the results go.
pub(super) struct Plan {
    /// The episodes.
    pub(super) left: Left,
    /// How many run at a time.
    pub(super) jobs: NonZeroUsize,
    /// Where the results go.
    pub(super) results: Results,
    /// The turns of the whole input, kept ones included, if they could be counted.
    pub(super) turns: Option<u64>,
}

/// Runs every episode. A line that cannot be read does not affect the others.
pub(super) async fn run(runner: &Arc<Runner>, origin: &Origin, plan: Plan) -> Result<Exit, Error> {
    let Plan {
        left: Left { lines, kept, ordinals, unreadable, unreadable_turns, errors },
        jobs,
        results,
        turns,
    } = plan;
    runner.begin_episodes(&kept, turns);
    runner.skip(unreadable_turns);
    errors.iter().for_each(|error| runner.print(|| error.print()));
    let file = results.path();
    if let Some(file) = &file
        && kept.episodes > 0
    {
        runner.notify(&format!("kept in {}: {}", file.display(), kept.text()));
    }
    let mut lines = read_ahead(lines);
    let mut episodes = Episodes::new(runner, origin, jobs, results, unreadable, ordinals);
    let ended = episodes.run_all(&mut lines).await;
    // A task that still runs when results cannot be written is ended, and its calls with it.
    episodes.running.shutdown().await;
    ended?;
    episodes.finish(&kept, file.as_ref())
}

/// Reads on a blocking thread, so that an interrupt does not wait for it.
fn read_ahead(lines: LinesLeft) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        for line in lines {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// What a task tells of its episode.
enum Told {
    /// The results of a turn.
    Turn { place: Place, episode: Arc<Episode>, turn: usize, outcomes: Vec<Outcome> },
    /// No more will come.
    End { place: Place, end: End },
}

/// The episodes that run, and what they tell. Results are written where this runs, and not on the runtime's threads, which
/// a reader who stops reading would block.
struct Episodes<'a> {
    runner: &'a Arc<Runner>,
    origin: &'a Origin,
    jobs: usize,
    order: Order,
    room: watch::Sender<Room>,
    running: JoinSet<()>,
    teller: mpsc::Sender<Told>,
    told: mpsc::Receiver<Told>,
    /// The place of the next episode.
    next: Place,
    ordinals: Ordinals,
    unreadable: Unreadable,
    is_blank: bool,
}

impl<'a> Episodes<'a> {
    fn new(
        runner: &'a Arc<Runner>,
        origin: &'a Origin,
        jobs: NonZeroUsize,
        results: Results,
        unreadable: Unreadable,
        ordinals: Ordinals,
    ) -> Self {
        let order = Order::new(results);
        let (teller, told) = mpsc::channel(1);
        Self {
            runner,
            origin,
            jobs: jobs.get(),
            room: watch::Sender::new(order.room()),
            order,
            running: JoinSet::new(),
            teller,
            told,
            next: 0,
            ordinals,
            is_blank: unreadable.count() == 0,
            unreadable,
        }
    }

    /// Runs the episodes of these lines; after an interrupt, those that have started.
    async fn run_all(&mut self, lines: &mut mpsc::Receiver<Line>) -> Result<(), Error> {
        let mut is_over = false;
        // A task has told everything before it ends.
        while !(is_over && self.running.is_empty() && self.told.is_empty()) {
            let may_start =
                !is_over && self.running.len() < self.jobs && self.order.may_start(self.next, self.jobs);
            tokio::select! {
                biased;
                () = self.runner.interrupted(), if !is_over => is_over = true,
                Some(told) = self.told.recv() => self.take(told)?,
                Some(ended) = self.running.join_next() => propagate(ended),
                line = lines.recv(), if may_start => match line {
                    Some(line) => self.start(&line),
                    None => is_over = true,
                },
            }
        }
        Ok(())
    }

    fn take(&mut self, told: Told) -> Result<(), Error> {
        match told {
            Told::Turn { place, episode, turn, outcomes } => {
                let (order, line) = (&mut self.order, episode.results(turn, &outcomes));
                self.runner.print(|| order.line(place, &line))?;
            }
            Told::End { place, end } => {
                let order = &mut self.order;
                self.runner.print(|| order.end(place, end))?;
            }
        }
        self.room.send_replace(self.order.room());
        Ok(())
    }

    fn start(&mut self, line: &Line) {
        self.is_blank = false;
        match parse(line) {
            Ok(episode) => {
                let task = Task {
                    runner: self.runner.clone(),
                    place: self.next,
                    number: self.ordinals.next(&episode.id),
                    episode: Arc::new(episode),
                    teller: self.teller.clone(),
                    room: self.room.subscribe(),
                    leaves_out: !self.order.is_by_turn(),
                };
                self.next += 1;
                self.running.spawn(task.run());
            }
            Err(why) => {
                let error = self.origin.line_error(line.number, why);
                self.runner.skip(count::of_line(line));
                if self.unreadable.add() {
                    self.runner.print(|| error.print());
                }
            }
        }
    }

    /// Says what is left, and what has failed.
    fn finish(self, kept: &Kept, file: Option<&PathBuf>) -> Result<Exit, Error> {
        let Self { runner, origin, order, next, unreadable, is_blank, .. } = self;
        if runner.is_interrupted() {
            runner.notify(&how_to_go_on(order.written(), kept, file));
        } else if is_blank && kept.episodes == 0 {
            return Err(origin.error(DecodeError::Empty));
        } else if next == 0 && kept.episodes > 0 {
            runner.notify("nothing is left to run");
        }
        if unreadable.unreported() > 0 {
            let more = unreadable.unreported();
            runner.notify(&format!("{origin}: … and {more} more lines could not be read as episodes"));
        }
        let failed = runner.exit_after_calls(kept.failed > 0);
        Ok(if unreadable.count() > 0 { Exit::Input } else { failed })
    }
}

/// A panic in a task is one of the program.
fn propagate(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        panic::resume_unwind(error.into_panic());
    }
}

fn how_to_go_on(written: u64, kept: &Kept, file: Option<&PathBuf>) -> String {
    let count = |episodes| crate::display::count(usize::try_from(episodes).unwrap_or(usize::MAX), "episode");
    match file {
        Some(file) => {
            let episodes = count(kept.episodes + written);
            format!("{episodes} in {}: to go on, run the same command again", file.display())
        }
        None => format!(
            "stopped after {}; what --continue FILE writes could be continued with the same command",
            count(written)
        ),
    }
}

/// One episode.
struct Task {
    runner: Arc<Runner>,
    place: Place,
    /// The how manyth of its id it is in the input.
    number: u32,
    episode: Arc<Episode>,
    teller: mpsc::Sender<Told>,
    room: watch::Receiver<Room>,
    /// Whether it is left out if an interrupt reaches its calls.
    leaves_out: bool,
}

impl Task {
    /// Runs the turns in order. After an interrupt the engine is drained, and answers the remaining turns as such.
    async fn run(mut self) {
        let end = self.turns().await;
        let place = self.place;
        // Nobody listens once results cannot be written.
        let _ = self.teller.send(Told::End { place, end }).await;
    }

    async fn turns(&mut self) -> End {
        let key = EpisodeKey { id: self.episode.id.as_str().into(), number: self.number };
        let session = self.runner.open_session(key);
        let end = self.turns_in(&session).await;
        self.runner.end_session(&session);
        end
    }

    async fn turns_in(&mut self, session: &Session) -> End {
        let (place, episode) = (self.place, self.episode.clone());
        for (turn, calls) in episode.turns.iter().enumerate() {
            // The sender lives as long as anybody waits for this episode.
            let _ = self.room.wait_for(|room| room.is_for(place)).await;
            let BatchResult { outcomes, timeline } = self.runner.run_batch(session, calls).await;
            if self.leaves_out && self.runner.is_interrupted() && outcomes.iter().any(is_touched) {
                return End::LeftOut;
            }
            let of_episode = Turn { episode: episode.id.as_str().into(), place, turn };
            self.runner.record(Some(of_episode), &outcomes, timeline);
            let told = Told::Turn { place, episode: episode.clone(), turn, outcomes };
            if self.teller.send(told).await.is_err() {
                break;
            }
        }
        self.runner.record_end(place);
        End::Whole
    }
}

/// Whether an interrupt may be why a call ended as it did. A failure of its own looks the same where a program was told to
/// stop, so every failure counts.
fn is_touched(outcome: &Outcome) -> bool {
    !outcome.success() || outcome.cancel_requested
}
