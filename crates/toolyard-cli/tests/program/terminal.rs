//! The program on a pseudo-terminal, which is its controlling terminal, and a user who reads and types.
#![cfg(unix)]

use crate::child::{Done, root};
use pty_process::{
    Size,
    blocking::{Command, Pty, open},
};
use std::{
    io::{Read, Write},
    process::{Child, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

/// How long to wait for expected output.
const PATIENCE: Duration = Duration::from_secs(60);

/// The end-of-transmission character, which Ctrl-D types.
pub(crate) const CTRL_D: &str = "\u{4}";

/// The interrupt character, which Ctrl-C types.
pub(crate) const CTRL_C: &str = "\u{3}";

/// The program, on a terminal.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    shown: mpsc::Receiver<Vec<u8>>,
    /// Everything that the terminal has received.
    text: String,
    /// How much of it has been waited for.
    read: usize,
}

impl Terminal {
    /// Starts the program with its input on a pipe and its results on another; standard error is the terminal.
    pub(crate) fn start(args: &[&str], input: &str) -> Self {
        Self::start_with(args, input, &[])
    }

    /// The same, with these variables.
    pub(crate) fn start_with(args: &[&str], input: &str, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter().copied();
        let mut terminal = Self::with(args, |command| {
            variables.fold(command.stdin(Stdio::piped()), |command, (name, value)| command.env(name, value))
        });
        // A child that refuses its arguments reads nothing.
        drop(terminal.child.stdin.take().unwrap().write_all(input.as_bytes()));
        terminal
    }

    /// Starts the program with standard input on the terminal, and standard error discarded.
    pub(crate) fn start_mute(args: &[&str]) -> Self {
        Self::with(args, |command| command.stderr(Stdio::null()))
    }

    fn with(args: &[&str], streams: impl FnOnce(Command) -> Command) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(60, 100)).unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_toolyard")).args(args).current_dir(root());
        let command = command.env_remove("TOOLYARD_LOG").env_remove("VISUAL").env_remove("EDITOR");
        let command = command.stdout(Stdio::piped());
        let child = streams(command).spawn(pts).unwrap();
        let pty = Arc::new(pty);
        Self { shown: read_all(pty.clone()), pty, child, text: String::new(), read: 0 }
    }

    /// Types these keys.
    pub(crate) fn types(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `what` is shown after the previous match; returns the text between the two.
    pub(crate) fn until(&mut self, what: &str) -> String {
        loop {
            if let Some(at) = self.text[self.read..].find(what) {
                let between = self.text[self.read..self.read + at].to_owned();
                self.read += at + what.len();
                return between;
            }
            match self.shown.recv_timeout(PATIENCE) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("'{what}' is not shown ({error}) in: {:?}", &self.text[self.read..]),
            }
        }
    }

    /// Waits for a question about a tool; returns its page, without the end of the prompt.
    pub(crate) fn question(&mut self) -> String {
        self.until("toolyard: may this call run?");
        self.until(" left: ")
    }

    /// Waits for the end of the program. Its standard error is everything that the terminal showed.
    pub(crate) fn end(mut self) -> Done {
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        while let Ok(bytes) = self.shown.recv_timeout(PATIENCE) {
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
        Done { code, stdout, stderr: self.text }
    }
}

/// Reads on a separate thread, so that a test can stop waiting. The thread ends when nobody has the terminal open.
fn read_all(pty: Arc<Pty>) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(read @ 1..) = (&*pty).read(&mut bytes) {
            if send.send(bytes[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    receive
}
