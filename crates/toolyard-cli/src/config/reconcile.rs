//! `reconcile` of a tool: another tool, which only reads, tells what became of a call that was cut off (JR-6).

use super::{
    json,
    section::{Section, Value},
};
use crate::{reconcile::Reconcile, stand_ins::template::DataTemplate};
use std::ops::Range;

/// What a template may name beside `args.NAME`.
const NAMES: [&str; 2] = [Reconcile::KEY, Reconcile::ARGS];

/// Takes `reconcile`.
pub(super) fn take(section: &mut Section<'_>) -> Option<Reconcile> {
    let (mut inner, at) = section.placed_section("reconcile")?;
    let tool = inner.string("tool").map(|(tool, _)| tool);
    let arguments = inner.take("arguments").and_then(|given| arguments(&inner, given));
    let found = inner.string("found").map(|(pointer, at)| {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let what = "found must be a JSON pointer, such as \"/items/0\"";
            inner.report(&at, format!("{}{what}", inner.prefix()));
        }
        pointer
    });
    if tool.is_none() && !inner.is_mistyped("tool") {
        let what = "needs a tool: the one that tells what became of a call, and only reads";
        inner.report(&at, format!("{}{what}", inner.prefix()));
    }
    inner.finish();
    let arguments = arguments.unwrap_or_else(|| DataTemplate::Object(Vec::new()));
    tool.map(|tool| Reconcile { tool, arguments, found })
}

fn arguments(section: &Section<'_>, given: Value<'_>) -> Option<DataTemplate> {
    let at = given.span();
    let report = |at: &Range<usize>, what: &str| {
        section.report(at, format!("{}arguments: {what}", section.prefix()));
        None
    };
    let value = match json::of(given) {
        Ok(value @ serde_json::Value::Object(_)) => value,
        Ok(_) => return report(&at, "must be a table: the arguments of the tool by their names"),
        Err((what, at)) => return report(&at, &what),
    };
    let template = match DataTemplate::parse(value) {
        Ok(template) => template,
        Err(error) => return report(&at, &error.to_string()),
    };
    let is_known = |name: &str| NAMES.contains(&name) || name.starts_with(Reconcile::ARGUMENT);
    if let Some(unknown) = template.arguments().into_iter().find(|name| !is_known(name)) {
        let what = format!(
            "'{{{unknown}}}' stands for nothing: write '{{key}}', '{{args}}', or '{{args.NAME}}' for an argument of the call"
        );
        return report(&at, &what);
    }
    Some(template)
}
