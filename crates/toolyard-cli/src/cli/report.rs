//! The kinds of reports.

use std::path::PathBuf;

/// The report of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReportKind {
    /// A timeline on standard error.
    Text,
    /// One JSON document on standard error.
    Json,
    /// Only what went wrong.
    None,
    /// A page in this file.
    Html(PathBuf),
}

impl ReportKind {
    /// Parses a kind as the command line has it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "text" => Ok(Self::Text),
            None if text == "json" => Ok(Self::Json),
            None if text == "none" => Ok(Self::None),
            Some(("html", file)) if !file.is_empty() => Ok(Self::Html(file.into())),
            _ if text.starts_with("html") => Err("name a file, as in html=report.html".to_owned()),
            _ => Err("possible values: text, json, none, html=FILE".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_a_file() {
        assert_eq!(ReportKind::parse("html=a=b.html"), Ok(ReportKind::Html("a=b.html".into())));
        assert_eq!(ReportKind::parse("json"), Ok(ReportKind::Json));
        for text in ["html", "html=", "text=a", "xml", ""] {
            assert!(ReportKind::parse(text).is_err(), "{text}");
        }
    }
}
