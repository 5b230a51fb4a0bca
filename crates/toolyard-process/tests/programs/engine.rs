//! A program that starts another under a helper of itself and waits for it: tests start it, kill it, and have it help.
//!
//! ```text
//! toolyard-process-engine DIRECTORY COMMAND            runs `sh -c COMMAND` there and prints its output
//! toolyard-process-engine DIRECTORY COMMAND CGROUP     the same, confined, in a group within that one
//! toolyard-process-engine DIRECTORY COMMAND landlock   the same, confined by landlock alone
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
        fs::File,
        io::{self, Write as _},
    };
    use toolyard_process::{Cgroup, Confinement, Containment, GroupLimits, Helper, OutputReader, Program};

    pub(super) async fn run() -> Result<(), Box<dyn Error>> {
        let mut args = env::args().skip(1);
        let (directory, command) = (args.next().ok_or("no DIRECTORY")?, args.next().ok_or("no COMMAND")?);
        let program = Program::new("/bin/sh").args(["-c".to_owned(), command]).env("PATH", "/usr/bin:/bin");
        let program = program.env("MARK", &directory).directory(&directory);
        let confinement = Confinement::new().grant(File::open(&directory)?, &directory, true);
        let program = match args.next() {
            Some(alone) if alone == "landlock" => program.confined(confinement.landlock_alone()),
            Some(group) => {
                program.confined(confinement.cgroup(&Cgroup::open(group)?, GroupLimits::default()))
            }
            None => program,
        };
        let mut started = program.start(&Containment::Helper(Helper::this_program()?))?;
        let mut output = OutputReader::new(started.stdout);
        while let Some(piece) = output.read().await {
            io::stdout().write_all(piece)?;
        }
        started.processes.ended().await;
        Ok(())
    }
}
