//! `toolyard compare`: shows two reports of `run` side by side.
//!
//! ```text
//!   A.json ─► RunReport ─┐
//!   B.json ─► RunReport ─┴─► Comparison: figures of all calls and of each tool ─┬─► text, json
//!                                                                               └─► worse, with --fail-over
//! ```

mod comparison;
mod figure;
mod run_report;

use crate::{cli::CompareArgs, display::clip, error::Error, exit::Exit, run::results, table::Table};
use comparison::{Comparison, Group};
use run_report::RunReport;
use serde_json::{Value, json};

const NAME_CHARS: usize = 40;

/// Prints the comparison.
pub(crate) fn compare(args: &CompareArgs) -> Result<Exit, Error> {
    let comparison = Comparison::of(&RunReport::read(&args.a)?, &RunReport::read(&args.b)?);
    let worse = args.fail_over.map(|percent| comparison.worse(percent));
    match args.json {
        true => results::print_pretty(&document(args, &comparison, worse.as_deref()))?,
        false => results::print_text(&text(args, &comparison))?,
    }
    let worse = worse.unwrap_or_default();
    worse.iter().for_each(|what| anstream::eprintln!("toolyard: {what}"));
    Ok(if worse.is_empty() { Exit::Ok } else { Exit::CallFailed })
}

fn text(args: &CompareArgs, comparison: &Comparison) -> String {
    let [a, b] = [&args.a, &args.b].map(|path| clip(&path.display().to_string(), NAME_CHARS));
    let mut table = Table::new(["", "", &a, &b, "change"]);
    for Group { name, figures } in comparison.groups() {
        let mut name = clip(name, NAME_CHARS);
        for figure in figures.iter().filter(|figure| figure.is_known()) {
            let [a, b] = figure.texts();
            table.row([std::mem::take(&mut name), figure.label().to_owned(), a, b, figure.change_text()]);
        }
    }
    table.to_string()
}

fn document(args: &CompareArgs, comparison: &Comparison, worse: Option<&[String]>) -> Value {
    let of_group = |group: &Group| -> Value {
        let figures = group.figures.iter().map(|figure| (figure.key().to_owned(), figure.json()));
        Value::Object(figures.collect())
    };
    let tools = comparison.tools.iter().map(|group| (group.name.clone(), of_group(group)));
    let mut document = json!({
        "a": args.a.display().to_string(), "b": args.b.display().to_string(),
        "totals": of_group(&comparison.totals), "tools": Value::Object(tools.collect()),
    });
    if let Some(worse) = worse {
        document["worse"] = json!(worse);
    }
    document
}
