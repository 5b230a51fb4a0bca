//! The terminal line of the live view, which can be released while something else needs the screen.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use std::sync::Arc;

/// The line. Cheap to clone; all clones share it.
#[derive(Debug, Clone)]
pub(in super::super) struct Screen {
    line: Arc<Mutex<Line>>,
}

#[derive(Debug)]
struct Line {
    /// What is drawn; `None` while the line is held, and after the end.
    bar: Option<ProgressBar>,
    is_closed: bool,
}

/// Keeps the view off the screen until dropped.
#[derive(Debug)]
pub(in super::super) struct Held<'a> {
    screen: &'a Screen,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self { line: Arc::new(Mutex::new(Line { bar: Some(bar()), is_closed: false })) }
    }

    /// What to draw, unless the line is held or closed.
    pub(super) fn bar(&self) -> Option<ProgressBar> {
        self.line.lock().bar.clone()
    }

    /// Takes the view off the screen. There must be only one holder at a time.
    pub(in super::super) fn hold(&self) -> Held<'_> {
        if let Some(bar) = self.line.lock().bar.take() {
            bar.finish_and_clear();
        }
        Held { screen: self }
    }

    /// Takes the view off the screen for good.
    pub(super) fn close(&self) {
        self.line.lock().is_closed = true;
        drop(self.hold());
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut line = self.screen.line.lock();
        if !line.is_closed {
            line.bar = Some(bar());
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {bar:24} {pos}/{len} calls  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
