//! A server's process, which can be stopped at any point: what it is sent then certainly stays in its pipe, and no test
//! has to be faster than the server.

use rustix::{
    io::ioctl_fionread,
    process::{Pid, Signal, kill_process},
};
use std::{
    fs,
    path::{Path, PathBuf},
};
use toolyard_mcp::ServerConfig;

/// The process of a server that is started with [`noted`].
pub(crate) struct Process {
    note: PathBuf,
}

/// A server that these words start, whose process is recorded in a file in this directory.
pub(crate) fn noted(name: &str, words: &[String], dir: &Path) -> (ServerConfig, Process) {
    let note = dir.join(format!("{name}.process"));
    // The id is the shell's, and then the server's; the pipe is its input, at whatever descriptor the server keeps it.
    let line = r#"echo $$ $(readlink /proc/$$/fd/0) > "$0"; exec "$@""#;
    let mut args = vec!["-c", line, note.to_str().unwrap()];
    args.extend(words.iter().map(String::as_str));
    (ServerConfig::new(name, "sh").args(args), Process { note })
}

impl Process {
    /// Its id, which changes when the server is restarted.
    pub(crate) fn number(&self) -> i32 {
        self.noted().0
    }

    fn noted(&self) -> (i32, PathBuf) {
        let note = fs::read_to_string(&self.note).unwrap();
        let (number, pipe) = note.trim().split_once(' ').unwrap();
        (number.parse().unwrap(), pipe.into())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.number()).unwrap(), signal).unwrap();
    }

    /// Tells it to stop; see [`is_stopped`](Self::is_stopped).
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Whether all of its threads are stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.number())).unwrap();
        let mut stats =
            threads.filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("stat")).ok());
        stats.all(|stat| stat.rsplit(") ").next().unwrap().starts_with('T'))
    }

    /// The number of bytes that it was sent and has not read.
    pub(crate) fn unread(&self) -> u64 {
        let (number, pipe) = self.noted();
        let mut ends = fs::read_dir(format!("/proc/{number}/fd")).unwrap().map(|end| end.unwrap().path());
        let input = ends.find(|end| fs::read_link(end).is_ok_and(|is| is == pipe)).unwrap();
        ioctl_fionread(fs::File::open(input).unwrap()).unwrap()
    }

    /// Lets it continue.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills it.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }
}
