//! The arguments of the commands that describe the program: completions, manual page, schemas (KT-15).

use clap::{Args, ValueEnum};
use std::path::PathBuf;

const COMPLETIONS_HELP: &str = "\
Examples:
  source <(toolyard completions bash)                                    for this shell
  toolyard completions bash > ~/.local/share/bash-completion/completions/toolyard
  toolyard completions zsh > ~/.zfunc/_toolyard                          a directory of fpath
  toolyard completions fish > ~/.config/fish/completions/toolyard.fish";

const MAN_HELP: &str = "\
Examples:
  toolyard man | man -l -
  toolyard man ~/.local/share/man/man1      toolyard.1, toolyard-run.1, … ; then: man toolyard-run";

const SCHEMA_HELP: &str = "\
Examples:
  toolyard schema config > toolyard.schema.json
      and in toolyard.toml, for editors with Taplo:  #:schema ./toolyard.schema.json
  toolyard schema neutral > batch.schema.json
      and in the settings of VS Code:  \"json.schemas\": [{\"fileMatch\": [\"batch*.json\"], \"url\": \"./batch.schema.json\"}]

The schemas are of JSON Schema 2020-12. Paths, variables and what depends on several keys are not in that of the
configuration: toolyard check looks at them.";

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// The shells that have completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct ManArgs {
    /// The directory to write the pages of all commands to; it is made if it is missing
    pub(crate) dir: Option<PathBuf>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
#[command(after_help = SCHEMA_HELP)]
pub(crate) struct SchemaArgs {
    /// What the schema is of
    pub(crate) name: SchemaName,
}

/// What there are schemas of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaName {
    /// The configuration, toolyard.toml
    Config,
    /// A batch of calls in the neutral format
    Neutral,
    /// A line of a file of episodes
    Episodes,
    /// The report of run --report json
    Report,
}
