//! What was heard of a call so far. Nothing that a machine says is believed beyond its form and its bounds.

use super::{
    call::{Call, Listener},
    ended::{Change, End, Ended},
};
use crate::protocol::{Bytes, FromGuest};
use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt as _,
    path::{Component, PathBuf},
};
use toolyard_process::{Deltas, HeadTail};

/// The most bytes that a program may print on both outputs together. What is kept of them is set by the call; this keeps
/// one that does nothing but print from doing so until its time is up.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// The most changes that are taken back.
const CHANGES_MAX: usize = 65_536;

/// Where a call has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Preparing,
    Running,
    /// The program has ended, and what it changed is being told.
    Ended(End),
}

/// What was heard so far.
pub(super) struct Heard {
    stage: Stage,
    output: HeadTail,
    errors: HeadTail,
    deltas: Deltas,
    listener: Option<Listener>,
    /// Whether all that it prints is heard, and not its errors alone.
    is_merged: bool,
    output_left: u64,
    places: Vec<PathBuf>,
    changes: Vec<Change>,
    changes_left: u64,
}

/// What follows from a message.
pub(super) enum Next {
    Continue,
    /// This was the last one that counts.
    Over(End, Result<(), String>),
}

impl Heard {
    /// Nothing yet of this call, whose listener it takes.
    pub(super) fn new(call: &mut Call) -> Self {
        Self {
            stage: Stage::Preparing,
            output: HeadTail::new(call.output_bytes),
            errors: HeadTail::new(call.errors_bytes),
            deltas: Deltas::default(),
            listener: call.listener.take(),
            is_merged: call.is_merged,
            output_left: OUTPUT_BYTES_MAX,
            places: call.returned.clone(),
            changes: Vec::new(),
            changes_left: call.returned_bytes,
        }
    }

    /// Takes the next message.
    pub(super) fn add(&mut self, message: FromGuest) -> Next {
        match (&self.stage, message) {
            (Stage::Preparing, FromGuest::Failed(why)) => Next::Over(End::NotStarted(why), Ok(())),
            (Stage::Preparing, FromGuest::Started) => self.to(Stage::Running),
            (Stage::Running, FromGuest::Output(piece)) => self.printed(&piece, false),
            (Stage::Running, FromGuest::Errors(piece)) => self.printed(&piece, true),
            (Stage::Running, FromGuest::Exited(code)) => self.to(Stage::Ended(End::Exited(code))),
            (Stage::Running, FromGuest::Killed(signal)) => self.to(Stage::Ended(End::Killed(signal))),
            (Stage::Ended(end), FromGuest::Done) => Next::Over(end.clone(), Ok(())),
            (Stage::Ended(end), message) => {
                let end = end.clone();
                match self.changed(message) {
                    Ok(()) => Next::Continue,
                    Err(why) => Next::Over(end, Err(why)),
                }
            }
            (Stage::Preparing | Stage::Running, _) => self.vanished(),
        }
    }

    /// The machine said something that makes no sense, or nothing more.
    pub(super) fn vanished(&self) -> Next {
        match &self.stage {
            Stage::Preparing => Next::Over(End::NotStarted("its machine has ended".to_owned()), Ok(())),
            Stage::Running => Next::Over(End::Vanished, Ok(())),
            Stage::Ended(end) => Next::Over(end.clone(), Err("its machine has ended".to_owned())),
        }
    }

    /// All that was heard of a call that ended so.
    pub(super) fn ended(mut self, end: End, changes: Result<(), String>) -> Ended {
        if let Some(listener) = &mut self.listener {
            self.deltas.finish(listener);
        }
        let changes = changes.map(|()| self.changes);
        Ended { end, output: self.output, errors: self.errors, changes }
    }

    fn to(&mut self, stage: Stage) -> Next {
        self.stage = stage;
        Next::Continue
    }

    fn printed(&mut self, piece: &Bytes, is_error: bool) -> Next {
        let length = u64::try_from(piece.0.len()).unwrap_or(u64::MAX);
        let Some(left) = self.output_left.checked_sub(length) else {
            return Next::Over(End::OutputLimit, Ok(()));
        };
        self.output_left = left;
        let kept = if is_error { &mut self.errors } else { &mut self.output };
        kept.push(&piece.0);
        if let (Some(listener), true) = (&mut self.listener, is_error || self.is_merged) {
            self.deltas.push(&piece.0, listener);
        }
        Next::Continue
    }

    fn changed(&mut self, message: FromGuest) -> Result<(), String> {
        let change = match message {
            FromGuest::Content(piece) => return self.content(&piece),
            FromGuest::Directory(path) => Change::Directory(self.path(path)?),
            FromGuest::File(head) => Change::File { path: self.path(head.path)?, content: Vec::new() },
            FromGuest::Removed(path) => Change::Removed(self.path(path)?),
            FromGuest::Failed(why) => return Err(why),
            _ => return Err("its machine says what makes no sense".to_owned()),
        };
        if self.changes.len() == CHANGES_MAX {
            return Err(format!("it changed more than {CHANGES_MAX} files and directories"));
        }
        self.changes.push(change);
        Ok(())
    }

    fn content(&mut self, piece: &Bytes) -> Result<(), String> {
        let length = u64::try_from(piece.0.len()).unwrap_or(u64::MAX);
        let too_much = || "it wrote more bytes of files than are taken back".to_owned();
        self.changes_left = self.changes_left.checked_sub(length).ok_or_else(too_much)?;
        match self.changes.last_mut() {
            Some(Change::File { content, .. }) => content.extend(&piece.0),
            _ => return Err("a content without a file".to_owned()),
        }
        Ok(())
    }

    /// A path that the call said was to be returned, and that leads nowhere else.
    fn path(&self, path: Bytes) -> Result<PathBuf, String> {
        let path = PathBuf::from(OsString::from_vec(path.0));
        let is_plain =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        match is_plain && self.places.iter().any(|place| path.starts_with(place)) {
            true => Ok(path),
            false => Err(format!("its machine tells of '{}', which it was not asked about", path.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{FileHead, PIECE_BYTES};

    fn heard(call: Call, messages: impl IntoIterator<Item = FromGuest>) -> Ended {
        let mut call = call;
        let mut heard = Heard::new(&mut call);
        for message in messages {
            if let Next::Over(end, changes) = heard.add(message) {
                return heard.ended(end, changes);
            }
        }
        let Next::Over(end, changes) = heard.vanished() else { panic!("it goes on") };
        heard.ended(end, changes)
    }

    fn file(path: &str) -> FromGuest {
        FromGuest::File(FileHead { path: Bytes::from(path), is_executable: true })
    }

    /// SB-7: a program that floods is ended at its limit.
    #[test]
    fn a_flood_of_output_ends_the_call() {
        let flood = std::iter::repeat_with(|| FromGuest::Output(Bytes(vec![b'a'; PIECE_BYTES]))).take(1000);
        let ended = heard(Call::new("yes").kept(64, 64), [FromGuest::Started].into_iter().chain(flood));
        assert_eq!(ended.end, End::OutputLimit);
        assert!(ended.output.total() <= OUTPUT_BYTES_MAX);
    }

    /// A machine whose program has taken it over cannot name files that were not granted for writing.
    #[test]
    fn no_path_is_believed_that_was_not_granted() {
        for path in ["/etc/passwd", "/a/../b", "/ab", "a/b", ""] {
            let said = [FromGuest::Started, FromGuest::Exited(0), file(path), FromGuest::Done];
            let ended = heard(Call::new("sh").returned("/a"), said);
            assert_eq!(ended.end, End::Exited(0));
            assert!(ended.changes.unwrap_err().contains("was not asked about"), "{path}");
        }
    }

    #[test]
    fn what_is_taken_back_is_bounded() {
        let content = || FromGuest::Content(Bytes(vec![0; 6]));
        let said =
            || [FromGuest::Started, FromGuest::Exited(0), file("/a"), content(), content(), FromGuest::Done];
        assert!(heard(Call::new("sh").returned("/a").returned_bytes(11), said()).changes.is_err());
        let changes = heard(Call::new("sh").returned("/a").returned_bytes(12), said()).changes.unwrap();
        assert_eq!(changes, [Change::File { path: "/a".into(), content: vec![0; 12] }]);
    }

    /// SM-3: whether a program has started is what its machine last said of it.
    #[test]
    fn a_machine_that_ends_early_says_what_is_known() {
        assert!(matches!(heard(Call::new("a"), []).end, End::NotStarted(_)));
        assert_eq!(heard(Call::new("a"), [FromGuest::Started]).end, End::Vanished);
        assert_eq!(heard(Call::new("a"), [FromGuest::Started, FromGuest::Started]).end, End::Vanished);
        let ended = heard(Call::new("a"), [FromGuest::Started, FromGuest::Killed(9)]);
        assert_eq!((ended.end, ended.changes), (End::Killed(9), Err("its machine has ended".to_owned())));
    }
}
