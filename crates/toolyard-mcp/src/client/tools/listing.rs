//! Lists all tools of a server, within bounds.
//!
//! rmcp parses a page as a whole, so that one bad entry would cost the entire page. It then returns the page unparsed,
//! and the entries are read here one by one.

use super::connection::send_request;
use crate::client::{
    protocol::describe,
    text::{TooLarge, clean, size},
};
use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool},
    service::ServiceError,
};
use serde_json::Value;

/// Maximum number of pages.
const PAGES_MAX: usize = 64;

/// Maximum number of tools.
const TOOLS_MAX: usize = 2000;

/// Maximum size of one tool's entry, in bytes. Its schema has its own bound, so this is for the texts beside it.
const ENTRY_BYTES_MAX: usize = 4 << 20;

/// Maximum size of all tools that are kept, in bytes.
const LIST_BYTES_MAX: usize = 32 << 20;

/// Maximum size of a cursor, in bytes. All of them are kept until the list ends.
const CURSOR_BYTES_MAX: usize = 4 << 10;

/// Maximum number of characters of the reason why an entry is bad.
const WHY_MAX: usize = 300;

/// Why a server's tools are not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// Too many tools or pages.
    #[error("it lists more than {TOOLS_MAX} tools, or more than {PAGES_MAX} pages")]
    TooMany,
    /// Too many bytes.
    #[error("it lists more than {LIST_BYTES_MAX} bytes of tools")]
    Large,
    /// A cursor that is too long.
    #[error("its list has a cursor of more than {CURSOR_BYTES_MAX} bytes")]
    LongCursor,
    /// The list goes in a circle: a cursor repeats.
    #[error("its list of tools repeats a page")]
    RepeatedPage,
    /// The answer is not a list of tools.
    #[error("its answer is not a list of tools")]
    NotAList,
    /// The request failed.
    #[error("listing its tools failed: {}", describe::service(.0))]
    Service(#[from] ServiceError),
}

/// What a server lists.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<Tool>,
    pub(crate) bad: Vec<BadEntry>,
    bytes: usize,
}

/// An entry that is not a tool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadEntry {
    /// Its name, if it has one.
    pub(crate) name: Option<String>,
    /// Its place in the list, from 1.
    pub(crate) place: usize,
    /// Why it is not a tool.
    pub(crate) why: String,
}

/// Lists the tools, page by page.
///
/// # Cancel safety
/// Dropping the future notifies the server that the page is no longer wanted.
pub(crate) async fn all(peer: &Peer<RoleClient>) -> Result<Listed, ListError> {
    let mut listed = Listed::default();
    let mut cursors = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = PaginatedRequestParams::default().with_cursor(cursors.last().cloned());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
        match listed.page(send_request(peer, request).await?)? {
            None => return Ok(listed),
            Some(next) if next.len() > CURSOR_BYTES_MAX => return Err(ListError::LongCursor),
            Some(next) if cursors.contains(&next) => return Err(ListError::RepeatedPage),
            Some(next) => cursors.push(next),
        }
    }
    Err(ListError::TooMany)
}

impl Listed {
    /// Adds a page; returns the cursor of the next one.
    fn page(&mut self, page: ServerResult) -> Result<Option<String>, ListError> {
        match page {
            ServerResult::ListToolsResult(page) => {
                page.tools.into_iter().try_for_each(|tool| self.take(Ok(tool)))?;
                Ok(page.next_cursor)
            }
            // If none of rmcp's types fits, this is the whole answer.
            ServerResult::CustomResult(page) => self.raw(page.0),
            _ => Err(ListError::NotAList),
        }
    }

    /// Adds a page that rmcp cannot parse as a whole.
    fn raw(&mut self, mut page: Value) -> Result<Option<String>, ListError> {
        let Some(Value::Array(entries)) = page.get_mut("tools").map(Value::take) else {
            return Err(ListError::NotAList);
        };
        entries.into_iter().try_for_each(|entry| self.take(read(entry)))?;
        match page.get_mut("nextCursor").map(Value::take) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(next)) => Ok(Some(next)),
            Some(_) => Err(ListError::NotAList),
        }
    }

    /// Adds an entry.
    fn take(&mut self, entry: Result<Tool, (Option<String>, String)>) -> Result<(), ListError> {
        let place = self.tools.len() + self.bad.len() + 1;
        if place > TOOLS_MAX {
            return Err(ListError::TooMany);
        }
        match entry.and_then(bounded) {
            Ok((tool, bytes)) => {
                self.bytes += bytes;
                self.tools.push(tool);
            }
            Err((name, why)) => self.bad.push(BadEntry { name, place, why }),
        }
        if self.bytes > LIST_BYTES_MAX { Err(ListError::Large) } else { Ok(()) }
    }
}

/// The tool in an entry, or its name and why it is not a tool.
fn read(entry: Value) -> Result<Tool, (Option<String>, String)> {
    let name = entry.get("name").and_then(Value::as_str).and_then(shown);
    let why = match error(&entry) {
        Some(why) => why.to_owned(),
        None => match serde_json::from_value(entry) {
            Ok(tool) => return Ok(tool),
            Err(error) => clean::text(&format!("it is not a tool: {error}"), WHY_MAX),
        },
    };
    Err((name, why))
}

/// A tool and its size, if it is within its bounds.
fn bounded(tool: Tool) -> Result<(Tool, usize), (Option<String>, String)> {
    let why = match size::of(&tool, ENTRY_BYTES_MAX) {
        _ if tool.name.len() > 4 * clean::NAME_MAX => format!("its name is {} bytes long", tool.name.len()),
        Ok(bytes) => return Ok((tool, bytes)),
        Err(TooLarge) => format!("its definition has more than {ENTRY_BYTES_MAX} bytes"),
    };
    Err((shown(&tool.name), why))
}

/// What is wrong with the fields that every tool has.
fn error(entry: &Value) -> Option<&'static str> {
    let Value::Object(words) = entry else { return Some("it is not an object") };
    match (words.get("name"), words.get("inputSchema")) {
        (None, _) => Some("it has no name"),
        (Some(name), _) if !name.is_string() => Some("its name is not a string"),
        (_, None) => Some("it has no inputSchema"),
        (_, Some(schema)) if !schema.is_object() => Some("its inputSchema is not an object"),
        _ => None,
    }
}

/// A name as it is shown; `None` if nothing of it is visible.
fn shown(name: &str) -> Option<String> {
    Some(clean::text(name, clean::NAME_MAX)).filter(|name| !name.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(page: Value) -> Result<(Listed, Option<String>), ListError> {
        let mut listed = Listed::default();
        // Parsed as rmcp does.
        let next = listed.page(serde_json::from_value(page).unwrap())?;
        Ok((listed, next))
    }

    /// A bad entry does not affect those beside it.
    #[test]
    fn a_bad_entry_costs_itself() {
        let good = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        for (bad, name, why) in [
            (json!({"inputSchema": {}}), None, "it has no name"),
            (json!({"name": 7, "inputSchema": {}}), None, "its name is not a string"),
            (json!({"name": "x"}), Some("x"), "it has no inputSchema"),
            (json!({"name": "x", "inputSchema": []}), Some("x"), "its inputSchema is not an object"),
            (
                json!({"name": "x", "inputSchema": {}, "title": 7}),
                Some("x"),
                "it is not a tool: invalid type",
            ),
            (json!({"name": "x", "inputSchema": {}, "annotations": "all"}), Some("x"), "it is not a tool"),
            (json!("tool"), None, "it is not an object"),
            (json!(null), None, "it is not an object"),
        ] {
            for more in [json!({}), json!({"resultType": "complete", "ttlMs": 5, "cacheScope": "private"})] {
                let mut list = json!({"tools": [good("a"), bad, good("b")], "nextCursor": "2"});
                list.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                let (listed, next) = page(list).unwrap();
                let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_ref()).collect();
                assert_eq!((names, next.as_deref()), (vec!["a", "b"], Some("2")), "{bad}");
                let [entry] = &listed.bad[..] else { panic!("{bad}: {:?}", listed.bad) };
                assert_eq!((entry.name.as_deref(), entry.place), (name, 2), "{bad}");
                assert!(entry.why.starts_with(why), "{bad}: {}", entry.why);
            }
        }
    }

    /// An answer that is not a list is an error, not an empty list.
    #[test]
    fn what_is_not_a_list_is_an_error() {
        for none in
            [json!({}), json!({"tools": {}}), json!({"tools": null}), json!([1]), json!({"prompts": []})]
        {
            assert!(matches!(page(none.clone()), Err(ListError::NotAList)), "{none}");
        }
        let cursor = json!({"tools": [], "nextCursor": {"page": 2}});
        assert!(matches!(page(cursor), Err(ListError::NotAList)));
    }

    /// An entry over its bound is refused, and many that just fit exceed the bound of the list.
    #[test]
    fn definitions_are_bounded() {
        let tool = |bytes| json!({"name": "x", "description": "x".repeat(bytes), "inputSchema": {}});
        let (listed, _) = page(json!({"tools": [tool(ENTRY_BYTES_MAX), tool(9)]})).unwrap();
        assert_eq!((listed.tools.len(), listed.bad.len()), (1, 1));
        assert!(listed.bad[0].why.contains("more than 4194304 bytes"), "{:?}", listed.bad);
        let full = vec![tool(ENTRY_BYTES_MAX - 99); LIST_BYTES_MAX / ENTRY_BYTES_MAX + 1];
        assert!(matches!(page(json!({ "tools": full })), Err(ListError::Large)));
    }
}
