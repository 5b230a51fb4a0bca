//! All tools that a server lists, as far as it lists them within bounds.

use rmcp::{
    Peer, RoleClient,
    model::{PaginatedRequestParams, Tool},
    service::ServiceError,
};

/// The most pages.
const PAGES_MAX: usize = 64;

/// The most tools.
const TOOLS_MAX: usize = 2000;

/// Why the tools of a server are not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListFault {
    /// More than anybody reads.
    #[error("it lists more than {TOOLS_MAX} tools, or more than {PAGES_MAX} pages of them")]
    Endless,
    /// A list that goes in a circle.
    #[error("its list of tools goes back to a page that was there before")]
    Circle,
    /// It did not say.
    #[error("it does not list its tools: {0}")]
    Service(#[from] ServiceError),
}

/// The tools, page by page.
pub(super) async fn all(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, ListFault> {
    let mut tools = Vec::new();
    let mut cursors = Vec::new();
    for _ in 0..PAGES_MAX {
        let cursor = cursors.last().cloned();
        let page = peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        tools.extend(page.tools);
        if tools.len() > TOOLS_MAX {
            return Err(ListFault::Endless);
        }
        match page.next_cursor {
            None => return Ok(tools),
            Some(next) if cursors.contains(&next) => return Err(ListFault::Circle),
            Some(next) => cursors.push(next),
        }
    }
    Err(ListFault::Endless)
}
