//! Where a line is, in a log of several parts.

use std::path::PathBuf;

/// The parts of a log.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Their names; none for a log of one part.
    names: Vec<String>,
    /// How many lines there are before each part that has been opened.
    starts: Vec<usize>,
}

/// A line of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The part, if there are several.
    pub(super) file: Option<String>,
    /// Its number there, from 1.
    pub(super) line: usize,
}

impl Places {
    pub(super) fn of(parts: &[PathBuf]) -> Self {
        let names = if parts.len() > 1 { parts } else { &[] };
        Self { names: names.iter().map(|part| part.display().to_string()).collect(), starts: Vec::new() }
    }

    /// Notes how many lines there are before each part that has been opened.
    pub(super) fn opened(&mut self, starts: &[usize]) {
        self.starts.extend_from_slice(&starts[self.starts.len()..]);
    }

    /// The place of a line, by its number in the whole log.
    pub(super) fn of_line(&self, line: usize) -> Place {
        // Of parts without lines, the last one that starts before the line has it.
        let at = self.starts.partition_point(|start| *start < line).saturating_sub(1);
        match self.names.get(at) {
            Some(name) => Place { file: Some(name.clone()), line: line - self.starts.get(at).unwrap_or(&0) },
            None => Place { file: None, line },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_in_the_part_that_has_it() {
        let parts = ["l.1", "l.2", "l.3", "l"].map(PathBuf::from);
        let mut places = Places::of(&parts);
        places.opened(&[0]);
        places.opened(&[0, 2, 2, 5]);
        let place = |line| {
            let Place { file, line } = places.of_line(line);
            (file.unwrap_or_default(), line)
        };
        let found: Vec<_> = (1..=6).map(place).collect();
        let expect = [("l.1", 1), ("l.1", 2), ("l.3", 1), ("l.3", 2), ("l.3", 3), ("l", 1)];
        assert_eq!(found, expect.map(|(file, line)| (file.to_owned(), line)));
        assert_eq!(Places::of(&parts[3..]).of_line(7), Place { file: None, line: 7 });
    }
}
