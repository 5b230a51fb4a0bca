//! The spans of a text that are redacted.

use super::marks::{self, Marks, mark};
use std::ops::Range;

/// A span of the text, and the kind of secret if a pattern found it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    at: Range<usize>,
    kind: Option<&'static str>,
}

/// The spans of one text.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<Span>);

impl Spans {
    pub(super) fn add(&mut self, at: Range<usize>, kind: Option<&'static str>) {
        // Overlapping matches of one secret arrive in order and share a span.
        if let Some(last) = self.0.last_mut()
            && last.kind == kind
            && last.at.start <= at.start
            && at.start < last.at.end
        {
            last.at.end = last.at.end.max(at.end);
            return;
        }
        self.0.push(Span { at, kind });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The marks that replace the spans.
    pub(super) fn marks(&self) -> Marks {
        self.0.iter().fold(Marks::default(), |marks, span| marks.with(Marks::of(span.kind)))
    }

    /// The end of the last span.
    pub(super) fn end(&self) -> Option<usize> {
        self.0.iter().map(|span| span.at.end).max()
    }

    /// Sorts the spans, merges those that overlap, and cuts marks out of them.
    pub(super) fn without_marks(mut self, text: &str) -> Self {
        if self.0.is_empty() {
            return self;
        }
        self.merge();
        let mut marks = marks::IN_TEXT.find_iter(text).map(|mark| mark.range()).peekable();
        let mut left = Vec::with_capacity(self.0.len());
        for Span { at: Range { mut start, end }, kind } in self.0 {
            while marks.next_if(|mark| mark.end <= start).is_some() {}
            while let Some(mark) = marks.next_if(|mark| mark.end <= end) {
                left.push(Span { at: start..mark.start.max(start), kind });
                start = mark.end;
            }
            let end = marks.peek().map_or(end, |mark| end.min(mark.start));
            left.push(Span { at: start..end.max(start), kind });
        }
        left.retain(|span| !span.at.is_empty());
        Self(left)
    }

    fn merge(&mut self) {
        self.0.sort_by_key(|span| (span.at.start, span.at.end));
        let mut merged: Vec<Span> = Vec::with_capacity(self.0.len());
        for span in self.0.drain(..) {
            match merged.last_mut() {
                Some(last) if span.at.start < last.at.end => {
                    if span.at != last.at && span.at.end > last.at.end {
                        // Partly overlapping spans of different kinds make one without a kind.
                        last.kind = last.kind.filter(|kind| span.kind == Some(kind));
                    }
                    last.at.end = last.at.end.max(span.at.end);
                }
                _ => merged.push(span),
            }
        }
        self.0 = merged;
    }

    /// This part of the text, with marks in place of the spans. A span that reaches into the part is marked there
    /// too.
    pub(super) fn replace(&self, text: &str, part: Range<usize>) -> String {
        let mut shown = String::with_capacity(part.len());
        let mut at = part.start;
        for span in &self.0 {
            let (start, end) = (span.at.start.max(part.start), span.at.end.min(part.end));
            if start < end {
                shown.push_str(&text[at..start]);
                shown.push_str(&mark(span.kind));
                at = end;
            }
        }
        shown.push_str(&text[at..part.end]);
        shown
    }
}
