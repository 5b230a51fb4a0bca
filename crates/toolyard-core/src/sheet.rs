//! A question as it is shown to a person, wherever that is (PO-4, SM-12).
//!
//! ```text
//!   ApprovalRequest, changes ─► Sheet ─┬─ page: at most about a page; what is cut says so ─► terminal, web page
//!                                      └─ whole: with nothing left out ──────────────────► terminal, MCP clients
//! ```
//!
//! Rows are labelled lines of plain text. No text of a model ends its line, leaves its quotes, or hides in it, so whoever
//! shows a sheet has only to keep the labels apart from the lines.

mod arguments;
mod extent;
mod text;

pub use text::{ends, plain};

use crate::{AgentPath, ApprovalRequest, LinkedPath};
use extent::Extent;
use std::fmt;

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Label {
    /// The tool, and its side effects.
    Tool,
    /// The session.
    Session,
    /// The agent, unless it is the root.
    Agent,
    /// The call.
    Call,
    /// The arguments, as JSON.
    Arguments,
    /// Paths that lead elsewhere than their names say.
    Links,
    /// What the call would change.
    Changes,
    /// What a yes for good would cover.
    Always,
    /// Why the arguments that were given last may not run.
    Refused,
}

impl Label {
    /// The word shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Call => "call",
            Self::Arguments => "arguments",
            Self::Links => "links",
            Self::Changes => "changes",
            Self::Always => "always",
            Self::Refused => "refused",
        }
    }
}

/// A label and the lines beside it, which are plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// What the lines are about.
    pub label: Label,
    /// The lines, without line ends.
    pub lines: Vec<String>,
}

/// As text: a single line beside its label, several ones below it and indented, so that no line of a model begins one.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label.as_str();
        match self.lines.as_slice() {
            [line] => write!(f, "{label}: {line}"),
            lines => {
                write!(f, "{label}:")?;
                lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}

/// A question, as a page to begin with, and whole.
///
/// # Examples
/// ```
/// use toolyard_core::{Answer, ApprovalRequest, Approver, sheet::Sheet};
/// /// Asks in a chat, in which a page can be read at once.
/// struct Chat;
/// #[async_trait::async_trait]
/// impl Approver for Chat {
///     async fn ask(&self, request: &ApprovalRequest) -> Answer {
///         let sheet = Sheet::of(request, request.changes().await.as_deref());
///         if sheet.is_cut() {
///             return Answer::too_long();
///         }
///         sheet.page().iter().for_each(|row| println!("{row}"));
///         Answer::deny("ada") // or whatever the person says
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    page: Vec<Row>,
    /// `None` if the page shows everything.
    whole: Option<Vec<Row>>,
}

impl Sheet {
    /// Lays out a request; `changes` is what the call would change, as [`ApprovalRequest::changes`] tells.
    pub fn of(request: &ApprovalRequest, changes: Option<&str>) -> Self {
        let (mut page, whole) = (rows(request, changes, Extent::Cut), rows(request, changes, Extent::Whole));
        if page == whole {
            return Self { page, whole: None };
        }
        // Nobody is asked to allow more calls like one that has not been seen.
        page.retain(|row| row.label != Label::Always);
        Self { page, whole: Some(whole) }
    }

    /// The same without a row that goes without saying.
    #[must_use]
    pub fn without(mut self, label: Label) -> Self {
        for rows in std::iter::once(&mut self.page).chain(&mut self.whole) {
            rows.retain(|row| row.label != label);
        }
        self
    }

    /// Whether the page leaves anything out: then a yes does not count before the whole was seen (PO-4).
    pub fn is_cut(&self) -> bool {
        self.whole.is_some()
    }

    /// The page. What is left out says how much it is.
    pub fn page(&self) -> &[Row] {
        &self.page
    }

    /// Everything.
    pub fn whole(&self) -> &[Row] {
        self.whole.as_ref().unwrap_or(&self.page)
    }
}

fn rows(request: &ApprovalRequest, changes: Option<&str>, extent: Extent) -> Vec<Row> {
    let line = |text: &str, chars_max: usize| vec![ends(text, chars_max, plain)];
    let name = |text: &str| line(text, extent.name_chars_max());
    let mut rows = Vec::new();
    let mut row = |label, lines| rows.push(Row { label, lines });
    row(Label::Tool, vec![format!("{} ({})", plain(request.tool()), request.side_effects())]);
    row(Label::Session, name(request.session().as_str()));
    if *request.agent() != AgentPath::root() {
        row(Label::Agent, name(request.agent().as_str()));
    }
    row(Label::Call, name(request.call_id().as_str()));
    row(Label::Arguments, arguments::lines(request.arguments(), extent));
    if !request.links().is_empty() {
        let links = request.links().iter().map(LinkedPath::to_string);
        let links = links.map(|link| ends(&link, extent.line_chars_max(), plain)).collect();
        row(Label::Links, extent.lines(links));
    }
    if let Some(changes) = changes {
        row(Label::Changes, self::changes(changes, extent));
    }
    let covered = match request.pattern() {
        pattern if pattern.is_exact() => format!("{}, with exactly these arguments", request.tool()),
        pattern => pattern.to_string(),
    };
    row(Label::Always, line(&covered, extent.line_chars_max()));
    if let Some(refused) = request.refused() {
        let why = format!("your change may not run: {}", refused.why);
        row(Label::Refused, line(&why, extent.line_chars_max()));
    }
    rows
}

fn changes(text: &str, extent: Extent) -> Vec<String> {
    // A tab is harmless, and the only control character that is common in texts.
    let line = |line: &str| ends(&line.replace('\t', "    "), extent.line_chars_max(), plain);
    extent.lines(text.split('\n').map(line).collect())
}

#[cfg(test)]
mod tests;
