//! A program that starts another under a helper of itself and waits for it: tests start it, kill it, and have it help.
//!
//! ```text
//! toolyard-process-engine DIRECTORY COMMAND    runs `sh -c COMMAND` there and prints its output
//! ```

use std::error::Error;

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn Error>> {
    toolyard_process::help_if_asked();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(linux::run())
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), Box<dyn Error>> {
    Err("helpers exist only on Linux".into())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        env,
        error::Error,
        io::{self, Write as _},
    };
    use toolyard_process::{Containment, Helper, OutputReader, Program};

    pub(super) async fn run() -> Result<(), Box<dyn Error>> {
        let mut args = env::args().skip(1);
        let (directory, command) = (args.next().ok_or("no DIRECTORY")?, args.next().ok_or("no COMMAND")?);
        let program = Program::new("/bin/sh").args(["-c".to_owned(), command]).env("PATH", "/usr/bin:/bin");
        let program = program.env("MARK", &directory).directory(directory);
        let mut started = program.start(&Containment::Helper(Helper::this_program()?))?;
        let mut output = OutputReader::new(started.stdout);
        while let Some(piece) = output.read().await {
            io::stdout().write_all(piece)?;
        }
        started.processes.ended().await;
        Ok(())
    }
}
