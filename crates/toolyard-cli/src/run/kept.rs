//! What a file of results holds already: the beginning of the input, whole episodes of it.
//!
//! ```text
//!   input    e1          e2          e3          e4
//!   file     turn 0 1    turn 0 1    turn 0 {"id":"e3","tu
//!            kept        kept        cut off: e3 runs again, in a new session
//! ```

mod written;

use super::{count::of_line as turns_of_line, results_file::ResultsFile};
use crate::{
    display::count,
    error::Error,
    input::{Line, Lines, Origin},
    stand_ins::Ordinals,
};
use std::{io::BufReader, iter};
use toolyard_wire::Episode;
use written::{Found, Written};

/// The number of unreadable lines that are reported one by one.
const ERRORS_MAX: usize = 10;

/// The lines of the input that cannot be read.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    count: usize,
}

impl Unreadable {
    /// Counts a line. Returns whether it is to be reported by itself.
    pub(super) fn add(&mut self) -> bool {
        self.count += 1;
        self.count <= ERRORS_MAX
    }

    /// The number of lines.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The number of lines that were not reported by themselves.
    pub(super) fn unreported(&self) -> usize {
        self.count.saturating_sub(ERRORS_MAX)
    }
}

/// The lines of an input that are still to be run.
pub(super) type LinesLeft = Box<dyn Iterator<Item = Line> + Send>;

/// What is kept of an earlier run.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The number of episodes.
    pub(crate) episodes: u64,
    /// Their turns.
    pub(crate) turns: u64,
    /// Their calls without output.
    pub(crate) failed: u64,
}

impl Kept {
    /// How much it is.
    pub(super) fn text(&self) -> String {
        let [episodes, turns] = [(self.episodes, "episode"), (self.turns, "turn")]
            .map(|(number, noun)| count(usize::try_from(number).unwrap_or(usize::MAX), noun));
        format!("{episodes} with {turns}")
    }
}

/// The input of a run over episodes, behind what is kept.
pub(super) struct Left {
    /// The lines.
    pub(super) lines: LinesLeft,
    /// What is kept.
    pub(super) kept: Kept,
    /// How often each id was there before.
    pub(super) ordinals: Ordinals,
    /// The lines before that cannot be read.
    pub(super) unreadable: Unreadable,
    /// How many turns they were counted with.
    pub(super) unreadable_turns: u64,
    /// Why, for the first of them.
    pub(super) errors: Vec<Error>,
}

impl Left {
    /// Everything.
    pub(super) fn all(lines: Lines) -> Self {
        let (kept, ordinals, unreadable) = Default::default();
        Self { lines: Box::new(lines), kept, ordinals, unreadable, unreadable_turns: 0, errors: Vec::new() }
    }

    /// What is behind the whole episodes of this file, which is cut off behind them. Reads both as far as the file goes.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file is not the beginning of this input's results; it is then left as it is.
    /// [`Error::Write`] if it cannot be read or cut.
    pub(super) fn behind(file: &mut ResultsFile, origin: &Origin, mut lines: Lines) -> Result<Self, Error> {
        let (mut kept, mut unreadable, mut errors) = (Kept::default(), Unreadable::default(), Vec::new());
        let (mut bytes, mut next, mut ordinals) = (0, None, Ordinals::default());
        let mut unreadable_turns = 0;
        let mut written = Written::new(BufReader::new(file.reader()));
        let unread = |error| file.failed(error);
        while !written.is_at_end().map_err(unread)? {
            let Some(line) = lines.next() else {
                let why = written.differs("holds more than the results of this input");
                return Err(file.refusal(&why));
            };
            let episode = match parse(&line) {
                Ok(episode) => episode,
                Err(why) => {
                    unreadable_turns += turns_of_line(&line);
                    if unreadable.add() {
                        errors.push(origin.line_error(line.number, why));
                    }
                    continue;
                }
            };
            match written.episode(&episode, line.number).map_err(unread)? {
                Found::Whole { failed } => {
                    ordinals.next(&episode.id);
                    bytes = written.bytes();
                    kept.episodes += 1;
                    kept.turns += episode.turns.len() as u64;
                    kept.failed += failed;
                }
                Found::Part => {
                    next = Some(line);
                    break;
                }
                Found::Other(why) => return Err(file.refusal(&why)),
            }
        }
        drop(written);
        file.keep(bytes)?;
        Ok(Self {
            lines: Box::new(iter::chain(next, lines)),
            kept,
            ordinals,
            unreadable,
            unreadable_turns,
            errors,
        })
    }
}

/// The episode of a line.
pub(super) fn parse(line: &Line) -> Result<Episode, String> {
    let text = line.text.as_ref().map_err(ToString::to_string)?;
    Episode::parse_line(text).map_err(|error| error.to_string())
}
