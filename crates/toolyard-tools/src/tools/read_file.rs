//! `read_file`: reads the text of a file, or some lines of it.

use super::file_tool::{FileTool, arguments};
use crate::Workspace;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;
use toolyard_core::{Content, FsMode, ToolError, ToolOutput, ToolSpec, whole_number};

/// The most lines that `read_file` returns, which is also the default of `limit`.
pub const READ_FILE_LINES_MAX: usize = 2_000;

/// The most bytes that `read_file` returns: 256 KiB. The cut falls between two lines, or inside the first one if
/// that alone is longer.
pub const READ_FILE_BYTES_MAX: usize = 256 << 10;

pub(super) const TOOL: FileTool = FileTool::new(spec, run);

fn spec() -> ToolSpec {
    ToolSpec::read("read_file")
        .describe(
            "Reads a text file of the workspace. Returns at most 2000 lines and 256 KiB at a time; if there is \
             more, the end of the result gives the offset to read on from.",
        )
        .input_schema(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace"},
                "offset": {"type": "integer", "minimum": 1, "description": "The first line to read; 1 is the first of the file"},
                "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read, 2000 at most"},
            },
            "required": ["path"],
            "additionalProperties": false,
        }))
        .requires_fs(FsMode::Read, "path")
}

#[derive(Deserialize)]
struct Args<'a> {
    path: &'a str,
    #[serde(default, deserialize_with = "count")]
    offset: Option<NonZeroUsize>,
    #[serde(default, deserialize_with = "count")]
    limit: Option<NonZeroUsize>,
}

/// Reads a number of lines, which JSON may write as `1e3`, too.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<NonZeroUsize>, D::Error> {
    let value = Value::deserialize(from)?;
    if value.is_null() {
        return Ok(None);
    }
    let count = whole_number(&value).and_then(|count| NonZeroUsize::new(usize::try_from(count).ok()?));
    count.map(Some).ok_or_else(|| D::Error::custom(format_args!("{value} is not a number of lines")))
}

fn run(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let args: Args<'_> = arguments(args)?;
    let text = workspace.read(args.path)?;
    let offset = args.offset.map_or(1, NonZeroUsize::get);
    let limit = args.limit.map_or(READ_FILE_LINES_MAX, NonZeroUsize::get);
    let part = Part::of(&text, offset, limit.min(READ_FILE_LINES_MAX));
    if part.content.is_empty() && offset > part.lines.max(1) {
        let lines = part.lines;
        return Err(ToolError::execution(format!(
            "offset {offset} is past the end: the file has {lines} lines"
        )));
    }
    Ok(part.output(text.len()))
}

/// A range of lines of a text.
struct Part<'a> {
    content: &'a str,
    /// The numbers of its first and last line, from 1.
    first: usize,
    last: usize,
    /// How many lines the whole text has.
    lines: usize,
    /// Whether the last line is cut off.
    line_is_cut: bool,
    is_whole: bool,
}

impl<'a> Part<'a> {
    fn of(text: &'a str, offset: usize, limit: usize) -> Self {
        let lines = text.split_inclusive('\n');
        let start: usize = lines.clone().take(offset - 1).map(str::len).sum();
        let rest = &text[start..];
        let (mut end, mut taken) = (0, 0);
        for line in rest.split_inclusive('\n').take(limit) {
            if end + line.len() > READ_FILE_BYTES_MAX {
                break;
            }
            end += line.len();
            taken += 1;
        }
        let line_is_cut = taken == 0 && !rest.is_empty();
        if line_is_cut {
            (end, taken) = (rest.floor_char_boundary(READ_FILE_BYTES_MAX), 1);
        }
        Self {
            content: &rest[..end],
            first: offset,
            last: (offset + taken).saturating_sub(1),
            lines: lines.count(),
            line_is_cut,
            is_whole: end == text.len(),
        }
    }

    fn output(&self, size: usize) -> ToolOutput {
        let (content, first, last, lines) = (self.content, self.first, self.last, self.lines);
        let mut parts = vec![Content::text(content)];
        let mut others = Map::from_iter([("size".to_owned(), json!(size))]);
        if !self.is_whole {
            let range = json!({"first_line": first, "last_line": last, "lines": lines});
            others.insert("truncated".to_owned(), range);
            parts.push(Content::text(format!("[lines {first} to {last} of {lines}{}]", self.hint())));
        }
        ToolOutput::parts(parts).with_structured_text("content", others)
    }

    fn hint(&self) -> String {
        let cut = if self.line_is_cut { "; the line is longer and was cut" } else { "" };
        match self.last < self.lines {
            true => format!("{cut}; read on with offset {}", self.last + 1),
            false => cut.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, offset: usize, limit: usize, content: &str) {
        assert_eq!(Part::of(text, offset, limit).content, content);
    }

    #[test]
    fn offset_and_limit_count_lines() {
        check("a\nb\nc\n", 1, 9, "a\nb\nc\n");
        check("a\nb\nc\n", 2, 1, "b\n");
        check("a\nb\nc", 3, 1, "c");
        check("a\nb\nc", 4, 1, "");
        check("", 1, 1, "");
    }

    #[test]
    fn a_part_says_where_to_read_on() {
        let text = Part::of("a\nb\nc\n", 1, 2).output(6).to_text();
        assert_eq!(text, "a\nb\n[lines 1 to 2 of 3; read on with offset 3]");
        let text = Part::of("a\nb\nc", 2, 2).output(5).to_text();
        assert_eq!(text, "b\nc\n[lines 2 to 3 of 3]");
    }

    /// The text of a whole file and of a part of one is kept once.
    #[test]
    fn the_text_is_kept_once() {
        let text = format!("{}\n", "x".repeat(99)).repeat(2000);
        for part in [Part::of(&text, 1, 2000), Part::of(&text, 1, 1999)] {
            let mut output = part.output(text.len());
            assert_eq!(output.structured().unwrap()["content"], part.content);
            output.extras_mut(&mut |_| {}, &mut |kept| assert!(kept.to_string().len() < 200));
        }
    }

    #[test]
    fn an_endless_line_is_cut_between_characters() {
        let text = "ü".repeat(READ_FILE_BYTES_MAX);
        let part = Part::of(&text, 1, 10);
        assert_eq!(part.content.len(), READ_FILE_BYTES_MAX);
        assert!(part.line_is_cut && !part.is_whole);
        let odd = format!("x{text}");
        assert_eq!(Part::of(&odd, 1, 10).content.len(), READ_FILE_BYTES_MAX - 1);
    }

    #[test]
    fn many_long_lines_are_cut_between_lines() {
        let line = format!("{}\n", "x".repeat(99_999));
        let text = line.repeat(5);
        let part = Part::of(&text, 1, 10);
        assert_eq!((part.content.len(), part.first, part.last, part.lines), (200_000, 1, 2, 5));
    }
}
