//! All tools that a server lists, as far as it lists them within bounds.
//!
//! rmcp reads a page as one: an entry that is none would cost all of it. It hands such a page over as it came then, and
//! the entries are read here one by one.

use super::{
    clean,
    connection::ask,
    size::{self, TooLarge},
    told,
};
use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool},
    service::ServiceError,
};
use serde_json::Value;

/// The most pages.
const PAGES_MAX: usize = 64;

/// The most tools.
const TOOLS_MAX: usize = 2000;

/// The most bytes of what is said of one tool: its schema has a bound of its own, so this is for the texts beside it.
const ENTRY_BYTES_MAX: usize = 4 << 20;

/// The most bytes of all that are kept.
const LIST_BYTES_MAX: usize = 32 << 20;

/// The most characters that are told of why an entry is none.
const WHY_MAX: usize = 300;

/// Why the tools of a server are not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListFault {
    /// More than anybody reads.
    #[error("it lists more than {TOOLS_MAX} tools, or more than {PAGES_MAX} pages of them")]
    Endless,
    /// Few, and yet too much.
    #[error("it lists more than {LIST_BYTES_MAX} bytes of tools")]
    Large,
    /// A list that goes in a circle.
    #[error("its list of tools goes back to a page that was there before")]
    Circle,
    /// Something else.
    #[error("what it answers is no list of tools")]
    NoList,
    /// It did not say.
    #[error("it does not list its tools: {}", told::service(.0))]
    Service(#[from] ServiceError),
}

/// What a server lists.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) tools: Vec<Tool>,
    pub(super) bad: Vec<BadEntry>,
    bytes: usize,
}

/// An entry that is no tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadEntry {
    /// What it is called, where it says.
    pub(super) name: Option<String>,
    /// The how many-th it is of the list, from 1.
    pub(super) place: usize,
    /// Why it is none.
    pub(super) why: String,
}

/// The tools, page by page.
///
/// # Cancel safety
/// Dropping the future tells the server that the page is not wanted any more.
pub(super) async fn all(peer: &Peer<RoleClient>) -> Result<Listed, ListFault> {
    let mut listed = Listed::default();
    let mut cursors = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = PaginatedRequestParams::default().with_cursor(cursors.last().cloned());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
        match listed.page(ask(peer, request).await?)? {
            None => return Ok(listed),
            Some(next) if cursors.contains(&next) => return Err(ListFault::Circle),
            Some(next) => cursors.push(next),
        }
    }
    Err(ListFault::Endless)
}

impl Listed {
    /// Takes a page in, and says which is next.
    fn page(&mut self, page: ServerResult) -> Result<Option<String>, ListFault> {
        match page {
            ServerResult::ListToolsResult(page) => {
                page.tools.into_iter().try_for_each(|tool| self.take(Ok(tool)))?;
                Ok(page.next_cursor)
            }
            // Where nothing of rmcp's fits, it is all there.
            ServerResult::CustomResult(page) => self.raw(page.0),
            _ => Err(ListFault::NoList),
        }
    }

    /// Takes in a page that rmcp cannot read as a whole.
    fn raw(&mut self, mut page: Value) -> Result<Option<String>, ListFault> {
        let Some(Value::Array(entries)) = page.get_mut("tools").map(Value::take) else {
            return Err(ListFault::NoList);
        };
        entries.into_iter().try_for_each(|entry| self.take(read(entry)))?;
        match page.get_mut("nextCursor").map(Value::take) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(next)) => Ok(Some(next)),
            Some(_) => Err(ListFault::NoList),
        }
    }

    /// Takes an entry in.
    fn take(&mut self, entry: Result<Tool, (Option<String>, String)>) -> Result<(), ListFault> {
        let place = self.tools.len() + self.bad.len() + 1;
        if place > TOOLS_MAX {
            return Err(ListFault::Endless);
        }
        match entry.and_then(bounded) {
            Ok((tool, bytes)) => {
                self.bytes += bytes;
                self.tools.push(tool);
            }
            Err((name, why)) => self.bad.push(BadEntry { name, place, why }),
        }
        if self.bytes > LIST_BYTES_MAX { Err(ListFault::Large) } else { Ok(()) }
    }
}

/// The tool that an entry is, or what it is called and why it is none.
fn read(entry: Value) -> Result<Tool, (Option<String>, String)> {
    let name = entry.get("name").and_then(Value::as_str).and_then(shown);
    let why = match fault(&entry) {
        Some(why) => why.to_owned(),
        None => match serde_json::from_value(entry) {
            Ok(tool) => return Ok(tool),
            Err(error) => clean::text(&format!("it is no tool: {error}"), WHY_MAX),
        },
    };
    Err((name, why))
}

/// A tool and its size, if that is one that can be kept.
fn bounded(tool: Tool) -> Result<(Tool, usize), (Option<String>, String)> {
    let why = match size::of(&tool, ENTRY_BYTES_MAX) {
        _ if tool.name.len() > 4 * clean::NAME_MAX => format!("its name is {} bytes long", tool.name.len()),
        Ok(bytes) => return Ok((tool, bytes)),
        Err(TooLarge) => format!("what is said of it is more than {ENTRY_BYTES_MAX} bytes"),
    };
    Err((shown(&tool.name), why))
}

/// What is wrong with what every tool has.
fn fault(entry: &Value) -> Option<&'static str> {
    let Value::Object(words) = entry else { return Some("it is no object") };
    match (words.get("name"), words.get("inputSchema")) {
        (None, _) => Some("it has no name"),
        (Some(name), _) if !name.is_string() => Some("its name is no text"),
        (_, None) => Some("it has no inputSchema"),
        (_, Some(schema)) if !schema.is_object() => Some("its inputSchema is no object"),
        _ => None,
    }
}

/// A name as it is told; `None` where nothing of it is to be seen.
fn shown(name: &str) -> Option<String> {
    Some(clean::text(name, clean::NAME_MAX)).filter(|name| !name.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(page: Value) -> Result<(Listed, Option<String>), ListFault> {
        let mut listed = Listed::default();
        // As rmcp reads it.
        let next = listed.page(serde_json::from_value(page).unwrap())?;
        Ok((listed, next))
    }

    /// Whatever one entry is, those beside it are read.
    #[test]
    fn an_entry_that_is_none_costs_itself() {
        let good = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        for (bad, name, why) in [
            (json!({"inputSchema": {}}), None, "it has no name"),
            (json!({"name": 7, "inputSchema": {}}), None, "its name is no text"),
            (json!({"name": "x"}), Some("x"), "it has no inputSchema"),
            (json!({"name": "x", "inputSchema": []}), Some("x"), "its inputSchema is no object"),
            (json!({"name": "x", "inputSchema": {}, "title": 7}), Some("x"), "it is no tool: invalid type"),
            (json!({"name": "x", "inputSchema": {}, "annotations": "all"}), Some("x"), "it is no tool"),
            (json!("tool"), None, "it is no object"),
            (json!(null), None, "it is no object"),
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

    /// What is no list at all is told as that, and does not read as an empty one.
    #[test]
    fn what_is_no_list_is_none() {
        for none in
            [json!({}), json!({"tools": {}}), json!({"tools": null}), json!([1]), json!({"prompts": []})]
        {
            assert!(matches!(page(none.clone()), Err(ListFault::NoList)), "{none}");
        }
        let cursor = json!({"tools": [], "nextCursor": {"page": 2}});
        assert!(matches!(page(cursor), Err(ListFault::NoList)));
    }

    /// One that says more than there is room for is refused, and many of those that just fit are too much.
    #[test]
    fn what_is_said_is_bounded() {
        let tool = |bytes| json!({"name": "x", "description": "x".repeat(bytes), "inputSchema": {}});
        let (listed, _) = page(json!({"tools": [tool(ENTRY_BYTES_MAX), tool(9)]})).unwrap();
        assert_eq!((listed.tools.len(), listed.bad.len()), (1, 1));
        assert!(listed.bad[0].why.contains("more than 4194304 bytes"), "{:?}", listed.bad);
        let full = vec![tool(ENTRY_BYTES_MAX - 99); LIST_BYTES_MAX / ENTRY_BYTES_MAX + 1];
        assert!(matches!(page(json!({ "tools": full })), Err(ListFault::Large)));
    }
}
