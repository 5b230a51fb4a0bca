//! `toolyard tools`: what the configuration offers.

use crate::{
    cli::ToolsArgs, exit::Exit, fault::Fault, run::results, setup::Setup, shown::clip, table::Table,
};
use toolyard::{ConfirmationMode, ToolSpec, wording::Span};
use toolyard_wire::definitions;

const DESCRIPTION_CHARS: usize = 60;

/// Lists the tools.
pub(crate) async fn tools(args: ToolsArgs) -> Result<Exit, Fault> {
    let setup = Setup::load(&args.setup)?;
    let engine = setup.engine().build().await?;
    let specs: Vec<ToolSpec> = engine.registry().list().iter().map(|entry| entry.spec().clone()).collect();
    match args.shape.dialect() {
        Some(dialect) => results::print_pretty(&definitions(&specs, dialect))?,
        None => results::print_text(&table(&setup, &specs).to_string())?,
    }
    Ok(Exit::Ok)
}

fn table(setup: &Setup, specs: &[ToolSpec]) -> Table {
    let heads = ["name", "class", "side effects", "approval", "timeout", "limit", "description"];
    let mut table = Table::new(heads);
    for spec in specs {
        table.row([
            spec.name.clone(),
            spec.class().to_string(),
            spec.side_effects.to_string(),
            approval(setup.confirmation(spec)).to_owned(),
            Span(spec.attempt_timeout()).to_string(),
            limit(spec),
            clip(&spec.description, DESCRIPTION_CHARS),
        ]);
    }
    table
}

/// The mode as the configuration spells it.
pub(crate) fn approval(mode: ConfirmationMode) -> &'static str {
    match mode {
        ConfirmationMode::Auto => "auto",
        ConfirmationMode::Prompt => "prompt",
        ConfirmationMode::Deny => "deny",
    }
}

/// How many calls of a tool run at once.
pub(crate) fn limit(spec: &ToolSpec) -> String {
    spec.max_concurrency.map_or_else(|| "-".to_owned(), |most| most.to_string())
}
