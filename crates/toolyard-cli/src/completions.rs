//! `toolyard completions`: what a shell needs to complete commands, options and their values (KT-15).

use crate::{
    cli::{Cli, CompletionsArgs, Shell},
    error::Error,
    exit::Exit,
    run::results,
};
use clap::CommandFactory;
use clap_complete::shells;

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Error> {
    let mut command = Cli::command();
    let mut script = Vec::new();
    match args.shell {
        Shell::Bash => clap_complete::generate(shells::Bash, &mut command, "toolyard", &mut script),
        Shell::Zsh => clap_complete::generate(shells::Zsh, &mut command, "toolyard", &mut script),
        Shell::Fish => clap_complete::generate(shells::Fish, &mut command, "toolyard", &mut script),
    }
    results::print_text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
