//! `toolyard man`: the manual pages, made of the same definition as `--help` (KT-15).

use crate::{
    cli::{Cli, ManArgs},
    error::Error,
    exit::Exit,
    output_file,
    run::results,
};
use clap::CommandFactory;
use clap_mangen::Man;
use std::{fs, path::Path};

/// Prints the page of the program, or writes those of all commands to a directory.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Error> {
    match &args.dir {
        Some(dir) => write(dir)?,
        None => print()?,
    }
    Ok(Exit::Ok)
}

fn print() -> Result<(), Error> {
    let mut page = Vec::new();
    Man::new(Cli::command()).render(&mut page).map_err(Error::results)?;
    results::print_text(&String::from_utf8_lossy(&page))
}

fn write(dir: &Path) -> Result<(), Error> {
    let written = fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.map_err(|error| output_file::failed(dir, error))
}
