//! `toolyard tools`: lists the tools that the configuration provides.

use crate::{
    cli::ToolsArgs, display::clip, error::Error, exit::Exit, mcp, run::results, setup::Setup, table::Table,
};
use toolyard::{LimitScope, ToolClass, ToolSpec, wording::Span};
use toolyard_wire::definitions;

pub(crate) const DESCRIPTION_CHARS: usize = 60;
const SCOPE_CHARS: usize = 20;

/// Lists the tools.
pub(crate) async fn tools(args: ToolsArgs) -> Result<Exit, Error> {
    let load = if args.served { Setup::load_served } else { Setup::load };
    let mut setup = load(&args.setup)?;
    setup.connect().await?;
    let engine = setup.engine().build().await?;
    let session = engine.session_with("tools", args.role.session());
    let offered = engine.definitions_for(&session);
    let specs = || -> Vec<ToolSpec> { offered.iter().map(|entry| session.shown_spec(entry)).collect() };
    match args.shape.dialect() {
        Some(dialect) => results::print_pretty(&definitions(&specs(), dialect))?,
        None if setup.config.servers.is_empty() => results::print_text(&table(&setup, &specs()).to_string())?,
        None => results::print_text(&mcp::table(&setup, &session, &offered))?,
    }
    setup.disconnect(false).await;
    Ok(Exit::Ok)
}

fn table(setup: &Setup, specs: &[ToolSpec]) -> Table {
    let heads = ["name", "class", "side effects", "approval", "timeout", "limit", "description"];
    let mut table = Table::new(heads);
    for spec in specs {
        table.row([
            spec.name.clone(),
            class(spec),
            spec.side_effects.to_string(),
            setup.confirmation(spec).as_str().to_owned(),
            Span(spec.attempt_timeout()).to_string(),
            limit(spec),
            clip(&described(setup, spec), DESCRIPTION_CHARS),
        ]);
    }
    table
}

/// The description of a tool, with what answers its calls instead of it.
pub(crate) fn described(setup: &Setup, spec: &ToolSpec) -> String {
    match setup.stand_ins.word(&spec.name) {
        Some(word) => format!("({word}) {}", spec.description),
        None => spec.description.clone(),
    }
}

/// The class of a tool's calls, with the scope of serial ones if they name one.
pub(crate) fn class(spec: &ToolSpec) -> String {
    match &spec.settings.serial_scope {
        Some(scope) if spec.class() == ToolClass::Serial => format!("serial ({})", clip(scope, SCOPE_CHARS)),
        _ => spec.class().to_string(),
    }
}

/// How many calls of a tool run at once, with the scope unless it is one agent.
pub(crate) fn limit(spec: &ToolSpec) -> String {
    let Some(most) = spec.settings.max_concurrency else { return "-".to_owned() };
    match spec.settings.limit_scope.unwrap_or_default() {
        LimitScope::Agent => most.to_string(),
        LimitScope::Tree => format!("{most} per tree"),
        LimitScope::Engine => format!("{most} in total"),
    }
}
