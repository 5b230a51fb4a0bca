//! `toolyard check`: what a configuration says, and what that means for each tool.

mod json;
pub(crate) mod open;
pub(crate) mod permission;
mod reconcile;
mod resilience;
mod ungiven;

pub(crate) use permission::unconfined;

use crate::{
    cli::CheckArgs,
    config::{BudgetSettings, Config, PRIORITIES},
    error::Error,
    exit::Exit,
    journal::open_calls,
    logging::redacted,
    mcp,
    run::results,
    sandboxes,
    setup::Setup,
    table::Table,
    tools::{class, limit},
};
use open::Open;
use serde_json::Value;
use std::{num::NonZeroUsize, time::Duration};
use toolyard::{Budget, Engine, OnInterrupted, OnSerialFailure, Sandbox, ToolEntry, wording::Span};

/// Validates the configuration and prints the resulting settings.
pub(crate) async fn check(args: CheckArgs) -> Result<Exit, Error> {
    let found = match (look(&args).await, args.json) {
        (Ok(found), _) => found,
        (Err(error), true) => {
            results::print_pretty(&json::of_error(&error))?;
            return Ok(error.exit());
        }
        (Err(error), false) => return Err(error),
    };
    match args.json {
        true => results::print_pretty(&found.json())?,
        false => results::print_text(&found.text())?,
    }
    Ok(match found.open {
        Some(open) if open.has_changes() => Exit::CallFailed,
        _ => Exit::Ok,
    })
}

/// What a valid configuration says.
struct Found {
    /// What is of no single tool, by name.
    settings: Vec<(String, String)>,
    /// With a row for each tool.
    tables: [Table; 3],
    /// Warnings and notes.
    warnings: Vec<String>,
    /// What a journal has open, if one is named.
    open: Option<Open>,
}

impl Found {
    fn text(&self) -> String {
        let settings: String =
            self.settings.iter().map(|(name, value)| format!("{name:<15}{value}\n")).collect();
        let mut warnings: String = self.warnings.iter().map(|warning| format!("\n{warning}")).collect();
        if !warnings.is_empty() {
            warnings += "\n";
        }
        let [tools, permission, resilience] = &self.tables;
        let open = self.open.as_ref().map(Open::text).unwrap_or_default();
        format!("{settings}\n{tools}\n{permission}\n{resilience}{warnings}{open}")
    }

    fn json(&self) -> Value {
        let mut all = json::of(&self.settings, &self.tables, &self.warnings);
        if let Some(open) = &self.open {
            all["open_calls"] = open.json();
        }
        all
    }
}

/// Starts what the configuration names, and looks at what comes of it.
async fn look(args: &CheckArgs) -> Result<Found, Error> {
    let open = match &args.journal {
        Some(file) => Some((file, open_calls(file)?)),
        None => None,
    };
    let mut setup = Setup::load(&args.setup)?;
    setup.connect().await?;
    let engine = setup.engine().build().await?;
    let resilience = resilience::table(&setup.config, &engine);
    let has_landlock = permission::uses(&setup, &engine, Sandbox::Landlock);
    let sandboxes = sandboxes::described(&setup.config, has_landlock).await;
    let settings = settings(&setup, &sandboxes);
    let tables = [table(&setup, &engine), permission::table(&setup, &engine), resilience];
    let warnings = warnings(&setup, &engine);
    let open = open.map(|(file, calls)| Open::of(file, calls, &setup, &engine));
    setup.disconnect(false).await;
    Ok(Found { settings, tables, warnings, open })
}

/// The settings that are of no single tool, by name.
fn settings(setup: &Setup, sandboxes: &[(&str, String)]) -> Vec<(String, String)> {
    let config = &setup.config;
    let file = config.file.as_ref().map(|file| file.display().to_string());
    let most = |most: Option<NonZeroUsize>| {
        most.map_or_else(|| "limited by the pools".to_owned(), |most| most.to_string())
    };
    let priority = PRIORITIES.iter().find(|(_, priority)| *priority == config.priority);
    let then = match config.on_serial_failure {
        OnSerialFailure::Continue => "continue",
        OnSerialFailure::SkipRest => "skip_rest",
    };
    let behind = match config.on_interrupted {
        OnInterrupted::CancelRest => "cancel_rest",
        OnInterrupted::Continue => "continue",
    };
    let mut lines = Vec::new();
    let mut line = |name: &str, value: &str| lines.push((name.to_owned(), value.to_owned()));
    line("configuration", file.as_deref().unwrap_or("none, using the defaults"));
    line("workspace", &setup.root.display().to_string());
    line("pools", &format!("read {}, concurrent {}, serial 1", config.pools.read, config.pools.concurrent));
    line("max in flight", &most(setup.max_in_flight));
    line("max in a tree", &most(config.tree_max_in_flight));
    line("priority", priority.map_or("", |(name, _)| name));
    line("queue timeout", &within(config.queue_timeout));
    line("call deadline", &within(config.call_deadline));
    line("serial failure", then);
    line("interrupted", behind);
    line("budgets", &budgets(config.budget));
    line("gateway", &gateway(config));
    line("capabilities", &permission::capabilities(&config.policy.capability_texts));
    line("trusted", &permission::trusted(setup));
    for (name, what) in sandboxes {
        line(&format!("in {name}"), what);
    }
    for (name, state) in mcp::states(setup) {
        line(&format!("{}{name}", json::OF_SERVER), &state);
    }
    lines
}

/// What applies to `toolyard mcp`.
fn gateway(config: &Config) -> String {
    let [message, in_flight] = [config.clients.message_bytes_max(), config.clients.in_flight_bytes_max()];
    let [message, in_flight] = [message, in_flight].map(|bytes| permission::size(bytes as u64));
    let builtin = if config.names_builtin {
        ""
    } else {
        "; serves no built-in tools, because [builtin] enable names none"
    };
    format!("messages up to {message}, {in_flight} in flight{builtin}")
}

fn budgets(BudgetSettings { turn, session, tree }: BudgetSettings) -> String {
    let [turn, session, tree] = [turn, session, tree].map(resilience::budget);
    format!("turn {turn}, session {session}, tree {tree}")
}

fn within(limit: Option<Duration>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| Span(limit).to_string())
}

fn table(setup: &Setup, engine: &Engine) -> Table {
    let mut table = Table::new(["tool", "class", "why", "approval", "timeout", "limit", "repeatable"]);
    for entry in engine.registry().list() {
        let spec = entry.spec();
        table.row([
            spec.name.clone(),
            class(spec),
            mcp::why(setup, &entry),
            setup.confirmation(spec).as_str().to_owned(),
            Span(spec.attempt_timeout()).to_string(),
            limit(spec),
            if spec.is_repeatable() { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

/// Warnings and notes about settings that are valid but probably not intended.
fn warnings(setup: &Setup, engine: &Engine) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in engine.registry().list() {
        let of_schema = entry.schema().warnings().iter().map(ToString::to_string);
        for warning in of_schema.chain(lowered(&entry, &setup.config)) {
            lines.push(format!("warning: tool '{}': {}", entry.name(), redacted(&warning)));
        }
    }
    lines.extend(permission::warnings(setup, engine));
    lines.extend(reconcile::warnings(setup, engine));
    lines.extend(mcp::refused(setup).into_iter().map(|refused| format!("warning: {refused}")));
    let widest = setup.config.pools.read.max(setup.config.pools.concurrent);
    if let Some(most) = setup.max_in_flight
        && most.get() < widest
    {
        lines.push(format!("note: max_in_flight {most} is less than the width of the widest pool, {widest}"));
    }
    let notes = budget_notes(&setup.config.budget, engine);
    lines.extend(notes.into_iter().map(|note| format!("note: {note}")));
    lines
}

/// Notes about budgets that let nothing start, or that bound a cost no tool has.
fn budget_notes(BudgetSettings { turn, session, tree }: &BudgetSettings, engine: &Engine) -> Vec<String> {
    let registry = engine.registry();
    let costs_nothing =
        registry.list().iter().all(|entry| entry.spec().settings.cost.unwrap_or_default() == 0);
    let of_budget = |(name, budget): (&str, &Budget)| match (budget.calls, budget.cost) {
        (Some(0), _) => Some(format!("[budget] {name} is 0 calls: nothing can run")),
        (_, Some(_)) if costs_nothing => {
            Some(format!("[budget] {name} limits cost, but no tool has a cost: set cost in [tools]"))
        }
        _ => None,
    };
    [("turn", turn), ("session", session), ("tree", tree)].into_iter().filter_map(of_budget).collect()
}

/// Warns if the configuration declares a tool read-only that its author did not: its calls then need no approval.
fn lowered(entry: &ToolEntry, config: &Config) -> Option<String> {
    let authored = config.authored(entry.name())?.side_effects;
    let now = entry.spec().side_effects;
    let is_lowered = now.is_read_only() && !authored.is_read_only();
    is_lowered.then(|| format!("its author declares side effects {authored}, the configuration sets {now}"))
}
