//! Tools as `tools/list` gives them, page by page.

use rmcp::{
    ErrorData,
    model::{ListToolsResult, Tool},
};
use std::sync::Arc;
use toolyard::{ToolEntry, ToolSpec};
use toolyard_wire::{Dialect, definitions};

/// Maximum number of tools per page.
const PAGE_SIZE: usize = 100;

/// Prefix of cursors, before the name of the last tool so far: pages stay consistent when tools come and go.
const CURSOR_PREFIX: &str = "after:";

/// The page after this cursor, or the first page without one.
///
/// # Errors
/// `-32602` for a malformed cursor.
pub(super) fn page(
    entries: Vec<Arc<ToolEntry>>,
    cursor: Option<&str>,
    shown: impl Fn(&ToolEntry) -> ToolSpec,
) -> Result<ListToolsResult, ErrorData> {
    let after = match cursor.map(|cursor| cursor.strip_prefix(CURSOR_PREFIX)) {
        None => "",
        Some(Some(name)) => name,
        Some(None) => return Err(ErrorData::invalid_params("invalid cursor", None)),
    };
    let mut entries: Vec<_> = entries.into_iter().filter(|entry| entry.name() > after).collect();
    entries.sort_by(|a, b| a.name().cmp(b.name()));
    let more = entries.len() > PAGE_SIZE;
    entries.truncate(PAGE_SIZE);
    let mut page = ListToolsResult::with_all_items(tools(entries.iter().map(|entry| shown(entry)))?);
    page.next_cursor = entries.last().filter(|_| more).map(|last| format!("{CURSOR_PREFIX}{}", last.name()));
    Ok(page)
}

fn tools(specs: impl Iterator<Item = ToolSpec>) -> Result<Vec<Tool>, ErrorData> {
    let specs: Vec<ToolSpec> = specs.collect();
    let declared = definitions(&specs, Dialect::Mcp);
    serde_json::from_value(declared)
        .map_err(|error| ErrorData::internal_error(format!("the tools cannot be declared: {error}"), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{Registry, ToolContext, tool_fn};

    fn entries(count: usize) -> Vec<Arc<ToolEntry>> {
        let registry = Registry::default();
        for n in 0..count {
            let spec = ToolSpec::read(format!("t{n:03}"));
            registry.register(tool_fn(spec, |(): (), _: ToolContext| async { Ok("") })).unwrap();
        }
        registry.list()
    }

    /// All pages together list each tool once, with hints from its side effects.
    #[test]
    fn pages_are_whole() {
        let (mut names, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = page(entries(250), cursor.as_deref(), |entry| entry.spec().clone()).unwrap();
            assert!(
                page.tools.iter().all(|tool| tool.annotations.as_ref().unwrap().read_only_hint == Some(true))
            );
            names.extend(page.tools.into_iter().map(|tool| tool.name));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let expect: Vec<String> = (0..250).map(|n| format!("t{n:03}")).collect();
        assert_eq!(names, expect);
        assert!(page(entries(1), Some("3"), |entry| entry.spec().clone()).is_err());
    }
}
