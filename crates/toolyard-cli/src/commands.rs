//! From arguments to a command, and from its result to an exit code.

use crate::{
    audit, bench, check,
    cli::{Cli, Command, JournalCommand, McpArgs, McpCommand, SandboxCommand, SandboxSetup, TokenCommand},
    compare, completions,
    config::nearest_name,
    error::Error,
    exit::Exit,
    export::Export,
    fetch, gateway, init, journal, logging, machines, man, plan, run, schema, serve, supervise, token, tools,
    view,
};
use clap::{
    CommandFactory, Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{env, ffi::OsString};
use tokio::runtime::Runtime;

/// Runs the command that the arguments name.
pub(crate) fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let export = match &cli.command {
        Command::Run(_)
        | Command::Journal(JournalCommand::Resume(_))
        | Command::Serve(_)
        | Command::Supervise(_)
        | Command::Mcp(McpArgs { command: None, .. }) => Export::start(),
        _ => Export::none(),
    };
    // A bench measures spans with its own listener.
    if !matches!(cli.command, Command::Bench(_)) {
        logging::start(&export);
    }
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            anstream::eprintln!("toolyard: cannot start the runtime: {error}");
            return Exit::Usage;
        }
    };
    let exit = runtime.block_on(perform(cli.command, &export)).unwrap_or_else(|error| {
        error.print();
        error.exit()
    });
    export.finish();
    // Do not wait for threads that are stuck in a call or in reading a terminal.
    runtime.shutdown_background();
    exit
}

async fn perform(command: Command, export: &Export) -> Result<Exit, Error> {
    match command {
        Command::Init(args) => init::init(&args),
        Command::Run(args) => run::run(args, export).await,
        Command::Mcp(McpArgs { command: Some(McpCommand::Fetch(args)), .. }) => fetch::fetch(args).await,
        Command::Mcp(args) => gateway::mcp(args, export).await,
        Command::Serve(args) => serve::serve(args, export).await,
        Command::Supervise(args) => supervise::supervise(args, export).await,
        Command::Token(TokenCommand::New(args)) => token::new(&args),
        Command::Sandbox(SandboxCommand::Setup(SandboxSetup::MicroVm(args))) => machines::set_up(args).await,
        Command::Plan(args) => plan::plan(args).await,
        Command::Tools(args) => tools::tools(args).await,
        Command::Check(args) => check::check(args).await,
        Command::Bench(args) => bench::bench(args),
        Command::Compare(args) => compare::compare(&args),
        Command::Audit(args) => audit::audit(&args),
        Command::View(args) => view::view(&args),
        Command::Journal(command) => journal::journal(command, export).await,
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => man::man(&args),
        Command::Schema(args) => schema::schema(&args),
    }
}

/// Prints help if it was requested; reports a usage error in one line.
fn refuse(error: &clap::Error) -> Exit {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_help {
        // A reader that closes the pipe early has seen enough of the help text.
        let _ = error.print();
        return if error.use_stderr() { Exit::Usage } else { Exit::Ok };
    }
    let hint = hint(error, env::args_os().skip(1)).unwrap_or_default();
    anstream::eprintln!("toolyard: {}{hint}; see toolyard --help", one_line(&error.to_string()));
    Exit::Usage
}

/// The nearest command, where clap has no suggestion: it has none for letters that are swapped in a short word (KT-16).
fn hint(error: &clap::Error, args: impl Iterator<Item = OsString>) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let program = Cli::command();
    let command = args.fold(&program, |command, arg| command.find_subcommand(arg).unwrap_or(command));
    let names = command.get_subcommands().map(clap::Command::get_name);
    nearest_name(word, names).map(|name| format!(" tip: a similar subcommand exists: '{name}'"))
}

/// Reduces clap's error message to one line, without its usage text.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let joined = lines.join(" ");
    joined.strip_prefix("error: ").unwrap_or(&joined).to_owned()
}
