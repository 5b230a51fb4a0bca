//! Counts the turns of a file before it runs, so that what the live view says is left does not move (KT-12).

use crate::input::{Line, Lines, Origin};
use serde::{Deserialize, de::IgnoredAny};
use std::{
    fs,
    io::{BufReader, Read},
};

/// How much of a file is read to count its turns, so that the run of a huge one does not begin late.
const BYTES_MAX: u64 = 4 << 30;

/// What is read of an episode: its turns are not built, only counted.
#[derive(Deserialize)]
struct Counted {
    turns: Vec<IgnoredAny>,
}

/// The turns of a whole file. `None` if it is no regular file, cannot be read, or is too long to be counted.
pub(super) fn turns(origin: &Origin) -> Option<u64> {
    let Origin::File(path) = origin else { return None };
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        return None;
    }
    let reader: Box<dyn Read + Send> = origin.reader().ok()?;
    Some(Lines::new(BufReader::new(reader)).map(|line| of_line(&line)).sum())
}

/// The turns of one line; none if it cannot be read.
pub(super) fn of_line(line: &Line) -> u64 {
    let text = line.text.as_deref().unwrap_or_default();
    serde_json::from_str(text).map_or(0, |counted: Counted| counted.turns.len() as u64)
}
