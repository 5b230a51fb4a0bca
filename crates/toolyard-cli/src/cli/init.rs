//! The arguments of `toolyard init` (KT-14).

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const INIT_HELP: &str = "\
Examples:
  toolyard init first --lang python      a tool in Python; then: cd first; toolyard run batch.json
  toolyard init first --lang rust        a package with three tools in Rust; then: cd first; cargo run
  toolyard init . --lang rust --name notes-agent

Written are toolyard.toml, in which comments say what each setting does, batch.json with calls to run, a directory
workspace for the built-in file tools, and the tool: tools/count_words.py, or Cargo.toml and src/main.rs with a test.
Nothing is overwritten: if one of these files exists, none is written.

Exit codes:
    0  the files are written
    2  usage, such as a file that exists, or a file that could not be written";

/// A program that is a tool runs on Unix alone.
const DEFAULT_LANGUAGE: &str = if cfg!(unix) { "python" } else { "rust" };

/// Arguments of `init`.
#[derive(Debug, Args)]
#[command(after_help = INIT_HELP)]
pub(crate) struct InitArgs {
    /// The directory to write to; it is made if it is missing
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// The language of the first tool
    #[arg(long, value_name = "LANGUAGE", default_value = DEFAULT_LANGUAGE)]
    pub(crate) lang: Language,
    /// The name of the Rust package [default: that of the directory, if it can be one]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// The languages that there are templates of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// A package with tools, an agent's loop and a test
    Rust,
    /// A program that is a tool of the configuration; on Unix alone
    Python,
}
