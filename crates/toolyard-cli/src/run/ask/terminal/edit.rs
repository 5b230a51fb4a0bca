//! Changes the arguments of a call: in the user's editor, or on one line.

use super::{Input, LINE_BYTES_MAX, Over, Page, Question, discard_input};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{OptionalActions, tcgetattr, tcsetattr},
};
use serde_json::Value;
use std::{
    env,
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{self, Child, Command, ExitStatus},
    sync::Arc,
};
use toolyard::Arguments;

/// The most bytes that are read back. The engine takes less.
const BYTES_MAX: u64 = 1 << 20;

/// How often it is looked whether the editor has ended.
const EDITOR_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The answer to a line that may have lost its end: a terminal delivers no longer one.
const TOO_LONG: &[u8] =
    b"    the terminal cuts lines of 4096 bytes or more, so nothing is changed: set EDITOR for these\n";

/// How many names are tried for a directory of its own.
const NAMES_MAX: u32 = 16;

/// What the user has made of a call's arguments so far.
#[derive(Default)]
pub(super) struct Draft {
    /// The text as it was left, also if it is no JSON, so that an editor goes on with it.
    text: Option<String>,
    edited: Option<Edited>,
}

/// Changed arguments, and the page that shows them.
pub(super) struct Edited {
    pub(super) arguments: Arc<Value>,
    pub(super) page: Page,
}

impl Draft {
    /// The arguments as they are now, if they are others than the call's.
    pub(super) fn edited(&self) -> Option<&Edited> {
        self.edited.as_ref()
    }
}

impl Question {
    /// Lets the user change the arguments. What is no JSON is told, and leaves them as they were.
    pub(super) fn edit(&self, mut tty: &File, draft: &mut Draft) -> io::Result<Result<(), Over>> {
        let before = draft.text.clone().unwrap_or_else(|| format!("{:#}\n", self.request.arguments()));
        let editor = editor();
        let text = match &editor {
            Some(editor) => match self.edit_in(editor, tty, &before) {
                Ok(Ok(text)) => text,
                Ok(Err(over)) => return Ok(Err(over)),
                Err(error) => {
                    tty.write_all(format!("    the editor is of no use: {error}\n").as_bytes())?;
                    return Ok(Ok(()));
                }
            },
            None => match self.edit_line(tty)? {
                Ok(Some(text)) => text,
                Ok(None) => return Ok(Ok(())),
                Err(over) => return Ok(Err(over)),
            },
        };
        match serde_json::from_str::<Value>(&text).map(Arc::new) {
            Err(error) => {
                // An editor opens what was left; a line is typed anew.
                let again = if editor.is_some() { "go on with it" } else { "type them again" };
                tty.write_all(format!("    not JSON: {error}; type e to {again}\n").as_bytes())?;
            }
            Ok(arguments) if !self.request.is_changed_by(&Arguments::Json(arguments.clone())) => {
                draft.edited = None;
            }
            Ok(arguments) => {
                let page = Page::edited(&self.request, arguments.clone());
                draft.edited = Some(Edited { arguments, page });
            }
        }
        draft.text = Some(text);
        Ok(Ok(()))
    }

    /// Reads the arguments from one line; `None` if it is empty, or if the terminal has cut it, which is told.
    fn edit_line(&self, mut tty: &File) -> io::Result<Result<Option<String>, Over>> {
        discard_input(tty)?;
        tty.write_all(b"    the arguments as JSON, on one line; an empty one leaves them as they are: ")?;
        Ok(match self.input(tty)? {
            Input::Line(line) if line.trim().is_empty() => Ok(None),
            Input::Line(line) if line.len() >= LINE_BYTES_MAX => {
                tty.write_all(TOO_LONG)?;
                Ok(None)
            }
            Input::Line(line) => Ok(Some(line)),
            Input::Over(over) => Err(over),
        })
    }

    /// Opens the text in the editor, and reads it when the editor has ended.
    fn edit_in(&self, editor: &OsString, tty: &File, text: &str) -> io::Result<Result<String, Over>> {
        let place = Private::new()?;
        let file = place.path().join("arguments.json");
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600).open(&file)?.write_all(text.as_bytes())?;
        let state = tcgetattr(tty)?;
        let ended = self.run(editor, tty, &file);
        // An editor that was ended leaves the terminal as it needed it.
        tcsetattr(tty, OptionalActions::Now, &state)?;
        let status = match ended? {
            Ok(status) => status,
            Err(over) => return Ok(Err(over)),
        };
        if !status.success() {
            return Err(io::Error::other(format!("it ended with {status}")));
        }
        let mut text = String::new();
        File::open(&file)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(io::Error::other(format!("the text has more than {BYTES_MAX} bytes")));
        }
        Ok(Ok(text))
    }

    /// Runs the editor on this file until it ends, or until the question is withdrawn.
    fn run(&self, editor: &OsString, tty: &File, file: &Path) -> io::Result<Result<ExitStatus, Over>> {
        // The variable may hold arguments too. The editor takes the place of the shell, so that it can be ended.
        let mut script = OsString::from("exec ");
        script.push(editor);
        script.push(" \"$@\"");
        let child = Command::new("/bin/sh")
            .arg("-c")
            .arg(script)
            .arg(editor)
            .arg(file)
            .stdin(tty.try_clone()?)
            .stdout(tty.try_clone()?)
            .stderr(tty.try_clone()?)
            .spawn()?;
        let mut child = Running(child);
        loop {
            if let Some(status) = child.0.try_wait()? {
                return Ok(Ok(status));
            }
            let mut withdrawn = [PollFd::new(&self.withdrawn, PollFlags::IN)];
            match poll(&mut withdrawn, Some(&EDITOR_POLL)) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            if !withdrawn[0].revents().is_empty() {
                return Ok(Err(Over::Withdrawn));
            }
        }
    }
}

/// An editor, which does not keep the terminal when nobody waits for it any more: dropping it ends it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// The user's editor.
fn editor() -> Option<OsString> {
    ["VISUAL", "EDITOR"].into_iter().filter_map(env::var_os).find(|editor| !editor.is_empty())
}

/// A directory that only this user can look into, so that neither the arguments nor what an editor puts beside them is
/// seen by others. Dropping it removes it.
struct Private(PathBuf);

impl Private {
    fn new() -> io::Result<Self> {
        let mut number = 0;
        loop {
            let path = env::temp_dir().join(format!("toolyard-{}-{number}", process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_MAX => {
                    number += 1
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // What cannot be removed stays where nobody else can look into it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
