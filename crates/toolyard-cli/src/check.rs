//! `toolyard check`: what a configuration says, and what it makes of each tool.

use crate::{
    cli::CheckArgs,
    config::PRIORITIES,
    exit::Exit,
    fault::Fault,
    run::results,
    setup::Setup,
    table::Table,
    tools::{approval, class, limit},
};
use std::{fmt::Write, num::NonZeroUsize};
use toolyard::{Engine, OnSerialFailure, ToolEntry, wording::Span};

/// Validates the configuration and tells what it comes to.
pub(crate) async fn check(args: CheckArgs) -> Result<Exit, Fault> {
    let setup = Setup::load(&args.setup)?;
    let engine = setup.engine().build().await?;
    let text = format!("{}\n{}{}", settings(&setup), table(&setup, &engine), warnings(&setup, &engine));
    results::print_text(&text)?;
    Ok(Exit::Ok)
}

fn settings(setup: &Setup) -> String {
    let config = &setup.config;
    let file = config.file.as_ref().map(|file| file.display().to_string());
    let most = |most: Option<NonZeroUsize>| {
        most.map_or_else(|| "as the pools allow".to_owned(), |most| most.to_string())
    };
    let priority = PRIORITIES.iter().find(|(_, priority)| *priority == config.priority);
    let then = match config.on_serial_failure {
        OnSerialFailure::Continue => "continue",
        OnSerialFailure::SkipRest => "skip_rest",
    };
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<15}{value}");
    };
    line("configuration", file.as_deref().unwrap_or("none, these are the defaults"));
    line("workspace", &setup.root.display().to_string());
    line("pools", &format!("read {}, concurrent {}, serial 1", config.pools.read, config.pools.concurrent));
    line("max in flight", &most(setup.max_in_flight));
    line("same, a tree", &most(config.tree_max_in_flight));
    line("priority", priority.map_or("", |(name, _)| name));
    line("serial failure", then);
    text
}

fn table(setup: &Setup, engine: &Engine) -> Table {
    let mut table = Table::new(["tool", "class", "why", "approval", "timeout", "limit", "repeatable"]);
    for entry in engine.registry().list() {
        let spec = entry.spec();
        table.row([
            spec.name.clone(),
            class(spec),
            entry.why(spec.class()),
            approval(setup.confirmation(spec)).to_owned(),
            Span(spec.attempt_timeout()).to_string(),
            limit(spec),
            if spec.is_repeatable() { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

/// What is allowed and most likely not meant.
fn warnings(setup: &Setup, engine: &Engine) -> String {
    let mut text = String::new();
    for entry in engine.registry().list() {
        let of_schema = entry.schema().warnings().iter().map(ToString::to_string);
        for warning in of_schema.chain(lowered(&entry)) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\nwarning: tool '{}': {warning}", entry.name());
        }
    }
    let widest = setup.config.pools.read.max(setup.config.pools.concurrent);
    if let Some(most) = setup.max_in_flight
        && most < widest
    {
        let _ = write!(text, "\nnote: max_in_flight {most} is narrower than the widest pool, {widest}");
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// A configuration may call a tool more harmless than its author did; then its calls are not asked about.
fn lowered(entry: &ToolEntry) -> Option<String> {
    let authored = toolyard_tools::builtin(entry.name())?.spec().side_effects;
    let now = entry.spec().side_effects;
    let is_lowered = now.is_read_only() && !authored.is_read_only();
    is_lowered.then(|| format!("its author says side effects {authored}, the configuration says {now}"))
}
