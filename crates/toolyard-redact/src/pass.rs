//! One pass of a redactor over texts, which remembers the marks it has put in.

use super::{Redactor, marks::Marks, spans::Spans};
use std::{borrow::Cow, cell::Cell};

/// How often a text is searched again after something was taken out of it. A token right behind a secret may be
/// recognised only once the secret is gone; texts with more of them in a row than this do not occur.
const PASSES_MAX: usize = 8;

/// A pass over something that consists of texts, such as a result.
pub(super) struct Pass<'r> {
    pub(super) redactor: &'r Redactor,
    marks: Cell<Marks>,
}

impl<'r> Pass<'r> {
    pub(super) fn of(redactor: &'r Redactor) -> Self {
        Self { redactor, marks: Cell::default() }
    }

    /// The marks it has put in.
    pub(super) fn marks(&self) -> Marks {
        self.marks.get()
    }

    pub(super) fn put(&self, marks: Marks) {
        self.marks.set(self.marks.get().with(marks));
    }

    /// Redacts a text.
    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.until_clean(text, |text| self.redactor.spans(text))
    }

    /// Takes out registered secrets only, for data in which patterns have no meaning.
    pub(super) fn data<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.until_clean(text, |text| self.redactor.secret_spans(text).without_marks(text))
    }

    fn until_clean<'a>(&self, text: &'a str, spans: impl Fn(&str) -> Spans) -> Cow<'a, str> {
        let mut shown = Cow::Borrowed(text);
        for _ in 0..PASSES_MAX {
            let found = spans(&shown);
            if found.is_empty() {
                break;
            }
            self.put(found.marks());
            shown = Cow::Owned(found.replace(&shown, 0..shown.len()));
        }
        shown
    }
}
